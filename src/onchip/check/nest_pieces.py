"""The contiguous pieces of a box of a tensor that lies in DRAM in tiles (docs/nest-times.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from math import prod

__all__ = ["pieces_of"]


def pieces_of(lengths: Sequence[int], sides: Sequence[int], tile: Sequence[int]) -> Counter[int]:
    """Return how many contiguous pieces of how many elements a box of a tensor in tiles has.

    Along each side its length is that of whole tiles, of all tiles to the end, or of a part of one tile that
    divides the side. A piece ends inside a tile where the box has not all of the tile; else it goes on over
    the tiles that follow, as rows of a box do in a tensor that lies row by row.
    """
    heights = [_heights(*one) for one in zip(lengths, sides, tile, strict=True)]
    parts = [n for n, (length, size, side) in enumerate(zip(lengths, tile, sides, strict=True))
             if length < size and side % size == 0]  # fmt: skip
    found: Counter[int] = Counter()
    if parts:
        last = parts[-1]
        for one in product(*(h.items() for h in heights)):
            sizes = [height for height, _ in one]
            found[prod(sizes[last:])] += prod(sizes[:last]) * prod(n for _, n in one)
        return found
    rest = len(lengths)
    while rest:
        rest -= 1
        if lengths[rest] < sides[rest]:
            break
    inside = prod(lengths[rest:])
    for one in product(*(h.items() for h in heights[:rest])):
        found[inside * prod(height for height, _ in one)] += prod(n for _, n in one)
    return found


def _heights(length: int, side: int, tile: int) -> Counter[int]:
    """Return the extents of the tiles that a box meets along one side, each with their number."""
    if length < tile:
        return Counter([length])
    full, rest = divmod(length, tile)
    return Counter({tile: full} | ({rest: 1} if rest else {}))
