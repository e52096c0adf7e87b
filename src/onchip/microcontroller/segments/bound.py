"""What no plan that is still worth finding can be beaten by: work that a group may take at so many bytes.

Plans known already bound the search. A group, or the part of one that is known, belongs to no plan worth
finding when every plan with it has as many bytes and as much work as one that is known. Of the layers before
it that needs their least work; of those behind it the best rows of groups, which the search has by then.
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
    """Less than how much work a group's layers may take at so many bytes, from a step function.

    `known` are the plans found, `behind` the best rows of groups behind it; without any no plan is worth
    finding. What is before the group counts as its work.
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
        """A group of so many bytes is worth a look with less work than this."""
        return self._work[bisect_right(self._bytes, bytes_) - 1]


def _stairs(points: Sequence[Point]) -> list[Point]:
    """Those that none beats, from the fewest bytes on."""
    found: list[Point] = []
    for bytes_, work in sorted(points):
        if not found or work < found[-1][1]:
            found.append((bytes_, work))
    return found


def _least(stairs: Sequence[Point], bytes_: int) -> int:
    """The least work that is known within so many bytes."""
    i = bisect_right(stairs, bytes_, key=lambda point: point[0])
    return stairs[i - 1][1] if i else UNBOUNDED


def least_pixels(net: Layers) -> dict[int, int]:
    """For each tensor how many of its pixels some layer reads, directly or not, for the network's output."""
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
