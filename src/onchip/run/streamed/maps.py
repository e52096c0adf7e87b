"""Tensors as maps [images, channels, rows, columns], and back to the shapes that the model's nodes see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Map", "Region", "map_of"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Map:
    """A tensor's extents as a map; `flat`: a matrix [rows, features] without images, with the map's rows.

    With rank 3 its node sees all rows as those of one image: [1, rows, features].
    """

    images: int
    channels: int
    rows: int
    columns: int
    rank: int = 4
    flat: bool = False

    @property
    def size(self) -> int:
        return self.images * self.channels * self.rows * self.columns

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return self.images, self.channels, self.rows, self.columns

    @property
    def axes(self) -> str:
        """The meaning of each axis of the node's array: n, c, h or w."""
        return "nhc"[-self.rank :] if self.flat else "nchw"[: self.rank]

    def same_as(self, other: Map) -> bool:
        """Return whether two maps have the same extents, whatever shapes their nodes see."""
        return (self.images, self.channels, self.rows, self.columns) == (
            other.images,
            other.channels,
            other.rows,
            other.columns,
        )

    def whole(self, array: Array) -> Array:
        """Return [images, channels, rows, columns] of all of a tensor's elements, whatever their shape."""
        if self.flat:
            return array.reshape(self.rows, self.channels).T[None, :, :, None]
        return array.reshape(self.images, self.channels, self.rows, self.columns)

    def stored(self, array: Array) -> Array:
        """Return a whole map in the order of its elements in memory."""
        return array[0, :, :, 0].T if self.flat else array

    def to_map(self, array: Array) -> Array:
        """Return [images, channels, rows, columns] of a node's array, or of a part of it."""
        if self.flat:
            return array.reshape(array.shape[-2:]).T[None, :, :, None]
        return array.reshape(*array.shape, *(1,) * (4 - self.rank))

    def from_map(self, array: Array) -> Array:
        """Return a map or a part of one in the shape that a node sees."""
        if self.flat:
            matrix = np.ascontiguousarray(array[0, :, :, 0].T)
            return matrix[None] if self.rank == 3 else matrix
        return np.ascontiguousarray(array.reshape(array.shape[: self.rank]))


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a map: half-open ranges."""

    images: tuple[int, int]
    channels: tuple[int, int]
    rows: tuple[int, int]
    columns: tuple[int, int]

    @property
    def slices(self) -> tuple[slice, ...]:
        return tuple(slice(*r) for r in (self.images, self.channels, self.rows, self.columns))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(b - a for a, b in (self.images, self.channels, self.rows, self.columns))

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def along(self, axis: str) -> slice:
        """Return the range of axis n, c, h or w."""
        return self.slices["nchw".index(axis)]


def map_of(shape: Sequence[int], *, images: bool) -> Map | None:
    """Return the map of a value; `images`: whether the network has maps of four dimensions. Else None.

    A value of three dimensions is a matrix, whose rows, those of all of its images, are the map's rows.
    """
    if len(shape) == 4:
        return Map(shape[0], shape[1], shape[2], shape[3])
    if len(shape) == 2:
        return Map(shape[0], shape[1], 1, 1, 2) if images else Map(1, shape[1], shape[0], 1, 2, True)
    if len(shape) == 3:
        return Map(1, shape[2], shape[0] * shape[1], 1, 3, True)
    return None
