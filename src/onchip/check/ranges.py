"""The taken bytes: disjoint half-open ranges, sorted by address."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

__all__ = ["Ranges"]

Range = tuple[int, int]


class Ranges:
    """Disjoint half-open byte ranges, each with the name of its owner. A query costs a binary search."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._at: dict[int, tuple[int, str]] = {}
        self.total = 0

    def neighbour(self, start: int, end: int) -> tuple[str, Range] | None:
        """Return the lowest taken range that shares a byte with [start, end), or None if that is free."""
        i = bisect_right(self._starts, start) - 1
        for first in self._starts[max(i, 0) : i + 2]:
            last, owner = self._at[first]
            if first < end and start < last:
                return owner, (first, last)
        return None

    def around(self, start: int, end: int, size: int) -> Range:
        """Return the bytes of [0, size) that are free on both sides of a range, with the range itself.

        The range is one that is taken, or has no byte.
        """
        i = bisect_left(self._starts, start)
        low = self._at[self._starts[i - 1]][0] if i else 0
        above = bisect_left(self._starts, end)
        return low, self._starts[above] if above < len(self._starts) else size

    def take(self, start: int, end: int, owner: str) -> None:
        """Take a free range; ignore an empty one."""
        if start < end:
            insort(self._starts, start)
            self._at[start] = (end, owner)
            self.total += end - start

    def release(self, start: int, end: int) -> None:
        """Release a range, exactly as it was taken."""
        if start < end:
            assert self._at.pop(start)[0] == end
            del self._starts[bisect_left(self._starts, start)]
            self.total -= end - start


def without(whole: Range, hole: Range) -> list[Range]:
    """Return the parts of `whole` outside `hole`."""
    parts = [(whole[0], min(whole[1], hole[0])), (max(whole[0], hole[1]), whole[1])]
    return [(a, b) for a, b in parts if a < b]
