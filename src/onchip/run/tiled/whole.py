"""Whole operands of a tiled group: read and made in place, in ranges of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import Mismatch
from onchip.run.state import State
from onchip.run.tiled.maps import Map, Region

if TYPE_CHECKING:
    from onchip.run.tiled.shape import GroupShape

__all__ = ["Place", "Whole", "finish_whole", "whole_operands"]

Array = np.ndarray[Any, Any]
Bools = np.ndarray[Any, np.dtype[np.bool_]]


class Whole:
    """All of a map in the arena, with the methods of a `Ring`: every row has its own place.

    `images` are those of the current sub-group. Each row records whether it was made. Where it shares bytes
    with another operand, `shadow` records for each byte whether it has been written over.
    """

    def __init__(self, state: State, t: int, found: Map, *, made: bool) -> None:
        layout, (start, end) = state.slots.layout[t], state.slot(t)
        cells = state.arena.bytes[start:end][: layout.count * layout.pitch].reshape(layout.count, -1)
        self.owner = state.owner(t)
        self.data: Array = found.whole(cells[:, : layout.dtype.itemsize].view(layout.dtype)[:, 0])
        assert np.shares_memory(self.data, state.arena.bytes)
        self.made: Bools = np.full((found.images, found.rows), made)
        self.images = (0, found.images)
        self.shadow: list[Bools] = []  # by byte of an element, [images, channels, rows, columns]
        self.writes = not made

    def share(self, state: State, t: int, found: Map, gone: Bools, first: int) -> None:
        """Share `gone`, a bool for every byte of the arena from `first` on, with another operand."""
        layout, (start, _) = state.slots.layout[t], state.slot(t)
        at = start - first
        cells = gone[at : at + layout.count * layout.pitch].reshape(layout.count, -1)
        self.shadow = [found.whole(cells[:, i]) for i in range(layout.pitch)]

    # -- as a ring -----------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        return int(self.data.shape[2])

    def begin(self, images: tuple[int, int]) -> None:
        self.images = images

    def drop(self, below: int) -> None:
        """Keep everything."""

    def put(self, rows: tuple[int, int], value: Array, channels: slice, *, done: bool) -> None:
        images = slice(self.images[0], self.images[0] + value.shape[0])
        self.write((images, channels, slice(*rows), slice(None)), value)
        self.made[images, slice(*rows)] = done

    def raw(self, rows: tuple[int, int], images: int, channels: slice) -> Array:
        first = self.images[0]
        return self.read((slice(first, first + images), channels, slice(*rows), slice(None)), "its group")

    def get(self, rows: tuple[int, int], images: int, channels: slice, reader: str) -> Array:
        first = self.images[0]
        made = self.made[first : first + images, slice(*rows)]
        if not made.all():
            row = rows[0] + int(np.argmin(made.all(axis=0)))
            raise Mismatch(f"{self.owner}, read by {reader}: row {row} was not made yet")
        return self.read((slice(first, first + images), channels, slice(*rows), slice(None)), reader)

    def done(self, rows: tuple[int, int]) -> None:
        self.made[slice(*self.images), slice(*rows)] = True

    def overwrite(self, rows: tuple[int, int], channels: slice) -> None:
        """Mark some channels of these rows as written; their values come later."""
        for shadow in self.shadow:
            shadow[slice(*self.images), channels, slice(*rows)] = True

    # -- bytes ---------------------------------------------------------------------------------------------

    def write(self, part: tuple[slice, ...], value: Array) -> None:
        """Write [images, channels, rows, columns] of it."""
        self.data[part] = value
        for shadow in self.shadow:
            shadow[part] = True

    def read(self, part: tuple[slice, ...], reader: str) -> Array:
        """Return [images, channels, rows, columns] of it. Raises `Mismatch` for overwritten bytes."""
        if not self.writes and any(shadow[part].any() for shadow in self.shadow):
            raise Mismatch(f"{self.owner}, read by {reader}: the output over it was written there before")
        return self.data[part].copy() if self.shadow else self.data[part]


class Place:
    """A region of a whole operand, with the methods of a `SliceBuffer`."""

    def __init__(self, whole: Whole, region: Region) -> None:
        self.whole, self.part = whole, region.slices

    def put(self, rows: tuple[int, int], channels: tuple[int, int], value: Array) -> None:
        self.whole.write(self.part, value)

    def get(self, rows: tuple[int, int], channels: tuple[int, int], reader: str) -> Array:
        return self.whole.read(self.part, reader).copy()


def whole_operands(state: State, shape: GroupShape, streamed: Collection[int]) -> Mapping[int, Whole]:
    """Return the operands that do not stream, each in its range; refuses absent ones as the machine does."""
    at = f"{shape.name} ({state.where()})"
    found: dict[int, Whole] = {}
    for t in shape.external:
        if t not in streamed:
            state.expect_whole(t, f"read by {at}", "input-")
            state.comparison.same(t, state.value(t, state.arena.read(*state.slot(t))), f"read by {at}")
            found[t] = Whole(state, t, shape.maps[t], made=True)
    for t in shape.escaping:
        if t in streamed:
            continue
        if t not in state.address:
            state.refuse("output-not-reserved", f"{state.name(t)}, written by {shape.name}, has no range")
        if t in state.parts:
            state.refuse("join-not-concat", f"{shape.name} is a group, and joins nothing")
        under = state.over.get(t)
        owners = () if under is None else (state.owner(under),)
        state.expect_owner(*state.slot(t), state.owner(t), f"reserved for {at}", *owners)
        found[t] = Whole(state, t, shape.maps[t], made=False)
        if under in found:
            slots = state.slot(t), state.slot(under)
            first = min(start for start, _ in slots)
            gone = np.zeros(max(end for _, end in slots) - first, np.bool_)
            for x in (t, under):
                found[x].share(state, x, shape.maps[x], gone, first)
    return found


def finish_whole(state: State, shape: GroupShape, whole: Mapping[int, Whole]) -> None:
    """Complete the outputs made in place; the operands below them release the bytes that are left."""
    for t in whole:
        if t not in shape.escaping:
            continue
        state.arena.hand_over(*state.slot(t), state.claim(t))
        if t in state.over:
            state.give_back(state.over.pop(t))
        value = state.value(t, state.arena.read(*state.slot(t)))
        state.comparison.same(t, value, f"written by {shape.name} ({state.where()})")
