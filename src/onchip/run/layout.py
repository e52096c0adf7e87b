"""The layout of a tensor's elements in its slot: contiguous, or channel by channel in patches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from onchip.base.errors import ModelError
from onchip.network import Patches, Tensor
from onchip.run.arena import POISON

__all__ = ["Layout", "layout_of"]

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class Layout:
    """`slot` bytes that hold the elements of a value, one every `pitch` bytes from byte 0 on.

    Without patches they are in the order of the value; with them in that of `onchip.network.Patches`, and
    `last` states that the value has its channels last (NHWC). Bytes that hold no element are poison.
    """

    slot: int
    pitch: int
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    patches: Patches | None = None
    last: bool = False

    @cached_property
    def count(self) -> int:
        """The number of elements, the padding of patches included."""
        return math.prod(self.shape) if self.patches is None else self.patches.elements

    def pack(self, value: Array) -> Bytes:
        """Return a value as the bytes of its slot."""
        elements = np.ascontiguousarray(value, self.dtype).reshape(-1)
        if self.patches is not None:
            elements = _in_patches(self.planes(elements), self.patches)
        slot = np.full(self.slot, POISON, np.uint8)
        width = self.dtype.itemsize
        spread = slot[: self.count * self.pitch].reshape(self.count, self.pitch)
        spread[:, :width] = elements.view(np.uint8).reshape(self.count, width)
        return slot

    def unpack(self, slot: Bytes) -> Array:
        """Return the value in the bytes of a slot."""
        spread = slot[: self.count * self.pitch].reshape(self.count, self.pitch)
        elements = np.ascontiguousarray(spread[:, : self.dtype.itemsize]).reshape(-1).view(self.dtype)
        if self.patches is None:
            return elements.reshape(self.shape)
        return self.from_planes(_out_of_patches(elements, self.patches))

    def planes(self, value: Array) -> Array:
        """Return [channels, rows, columns] of a patched tensor's value."""
        p = self.patches
        assert p is not None
        if not self.last:
            return value.reshape(p.channels, p.rows, p.columns)
        pixels = value.reshape(self.images, p.rows, p.columns, -1)
        return pixels.transpose(0, 3, 1, 2).reshape(p.channels, p.rows, p.columns)

    def from_planes(self, planes: Array) -> Array:
        """Return the value with these planes."""
        if not self.last:
            return np.ascontiguousarray(planes).reshape(self.shape)
        images = planes.reshape(self.images, -1, *planes.shape[1:])
        return np.ascontiguousarray(images.transpose(0, 2, 3, 1)).reshape(self.shape)

    @property
    def images(self) -> int:
        return self.shape[0] if len(self.shape) == 4 else 1


def layout_of(
    tensor: Tensor, scale: int, dtype: np.dtype[np.generic], shape: tuple[int, ...], *, last: bool
) -> Layout:
    """Return the layout of a root tensor at `scale` times its planned size; `last`: the model's maps are
    NHWC.

    Raises `ModelError` naming the tensor when its patches are not those of a map of this shape.
    """
    slot, found = tensor.bytes * scale, tensor.patches
    if found is not None:
        expected: tuple[int, ...] = (found.channels, found.rows, found.columns)
        stated: tuple[int, ...] = (math.prod(shape),)
        if len(shape) == 4:
            images, *rest = shape
            channels, rows, columns = (rest[2], *rest[:2]) if last else rest
            stated = (images * channels, rows, columns)
        else:  # a reshaped value: its elements come in the same order, and there must be as many
            expected = (math.prod(expected),)
        if expected != stated:
            raise ModelError(
                f"has patches of {found.channels} x {found.rows} x {found.columns}, and the shape"
                f" {' x '.join(map(str, shape)) or '()'} in the model",
                item=f"tensor {tensor.name}",
            )
    count = math.prod(shape) if found is None else found.elements
    pitch, rest_ = divmod(slot, max(count, 1))
    return Layout(slot, dtype.itemsize if rest_ else pitch, dtype, shape, found, last)


def _in_patches(planes: Array, p: Patches) -> Array:
    """Return the elements in the order of the patches, padding poisoned."""
    down, across = p.grid
    poison = np.full(p.elements * planes.itemsize, POISON, np.uint8).view(planes.dtype)
    padded = poison.reshape(p.channels, down * p.height, across * p.width)
    padded[:, : p.rows, : p.columns] = planes
    cut = padded.reshape(p.channels, down, p.height, across, p.width)
    return np.ascontiguousarray(cut.transpose(0, 1, 3, 2, 4)).reshape(-1)


def _out_of_patches(elements: Array, p: Patches) -> Array:
    """Return [channels, rows, columns] of elements in the order of the patches."""
    down, across = p.grid
    cut = elements.reshape(p.channels, down, across, p.height, p.width).transpose(0, 1, 3, 2, 4)
    return cut.reshape(p.channels, down * p.height, across * p.width)[:, : p.rows, : p.columns]
