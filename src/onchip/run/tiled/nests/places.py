"""The addresses of a nest's homes in its scratch: the lowest that is free for as long as each is alive.

What has several copies has all of its slots for as long as the nest runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from onchip.network.axes import GroupAxes
from onchip.plans import PlanChip
from onchip.run.tiled.nests.forms import Span
from onchip.run.tiled.nests.levels import Beside, Home
from onchip.run.tiled.nests.tree import Tree

__all__ = ["places_of"]


def places_of(tree: Tree, axes: GroupAxes, chip: PlanChip) -> tuple[dict[Home | Beside, Span], int]:
    """Return the bytes [start, end) of every home and of what lies beside some, and the end of the last.

    Three orders are tried, and the first that ends lowest is taken: the largest come first (of equal ones
    those that live earlier, and for less long); those that begin first (that live longest, that are
    largest); or those that end last (that are largest, that begin first).
    """
    every: list[Home | Beside] = [*tree.homes, *tree.beside]
    lives = {home: tree.lives(home) for home in every}
    sizes = {home: _bytes(home, axes, chip) for home in every}
    orders = (
        sorted(every, key=lambda home: (-sizes[home], lives[home])),
        sorted(every, key=lambda home: (lives[home][0], -lives[home][1], -sizes[home])),
        sorted(every, key=lambda home: (-lives[home][1], -sizes[home], lives[home][0])),
    )
    tried = [_placed(order, sizes, lives) for order in orders]
    return min(tried, key=lambda one: one[1])


def _placed(
    order: Sequence[Home | Beside], sizes: Mapping[Home | Beside, int], lives: Mapping[Home | Beside, Span]
) -> tuple[dict[Home | Beside, Span], int]:
    """Place some homes one after the other, each as low as what is there before it allows."""
    found: dict[Home | Beside, Span] = {}
    for home in order:
        begin, end = lives[home]
        taken = sorted(
            place for other, place in found.items() if lives[other][0] < end and begin < lives[other][1]
        )
        start = 0
        for low, high in taken:
            if start + sizes[home] <= low:
                break
            start = max(start, high)
        found[home] = (start, start + sizes[home])
    return found, max((end for _, end in found.values()), default=0)


def _bytes(home: Home | Beside, axes: GroupAxes, chip: PlanChip) -> int:
    if isinstance(home, Beside):
        buffer = axes.buffers[home.buffer]
        held = prod(home.most(buffer.sides))
        return chip.round_up(held * chip.accumulated(buffer.element) * (home.values or 1))
    buffer = axes.buffers[home.buffers[-1]]
    width = chip.accumulated(buffer.element) if home.wide else buffer.element
    most = home.most(buffer.sides)
    slot = chip.round_up(prod(most) * width)
    if home.ring is None or home.ring.windows is None or home.turning is None:
        return home.slots * slot
    new = max(high - low for low, high in home.ring.windows.moved[home.number])
    return slot + (home.copies - 1) * chip.round_up(prod(most) // max(most[home.turning], 1) * new * width)
