"""The DRAM side of a group: the tensors that it streams, and the bytes of each that have crossed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from onchip.run.state import State
from onchip.run.tiled.maps import Region
from onchip.run.tiled.poison import poison_of
from onchip.run.tiled.shape import GroupShape

__all__ = ["Dram"]

Array = np.ndarray[Any, Any]


class Dram:
    """`crossed` are planned bytes by tensor, `written` the maps that the group sends out.

    Operands that are `whole` do not cross.
    """

    def __init__(self, state: State, shape: GroupShape, whole: Collection[int]) -> None:
        self.shape = shape
        self.crossed = {t: 0 for t in (*shape.external, *shape.escaping) if t not in whole}
        self.sources = {
            t: shape.maps[t].whole(state.value(t, state.dram[t])) for t in shape.external if t not in whole
        }
        self.written: dict[int, Array] = {}
        for t in shape.escaping:
            if t in whole:
                continue
            found = shape.maps[t]
            extents = (found.images, found.channels, found.rows, found.columns)
            dtype = state.slots.dtype[t]
            self.written[t] = np.full(extents, poison_of((), dtype), dtype)

    def read(self, t: int, region: Region) -> Array:
        """Return a region of an operand, which crosses."""
        self.crossed[t] += region.size * self.shape.width[t]
        return self.sources[t][region.slices]

    def write(self, t: int, region: Region, value: Array) -> None:
        """Write a region of a result, which crosses."""
        self.crossed[t] += region.size * self.shape.width[t]
        self.written[t][region.slices] = value
