"""The addresses of a nest's homes in its scratch: the lowest that is free for as long as each is alive."""

from __future__ import annotations

from math import prod

from onchip.network.axes import GroupAxes
from onchip.plans import PlanChip
from onchip.run.tiled.nests.forms import Span
from onchip.run.tiled.nests.levels import Home
from onchip.run.tiled.nests.tree import Tree

__all__ = ["places_of"]


def places_of(tree: Tree, axes: GroupAxes, chip: PlanChip) -> tuple[dict[Home, Span], int]:
    """Return the bytes [start, end) of every home, and the end of the last.

    The largest are placed first, then those that live earlier, and for less long.
    """
    found: dict[Home, Span] = {}
    lives = {home: tree.lives(home) for home in tree.homes}
    sizes = {home: chip.round_up(_bytes(home, axes)) for home in tree.homes}
    for home in sorted(tree.homes, key=lambda home: (-sizes[home], lives[home])):
        size = sizes[home]
        taken = sorted(
            found[other]
            for other in found
            if lives[other][0] < lives[home][1] and lives[home][0] < lives[other][1]
        )
        start = 0
        for low, high in taken:
            if start + size <= low:
                break
            start = max(start, high)
        found[home] = (start, start + size)
    return found, max((end for _, end in found.values()), default=0)


def _bytes(home: Home, axes: GroupAxes) -> int:
    buffer = axes.buffers[home.buffers[-1]]
    return prod(home.most(buffer.sides)) * buffer.element
