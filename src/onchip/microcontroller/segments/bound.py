"""A bound that prunes the search: the most work that a group of so many bytes may take to be of use.

The plans found so far bound the search. A group, or a known part of one, is of no use when a plan found is no
worse in bytes and work than every plan with that group. The layers before the group count with their least
work; those behind it with the best rows of groups, which the search has found by then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from onchip.microcontroller.segments.layers import Layers
from onchip.network.windows import Window

__all__ = ["UNBOUNDED", "Allowed", "Point", "least_pixels"]

UNBOUNDED = 1 << 62

Point = tuple[int, int]
"""Bytes, work."""


class Allowed:
    """The limit on a group's work as a step function of its bytes.

    `known` are the plans found, `behind` the best rows of groups behind the group; without any `behind` no
    plan is of use. The work before the group counts as the group's own.
    """

    def __init__(self, known: Sequence[Point], behind: Sequence[Point]) -> None:
        stairs = _stairs(known)
        at = sorted({0, *(b for b, _ in stairs), *(b for b, _ in behind)})
        self._bytes: list[int] = []
        self._work: list[int] = []
        for bytes_ in at:
            work = max((_least(stairs, max(bytes_, b)) - w for b, w in behind), default=0)
            if not self._work or work != self._work[-1]:
                self._bytes.append(bytes_)
                self._work.append(work)

    def work(self, bytes_: int) -> int:
        """Return the work below which a group of so many bytes is useful."""
        return self._work[bisect_right(self._bytes, bytes_) - 1]


def _stairs(points: Sequence[Point]) -> list[Point]:
    """Return the points that no other dominates, by increasing bytes."""
    found: list[Point] = []
    for bytes_, work in sorted(points):
        if not found or work < found[-1][1]:
            found.append((bytes_, work))
    return found


def _least(stairs: Sequence[Point], bytes_: int) -> int:
    """Return the least known work within so many bytes."""
    i = bisect_right(stairs, bytes_, key=lambda point: point[0])
    return stairs[i - 1][1] if i else UNBOUNDED


def least_pixels(net: Layers) -> dict[int, int]:
    """Return, for each tensor, how many of its pixels the network's output needs, directly or indirectly."""
    rows: dict[int, set[int]] = {}
    columns: dict[int, set[int]] = {}
    last = net.layers[-1].makes
    rows[last], columns[last] = set(range(net.maps[last].rows)), set(range(net.maps[last].columns))
    for layer in reversed(net.layers):
        for windows, axis in (layer.rows, rows), (layer.columns, columns):
            mine = axis.get(layer.makes, set())
            for t, window in zip(layer.reads, windows, strict=True):
                axis.setdefault(t, set()).update(_read(window, mine))
    return {t: len(rows[t]) * len(columns[t]) for t in rows}


def _read(window: Window, lines: set[int]) -> set[int]:
    return {read for line in lines for read in range(*window.reads((line, line + 1)))}
