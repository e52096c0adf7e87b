"""Loops of a tile along an axis that is cut into several: the pieces of a flat axis, one loop each."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

__all__ = ["taken", "up_to"]

Cuts = tuple[tuple[int, int], ...]
"""(place of a refined axis, tile), outermost first; axes that stay whole in a turn are left out."""


def up_to(sizes: Sequence[int], tile: int) -> Cuts:
    """Return loops along an axis refined into `sizes` that take as many indices in a turn as they can, and
    no more than `tile`."""
    found: list[tuple[int, int]] = []
    for place, size in enumerate(sizes if tile < prod(sizes) else ()):
        own = tile // prod(sizes[place + 1 :])
        if size > 1:
            found.append((place, max(1, own)))
        if own:
            break
    return tuple(found)


def taken(sizes: Sequence[int], tile: int) -> int:
    """Return the most indices that a turn of these loops takes."""
    cuts = dict(up_to(sizes, tile))
    return prod(cuts.get(place, size) for place, size in enumerate(sizes))
