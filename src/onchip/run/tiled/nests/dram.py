"""The DRAM side of a nest: what it fetches, what it sends out, and the bytes of each that have crossed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from onchip.base.errors import InputError, Mismatch
from onchip.network.axes import Buffer, GroupAxes
from onchip.run.poison import poison_of
from onchip.run.state import State
from onchip.run.tiled.nests.forms import Span
from onchip.run.tiled.nests.lives import FINAL, NOTHING, PARTIAL, Life

__all__ = ["Dram"]

Array = np.ndarray[Any, Any]


class Dram:
    """`crossed` are the planned bytes of every buffer; `written` the tensors that the group sends out.

    `constants` are the values of buffers that are constants, in their sides.
    """

    def __init__(
        self, state: State, axes: GroupAxes, constants: Mapping[int, Array], leaving: Collection[int]
    ) -> None:
        self.state, self.axes = state, axes
        self.crossed = dict.fromkeys(range(len(axes.buffers)), 0)
        self.sources = dict(constants)
        self.written: dict[int, Array] = {}
        self.states: dict[int, Array] = {}
        self.wide: dict[int, Array] = {}
        for b, buffer in enumerate(axes.buffers):
            t = buffer.tensor
            if t is None:
                continue
            kind = state.slots.dtype[t]
            if b in leaving:
                self.written[b] = np.full(buffer.sides, poison_of((), kind), kind)
                self.states[b] = np.full(buffer.sides, NOTHING, np.uint8)
            elif buffer.maker is None and t in state.dram:
                self.sources[b] = part_of(state.value(t, state.dram[t]), buffer, state)

    def fetch(self, b: int, region: Sequence[Span], to: Array, times: int) -> None:
        """Copy a part of a buffer from outside `times` times: for each turn that has its own."""
        found = self.sources[b][tuple(slice(*span) for span in region)]
        copies = as_strided(to, (times, *to.shape), (0, *to.strides))  # one place, written as often
        copies[...] = found
        self.crossed[b] += copies.size * self.axes.buffers[b].element

    def send(self, b: int, life: Life, region: Sequence[Span]) -> None:
        """Write a part of an output, which crosses; its sums need not be complete.

        Raises `Mismatch` if some of it was complete when it was written before.
        """
        at = tuple(slice(*span) for span in region)
        here = life.at(region, "DRAM")
        value = life.data[here]
        if (self.states[b][at] == FINAL).any():
            raise Mismatch(
                f"{self.axes.buffers[b].name}: a part of it is written again ({self.state.where()})"
            )
        self.written[b][at] = value
        assert life.states is not None
        self.states[b][at] = life.states[here]
        if (sums := life.unfinished(region, here)) is not None:
            self.wide.setdefault(b, np.zeros(self.written[b].shape, sums.dtype))[at] = sums
        self.crossed[b] += self._bytes(b, self.states[b][at])

    def back(self, b: int, life: Life) -> None:
        """Read a part of an output's partial sums, which crosses."""
        at = tuple(slice(*span) for span in life.region)
        life.data[...], life.states = self.written[b][at], self.states[b][at].copy()
        if b in self.wide:
            life.resume(life.region, self.wide[b][at])
        self.crossed[b] += self._bytes(b, self.states[b][at])

    def _bytes(self, b: int, states: Array) -> int:
        """Return the bytes of elements in these states: a sum that is not complete may be wider."""
        element, partial = self.axes.buffers[b].element, int(np.count_nonzero(states == PARTIAL))
        return (states.size - partial) * element + partial * self.state.plan.chip.accumulated(element)


def part_of(value: Array, buffer: Buffer, state: State) -> Array:
    """Return the part of a tensor's value that a buffer is, in its sides."""
    count = int(np.prod(buffer.whole, dtype=np.int64))
    assert buffer.tensor is not None
    of = state.network.tensors[buffer.tensor].bytes // buffer.element
    if value.size != of or buffer.offset + count > of:
        raise InputError("cannot be run in tiles: the reach has other sides", item=f"tensor {buffer.name}")
    at = tuple(slice(first, first + size) for first, size in zip(buffer.first, buffer.sides, strict=True))
    found: Array = value.reshape(-1)[buffer.offset :][:count].reshape(buffer.whole)[at]
    return found
