"""The addresses of a nest's homes in its scratch: the lowest that is free for as long as each is alive."""

from __future__ import annotations

from math import prod

from onchip.network.axes import GroupAxes
from onchip.plans import PlanChip
from onchip.run.tiled.nests.forms import Span
from onchip.run.tiled.nests.levels import Beside, Home
from onchip.run.tiled.nests.tree import Tree

__all__ = ["places_of"]


def places_of(tree: Tree, axes: GroupAxes, chip: PlanChip) -> tuple[dict[Home | Beside, Span], int]:
    """Return the bytes [start, end) of every home and of what lies beside some, and the end of the last.

    The largest are placed first, then those that live earlier, and for less long.
    """
    found: dict[Home | Beside, Span] = {}
    every: list[Home | Beside] = [*tree.homes, *tree.beside]
    lives = {home: tree.lives(home) for home in every}
    sizes = {home: chip.round_up(_bytes(home, axes, chip)) for home in every}
    for home in sorted(every, key=lambda home: (-sizes[home], lives[home])):
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


def _bytes(home: Home | Beside, axes: GroupAxes, chip: PlanChip) -> int:
    if isinstance(home, Beside):
        buffer = axes.buffers[home.buffer]
        return prod(home.most(buffer.sides)) * chip.accumulated(buffer.element) * (home.values or 1)
    buffer = axes.buffers[home.buffers[-1]]
    return prod(home.most(buffer.sides)) * (chip.accumulated(buffer.element) if home.wide else buffer.element)
