"""The places of a group's tensors in its scratch: rings of rows, and slices of channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from onchip.base.errors import Mismatch
from onchip.run.arena import POISON, Arena, Claim
from onchip.run.tiled.maps import Map

__all__ = ["Ring", "SliceBuffer", "buffer_bytes"]

Array = np.ndarray[Any, Any]


def buffer_bytes(found: Map, width: int, rows: int, channels: int, images: int) -> int:
    """Return the planned bytes of a buffer; `width` are those of an element."""
    return width * found.columns * rows * channels * images


class _Buffer:
    """Elements at the front of [start, end) of the arena, poison behind them."""

    def __init__(
        self, arena: Arena, start: int, end: int, dtype: np.dtype[Any], count: int, claim: Claim
    ) -> None:
        arena.reserve(start, end, claim)
        self.bytes = arena.bytes[start : start + count * dtype.itemsize]
        self.elements: Array = self.bytes.view(dtype)
        self.owner = claim.owner


class Ring(_Buffer):
    """All channels of the last `rows` rows of some images; each place records its row."""

    def __init__(
        self,
        arena: Arena,
        start: int,
        end: int,
        dtype: np.dtype[Any],
        found: Map,
        rows: int,
        images: int,
        claim: Claim,
    ) -> None:
        super().__init__(arena, start, end, dtype, rows * images * found.channels * found.columns, claim)
        self.rows = rows
        self.data = self.elements.reshape(rows, images, found.channels, found.columns)
        self.tags = np.full(rows, -1)

    def begin(self, images: tuple[int, int]) -> None:
        """Begin other images: nothing remains of those before."""
        self.bytes[:] = POISON
        self.tags[:] = -1

    def drop(self, below: int) -> None:
        """Drop the rows before `below`, which are not needed again."""
        gone = np.flatnonzero((self.tags >= 0) & (self.tags < below))
        if len(gone):
            self.bytes.reshape(self.rows, -1)[gone] = POISON
            self.tags[gone] = -1

    def put(self, rows: tuple[int, int], value: Array, channels: slice, *, done: bool) -> None:
        """Write [images, channels, rows, columns]; a row can be read when it is `done`."""
        places = self._places(rows)
        self.data[places, : value.shape[0], channels] = value.transpose(2, 0, 1, 3)
        self.tags[places] = np.arange(*rows) if done else -1

    def raw(self, rows: tuple[int, int], images: int, channels: slice) -> Array:
        """Return the elements there, finished or not."""
        return self.data[self._places(rows), :images, channels].transpose(1, 2, 0, 3)

    def get(self, rows: tuple[int, int], images: int, channels: slice, reader: str) -> Array:
        """Return finished rows. Raises `Mismatch` naming a row that is not there (any more)."""
        missing = self.tags[self._places(rows)] != np.arange(*rows)
        if missing.any():
            row = rows[0] + int(np.argmax(missing))
            raise Mismatch(
                f"{self.owner}, read by {reader}: row {row} is not in its {self.rows} rows of scratch"
            )
        return self.raw(rows, images, channels)

    def done(self, rows: tuple[int, int]) -> None:
        """Mark the rows as finished."""
        self.tags[self._places(rows)] = np.arange(*rows)

    def _places(self, rows: tuple[int, int]) -> Any:
        low, high = rows
        if high - low > self.rows:
            raise Mismatch(f"{self.owner}: {high - low} rows in a buffer of {self.rows}")
        first = low % self.rows
        if first + high - low <= self.rows:
            return slice(first, first + high - low)
        return np.arange(low, high) % self.rows


class SliceBuffer(_Buffer):
    """A slice of channels of one band of rows: one at a time."""

    def __init__(
        self, arena: Arena, start: int, end: int, dtype: np.dtype[Any], capacity: int, claim: Claim
    ) -> None:
        super().__init__(arena, start, end, dtype, capacity, claim)
        self.channels = self.rows = (0, 0)
        self.data: Array | None = None

    def empty(self) -> None:
        """Discard the slice, which is not needed again."""
        self.bytes[:] = POISON
        self.data = None

    def put(self, rows: tuple[int, int], channels: tuple[int, int], value: Array) -> None:
        """Write [images, channels, rows, columns] over the slice before."""
        if value.size > len(self.elements):
            raise Mismatch(f"{self.owner}: {value.size} elements in a slice of {len(self.elements)}")
        self.bytes[:] = POISON
        self.data = self.elements[: value.size].reshape(value.shape)
        self.data[...] = value
        self.rows, self.channels = rows, channels

    def has(self, channels: tuple[int, int]) -> bool:
        return self.data is not None and self.channels == channels

    def get(self, rows: tuple[int, int], channels: tuple[int, int], reader: str) -> Array:
        """Return a copy of the slice's rows. Raises `Mismatch` when another slice is there."""
        if self.data is None or self.channels != channels or rows[0] < self.rows[0] or rows[1] > self.rows[1]:
            raise Mismatch(
                f"{self.owner}, read by {reader}: rows {rows}, channels {channels} are not in its slice"
            )
        first = self.rows[0]
        return self.data[:, :, rows[0] - first : rows[1] - first].copy()
