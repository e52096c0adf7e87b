"""Caches on chip, in bytes: the buffer that keeps its content from one inference to the next.

A buffer has blocks with room for more rows than the tensor in it; the tensor's rows come first in each. What
an operator appends is written behind them, and nothing else of the buffer is touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from onchip.plans import Cache, Plan

__all__ = ["Buffer", "buffers_of"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class Buffer:
    """The buffer of one cache, at the plan's sizes: `blocks` blocks with room for `rows` of `row_bytes`.

    `first` and `last` are the tensors in it at the start (None: nothing) and at the end.
    """

    name: str
    address: int
    blocks: int
    rows: int
    row_bytes: int
    first: int | None
    last: int
    before: int
    after: int

    @property
    def bytes(self) -> int:
        """The bytes of the buffer."""
        return self.blocks * self.rows * self.row_bytes

    @property
    def owner(self) -> str:
        """The owner of its bytes in the scratchpad."""
        return f"cache {self.name}"

    def there(self, tensor: int) -> int:
        """Return how many rows of each block a tensor has."""
        return self.before if tensor == self.first else self.after

    def tensor_of(self, data: Bytes, tensor: int) -> Bytes:
        """Return the slot of a tensor in the bytes of the buffer."""
        return self._blocks(data)[:, : self.there(tensor)].reshape(-1)

    def put(self, data: Bytes, tensor: int, slot: Bytes) -> None:
        """Write the rows of a tensor into the bytes of the buffer that are not there yet."""
        begin = self.before if tensor == self.last and self.first is not None else 0
        rows = slot.reshape(self.blocks, self.there(tensor), -1)
        self._blocks(data)[:, begin : self.there(tensor)] = rows[:, begin:]

    def _blocks(self, data: Bytes) -> Bytes:
        return data.reshape(self.blocks, self.rows, -1)


def buffers_of(plan: Plan) -> dict[int, Buffer]:
    """Return the buffers of a plan's caches by the tensors in them; what is wrong is left to the checker."""
    found: dict[int, Buffer] = {}
    for cache in plan.caches:
        buffer = _buffer(plan, cache)
        if buffer is not None:
            found |= {t: buffer for t in (buffer.first, buffer.last) if t is not None}
    return found


def _buffer(plan: Plan, cache: Cache) -> Buffer | None:
    ids, tensors = plan.network.tensor_id, plan.network.tensors
    first = None if cache.input is None else ids.get(cache.input)
    if cache.output not in ids or (first is None) != (cache.input is None):
        return None
    last = ids[cache.output]
    shape = tensors[last].shape
    if not 0 <= cache.axis < len(shape) or (first is not None and len(tensors[first].shape) != len(shape)):
        return None
    blocks, after = prod(shape[: cache.axis]), shape[cache.axis]
    before = 0 if first is None else tensors[first].shape[cache.axis]
    row_bytes = tensors[last].bytes // (blocks * after)
    return Buffer(cache.output, cache.address, blocks, cache.rows, row_bytes, first, last, before, after)
