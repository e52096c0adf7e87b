"""A group in boxes as a nest: its loops in their order, every operand kept where its last own loop is.

Along what stays together there are no loops: all of it is there at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import gcd, lcm

from onchip.check.as_nests.cutting import taken, up_to
from onchip.network import Network
from onchip.network.axes import Cut, GroupAxes
from onchip.network.operators import Side
from onchip.network.reaches import reach_for
from onchip.plans import Boxes, Leaf, Loop, Nest

__all__ = ["boxes_as_nest", "chain", "refined"]


def boxes_as_nest(network: Network, boxes: Boxes, axes: GroupAxes) -> tuple[Nest, set[str]]:
    """Return the nest of a legal group in boxes, and what it does otherwise (names of `DIFFERENCES`)."""
    [cut] = axes.operators
    op = network.operators[cut.operator]
    reach = reach_for(network, op)
    assert reach is not None
    own = refined(cut, reach.extents)
    loops: list[tuple[int, int]] = []  # (refined axis, tile)
    behind: dict[int, int] = {}  # loops up to the last one of each axis of the reach that turns
    otherwise = set[str]()
    for axis in boxes.order:
        if reach.extents[axis] <= boxes.sizes[axis]:
            continue
        if cut.together.intersection(own[axis]):
            otherwise.add("together")
            continue
        sizes = [cut.axes[i] for i in own[axis]]
        if taken(sizes, boxes.sizes[axis]) < boxes.sizes[axis]:
            otherwise.add("pieces")
        loops += [(own[axis][place], tile) for place, tile in up_to(sizes, boxes.sizes[axis])]
        behind[axis] = len(loops)
    keep: list[list[str]] = [[] for _ in range(len(loops) + 1)]
    uses = (*reach.reads, *(c.sides for c in reach.weights), tuple(map(_along, range(len(reach.output)))))
    for sides, use in zip(uses, cut.uses, strict=True):
        name = axes.buffers[use.buffer].name
        deep = max((behind[side.axis] for side in sides if side.axis in behind), default=0)
        if not any(name in names for names in keep):
            keep[deep].append(name)
        else:  # an operand that is read twice lies where the first use needs it
            before = next(n for n, names in enumerate(keep) if name in names)
            if deep < before:
                keep[before].remove(name)
                keep[deep].append(name)
    stepped, kept, larger = _in_steps(axes, loops, keep)
    return chain(op.name, stepped, kept, ()), otherwise | ({"steps"} if larger else set())


Tiles = Sequence[tuple[int, int]]
"""Loops as (refined axis, tile)."""

Kept = Sequence[Sequence[str]]
"""The buffers at home around all loops, and in the body of each."""


def _in_steps(axes: GroupAxes, loops: Tiles, keep: Kept) -> tuple[Tiles, Kept, bool]:
    """Return the loops in steps of what windows take at a time, what is kept, and whether pieces are larger.

    Windows that go on by parts of an index take several at a time: a tile ends where one of them does, and
    none is smaller. A loop that would turn once then is left out.
    """
    [cut] = axes.operators
    found: list[tuple[int, int]] = []
    kept, larger = [list(keep[0])], False
    for n, (axis, tile) in enumerate(loops):
        inside = {name for names in keep[n + 1 :] for name in names}
        scale = lcm(
            *(
                window.per // gcd(window.per, window.stride)
                for use in cut.uses
                for window in use.slides
                if window is not None and window.axis == axis and axes.buffers[use.buffer].name in inside
            )
        )
        step = -(-tile // scale)
        larger |= step * scale > tile
        if step * scale < cut.axes[axis]:
            found.append((axis, step))
            kept.append(list(keep[n + 1]))
        else:
            kept[-1] += keep[n + 1]
    return found, kept, larger


def _along(axis: int) -> Side:
    return Side(0, axis)


def refined(cut: Cut, extents: Sequence[int]) -> list[tuple[int, ...]]:
    """Return for every axis of a reach the axes that its operator has there in the group."""
    found, place = [], 0
    for size in extents:
        product, own = 1, list[int]()
        while not own or product < size:
            own.append(place)
            product *= cut.axes[place]
            place += 1
        found.append(tuple(own))
    return found


def chain(name: str, loops: Tiles, keep: Kept, slices: Tiles) -> Nest:
    """Return the nest of one operator in nested loops of (axis, tile), and slices.

    `keep` are the buffers at home at the root and in the body of every loop.
    """
    body: tuple[Loop | Leaf, ...] = (Leaf(name, tuple(slices)),)
    *_, body = accumulate(
        reversed(list(zip(loops, keep[1:], strict=True))),
        lambda inner, one: (Loop(((name, one[0][0]),), one[0][1], inner, tuple(one[1])),),
        initial=body,
    )
    return Nest(body, tuple(keep[0]))
