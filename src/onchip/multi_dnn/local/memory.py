"""Unnamed memory that processes share, so that none of it is left behind when any of them dies.

A named segment (`/dev/shm`) outlives processes that are killed before they unlink it. An anonymous file goes
with the last process that has it, and is not limited by the size of `/dev/shm` either.
"""

from __future__ import annotations

import math
import mmap
import os
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from onchip.base.errors import UsageError

__all__ = ["BumpAllocator", "Place", "Segment"]

Array = np.ndarray[Any, Any]

ALIGNMENT = 64
"""The alignment in bytes: a cache line, which also suits vector instructions."""


class Place(NamedTuple):
    """The place of an array in a segment."""

    offset: int
    dtype: str
    shape: tuple[int, ...]


@dataclass
class BumpAllocator:
    """Hands out places, one after the other."""

    end: int = 0

    def place(self, dtype: np.dtype[Any] | type, shape: tuple[int, ...]) -> Place:
        """Return room for an array."""
        kind = np.dtype(dtype)
        at = -(-self.end // ALIGNMENT) * ALIGNMENT
        self.end = at + max(math.prod(shape) * kind.itemsize, 1)
        return Place(at, kind.str, shape)


class Segment:
    """Bytes that several processes map. Other processes inherit `descriptor`."""

    def __init__(self, descriptor: int | None = None) -> None:
        self.descriptor = os.memfd_create("onchip") if descriptor is None else descriptor
        self._map: mmap.mmap | None = None

    def resize(self, size: int) -> None:
        """Set the size to exactly `size` bytes and keep the old ones; for the process that made it.

        Every process maps it again. The memory is reserved here: a later lack would be no error, but a signal
        to the process that touches it. Raises `UsageError` where there is not enough.
        """
        try:
            os.ftruncate(self.descriptor, size)
            if size:
                os.posix_fallocate(self.descriptor, 0, size)
            self.map(size)
        except OSError as problem:
            raise UsageError(
                f"there is no room for {size:,} bytes of shared memory ({problem.strerror})", item="local"
            ) from None

    def map(self, size: int) -> None:
        """Map the first `size` bytes; earlier arrays stay valid where they still are."""
        self._map = mmap.mmap(self.descriptor, size) if size else None

    def array(self, place: Place) -> Array:
        """Return the array at a place, to read and to write."""
        assert self._map is not None
        dtype = np.dtype(place.dtype)
        flat = np.frombuffer(self._map, dtype, math.prod(place.shape), place.offset)
        return flat.reshape(place.shape)

    def close(self) -> None:
        """Release it; arrays still in use keep their bytes until they go."""
        self._map = None
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
