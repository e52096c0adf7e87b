"""Loops of a tile along an axis that is cut into several: the pieces of a flat axis, one loop each."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from onchip.check.as_nests.unsaid import no_nest

__all__ = ["exactly", "up_to"]

Cuts = tuple[tuple[int, int], ...]
"""(place of a refined axis, tile), outermost first; axes that stay whole in a turn are left out."""


def exactly(sizes: Sequence[int], tile: int, what: str) -> Cuts:
    """Return the loops that go along consecutive pieces of `tile` indices of an axis refined into `sizes`.

    Raises `NoNest` if a piece would end within an inner axis that does not end there.
    """
    found = up_to(sizes, tile)
    left = list(sizes)
    for place, own in found:
        left[place] = own
    whole = all(place == 0 or sizes[place] % own == 0 for place, own in found)
    if not whole or prod(left) != min(tile, prod(sizes)):
        shown = " x ".join(map(str, sizes))
        no_nest("across-axes", f"{what} takes {tile:,} of {shown} indices at a time")
    return found


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
