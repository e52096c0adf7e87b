"""Whole operands of a tiled group: read and made where they lie, in ranges of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import Mismatch
from onchip.run.tiled.maps import Map, Region

if TYPE_CHECKING:
    from onchip.run.machine import Machine
    from onchip.run.tiled.shape import GroupShape

__all__ = ["Place", "Whole", "finish_whole", "whole_operands"]

Array = np.ndarray[Any, Any]
Bools = np.ndarray[Any, np.dtype[np.bool_]]


class Whole:
    """All of a map in the arena, with the methods of a `Ring`: every row has its own place.

    `images` are those of the sub-group at work. Each row knows whether it was made. Where it shares bytes
    with another operand, `shadow` knows of each byte whether it has been written over.
    """

    def __init__(self, machine: Machine, t: int, found: Map, *, made: bool) -> None:
        layout, (start, end) = machine.slots.layout[t], machine.slot(t)
        cells = machine.arena.bytes[start:end][: layout.count * layout.pitch].reshape(layout.count, -1)
        self.owner = machine.owner(t)
        self.data: Array = found.whole(cells[:, : layout.dtype.itemsize].view(layout.dtype)[:, 0])
        assert np.shares_memory(self.data, machine.arena.bytes)
        self.made: Bools = np.full((found.images, found.rows), made)
        self.images = (0, found.images)
        self.shadow: list[Bools] = []  # by byte of an element, [images, channels, rows, columns]
        self.writes = not made

    def share(self, machine: Machine, t: int, found: Map, gone: Bools, first: int) -> None:
        """`gone` has a bool for every byte of the arena from `first` on; it is one with another operand."""
        layout, (start, _) = machine.slots.layout[t], machine.slot(t)
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
        """Everything stays."""

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
        """Some channels of these rows are written; their values come later."""
        for shadow in self.shadow:
            shadow[slice(*self.images), channels, slice(*rows)] = True

    # -- bytes ---------------------------------------------------------------------------------------------

    def write(self, part: tuple[slice, ...], value: Array) -> None:
        """Write [images, channels, rows, columns] of it."""
        self.data[part] = value
        for shadow in self.shadow:
            shadow[part] = True

    def read(self, part: tuple[slice, ...], reader: str) -> Array:
        """[images, channels, rows, columns] of it. Raises `Mismatch` for what was written over."""
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


def whole_operands(machine: Machine, shape: GroupShape, streamed: Collection[int]) -> Mapping[int, Whole]:
    """The operands that do not stream, each in its range. Refuses, as the machine does, what is not there."""
    at = f"{shape.name} ({machine.where()})"
    found: dict[int, Whole] = {}
    for t in shape.external:
        if t not in streamed:
            machine.expect_whole(t, f"read by {at}", "input-")
            machine.comparison.same(
                t, machine.value(t, machine.arena.read(*machine.slot(t))), f"read by {at}"
            )
            found[t] = Whole(machine, t, shape.maps[t], made=True)
    for t in shape.escaping:
        if t in streamed:
            continue
        if t not in machine.address:
            machine.refuse("output-not-reserved", f"{machine.name(t)}, written by {shape.name}, has no range")
        if t in machine.parts:
            machine.refuse("join-not-concat", f"{shape.name} is a group, and joins nothing")
        under = machine.over.get(t)
        owners = () if under is None else (machine.owner(under),)
        machine.expect_owner(*machine.slot(t), machine.owner(t), f"reserved for {at}", *owners)
        found[t] = Whole(machine, t, shape.maps[t], made=False)
        if under in found:
            slots = machine.slot(t), machine.slot(under)
            first = min(start for start, _ in slots)
            gone = np.zeros(max(end for _, end in slots) - first, np.bool_)
            for x in (t, under):
                found[x].share(machine, x, shape.maps[x], gone, first)
    return found


def finish_whole(machine: Machine, shape: GroupShape, whole: Mapping[int, Whole]) -> None:
    """What was made in place is there; what it was made over gives back what it leaves."""
    for t in whole:
        if t not in shape.escaping:
            continue
        machine.arena.hand_over(*machine.slot(t), machine.claim(t))
        if t in machine.over:
            machine.give_back(machine.over.pop(t))
        value = machine.value(t, machine.arena.read(*machine.slot(t)))
        machine.comparison.same(t, value, f"written by {shape.name} ({machine.where()})")
