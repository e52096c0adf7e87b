"""A group in boxes as a nest: its loops in their order, every operand kept where its last own loop is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import gcd, lcm

from onchip.check.as_nests.cutting import exactly
from onchip.check.as_nests.unsaid import no_nest
from onchip.network import Network
from onchip.network.axes import Cut, GroupAxes
from onchip.network.operators import Side
from onchip.network.reaches import reach_for
from onchip.plans import Boxes, Group, Leaf, Loop, Nest

__all__ = ["boxes_as_nest", "chain", "refined"]


def boxes_as_nest(network: Network, group: Group, boxes: Boxes, axes: GroupAxes) -> Nest:
    """Return the nest of a legal group in boxes. Raises `NoNest`."""
    [cut] = axes.operators
    op = network.operators[cut.operator]
    reach = reach_for(network, op)
    assert reach is not None
    own = refined(cut, reach.extents)
    torn = next(
        (a for a in boxes.order if boxes.sizes[a] < reach.extents[a] and set(own[a]) & cut.together), None
    )
    if torn is not None:
        no_nest("together", f"boxes cut {op.name} along axis {torn}, which stays together")
    loops: list[tuple[int, int]] = []  # (refined axis, tile)
    behind: dict[int, int] = {}  # loops up to the last one of each axis of the reach that turns
    for axis in boxes.order:
        sizes = [cut.axes[i] for i in own[axis]]
        if reach.extents[axis] > boxes.sizes[axis]:
            loops += [
                (own[axis][place], tile)
                for place, tile in exactly(sizes, boxes.sizes[axis], f"a box of {op.name}")
            ]
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
        if tile % scale:
            no_nest(
                "steps", f"a box of {op.name} takes {tile:,} indices, and windows take {scale:,} at a time"
            )
        loops[n] = (axis, tile // scale)
    return chain(op.name, loops, keep, ())


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


def chain(
    name: str,
    loops: Sequence[tuple[int, int]],
    keep: Sequence[Sequence[str]],
    slices: Sequence[tuple[int, int]],
) -> Nest:
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
