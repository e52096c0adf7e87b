"""The candidate sizes of boxes along one axis, and the needs of boxes of a size of an operand's side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isqrt, prod
from typing import TYPE_CHECKING, Any

from onchip.network import Side

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["MOST_BOXES", "ranges", "sizes_along", "spans", "thinned"]

LONG = 1 << 20
"""Axes longer than this are cut into fewer numbers of boxes."""

WINDOWED = 1 << 13
"""Axes with windows longer than this are cut only into boxes of the least size of every number."""

MOST_BOXES = 1 << 22
"""The most boxes of a plan that the checker accepts, along any axis."""


def thinned(every: Sequence[list[int]], outer: int, most: int) -> list[list[int]]:
    """Return, of the candidate sizes along every axis, a choice that makes at most `most` shapes."""
    sizes = list(every)
    for axis in range(outer, len(sizes)):
        # Along a sum keep the least, the middle and the largest size: the other axes matter more.
        if prod(map(len, sizes)) > most:
            along = sizes[axis]
            sizes[axis] = sorted({along[0], along[len(along) // 2], along[-1]})
    while prod(map(len, sizes)) > most:
        longest = max(range(len(sizes)), key=lambda at: len(sizes[at]))
        along = sizes[longest]
        fewer = sorted({*along[:2], *along[::2], along[-1]})
        sizes[longest] = fewer if len(fewer) < len(along) else [along[0], along[-1]][: len(along) - 1]
    return sizes


def sizes_along(n: int, sides: Iterable[Side] = ()) -> tuple[list[int], bool]:
    """Return the candidate sizes of boxes along an axis, and whether no other size is better.

    For every number of boxes the least size; and any size that needs less of a side than all smaller ones of
    that number, as when two outputs share an input and a box ends between them. For a very long axis the
    least size for every small number, and for some larger ones.
    """
    if n > LONG:
        counts = [*range(1, 1024), *(1 << k for k in range(10, 64) if 1 << k <= min(n, MOST_BOXES))]
        return sorted({-(-n // count) for count in (*counts, *([n] if n <= MOST_BOXES else []))}), False
    root = isqrt(n) + 1
    least = sorted({-(-n // count) for count in (*range(1, root + 1), *(-(-n // s) for s in range(1, root)))})
    uneven = [side for side in sides if not _even(side)]
    if not uneven:
        return least, True
    if n > WINDOWED:
        return least, False
    return _undominated(n, uneven), True


def _even(side: Side) -> bool:
    """Return whether neighbouring boxes share nothing of a side and skip the same, wherever they are cut."""
    return side.per == 1 and side.before == 0 and side.span <= side.stride


def _undominated(n: int, sides: Sequence[Side]) -> list[int]:
    """Return the undominated sizes of boxes.

    A smaller size dominates one if it makes as many boxes and needs no more of any side, in all and at once.
    """
    found: list[int] = []
    count, kept = 0, list[list[int]]()
    for size in range(1, n + 1):
        each = [spans(side, n, size) for side in sides]
        needs = [int(figure) for span in each for figure in (span.sum(), span.max())]
        if -(-n // size) != count:
            count, kept = -(-n // size), []
        if not any(all(a <= b for a, b in zip(one, needs, strict=True)) for one in kept):
            kept.append(needs)
            found.append(size)
    return found


def spans(side: Side, size: int, box: int) -> Numbers:
    """Return the number of a side's elements that every box along its axis needs."""
    import numpy as np

    first, last = ranges(side, size, box)
    found: Numbers = np.maximum(last - first, 0)
    return found


def ranges(side: Side, size: int, box: int) -> tuple[Numbers, Numbers]:
    """Return the first and the end of the elements that every box along a side's axis needs."""
    import numpy as np

    wide = size * side.stride + abs(side.before) >= 1 << 62
    begin = np.arange(0, size, box, dtype=np.int64).astype(object if wide else np.int64)
    first = (begin * side.stride - side.before) // side.per
    last = ((np.minimum(begin + box, size) - 1) * side.stride - side.before) // side.per + side.span
    return np.clip(first, 0, side.size).astype(np.int64), np.clip(last, 0, side.size).astype(np.int64)
