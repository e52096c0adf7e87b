"""Instances too large for the search: the measure of their size, and near-linear addresses for them.

The search and its heuristics list, for every buffer, the buffers that are live with it: memory and time in
proportion to the overlaps, of which 100,000 buffers have up to five billion. Beyond `MOST_OVERLAPS`, buffers
get addresses as from an allocator, best fit, in the order of their beginnings and, in reverse, of their ends.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from onchip.planners.packing.buffers import Buffer

__all__ = ["MOST_OVERLAPS", "allocate", "is_large"]

MOST_OVERLAPS = 1 << 22
"""The most pairs of buffers live together, plus buffers at the moments at which the live set changes."""

TRIED = 32
"""The most holes tried before one that has room for any alignment."""


def is_large(buffers: Sequence[Buffer]) -> bool:
    """Return whether the lists that the search works on would be too long."""
    if len(buffers) ** 2 <= MOST_OVERLAPS and not any(b.gaps for b in buffers):
        return False
    import numpy as np  # here, since a command that packs little starts faster without it

    begins = np.sort(np.array([begin for b in buffers for begin, _ in b.live], np.int64))
    ends = np.sort(np.array([end for b in buffers for _, end in b.live], np.int64))
    over = np.searchsorted(ends, begins, "right")
    pairs = int((np.arange(len(begins)) - over).sum())
    times, position = np.unique(begins, return_index=True)
    past = over[position]
    kept = np.append(past[1:] != past[:-1], True)  # some buffer ends before the next begins
    alive = np.searchsorted(begins, times, "right") - past
    return pairs + int(alive[kept].sum()) > MOST_OVERLAPS


def allocate(buffers: Sequence[Buffer]) -> tuple[list[int], int]:
    """Return offsets in bytes, and the extent; fixed buffers, which must not overlap, keep their offsets.

    All others lie above the last of the fixed ones, and keep their bytes in their gaps too.
    """
    base = max((b.offset + b.size for b in buffers if b.offset is not None), default=0)
    forward = _Allocator(base).run(buffers, [(b.lower, b.upper) for b in buffers])
    backward = _Allocator(base).run(buffers, [(-b.upper, -b.lower) for b in buffers])
    return min(
        (
            (at, max((o + b.size for o, b in zip(at, buffers, strict=True)), default=0))
            for at in (forward, backward)
        ),
        key=lambda found: found[1],
    )


class _Allocator:
    """Free memory over time: disjoint, separate holes below `top`, and everything above it."""

    def __init__(self, base: int) -> None:
        self.top = base
        self.end_of: dict[int, int] = {}
        self.begin_of: dict[int, int] = {}
        self.by_size: list[tuple[int, int]] = []
        """Size and beginning of every hole, ascending."""

    def run(self, buffers: Sequence[Buffer], lives: Sequence[tuple[int, int]]) -> list[int]:
        """Return an offset for every buffer; at a moment ends precede beginnings, and large ones small."""
        offsets = [b.offset or 0 for b in buffers]
        free = [i for i, b in enumerate(buffers) if b.offset is None]
        starts = [(lives[i][0], 1, -buffers[i].size, i) for i in free]
        ends = [(lives[i][1], 0, 0, i) for i in free]
        for _, is_start, _, i in sorted(starts + ends):
            if is_start:
                offsets[i] = self.take(buffers[i].size, buffers[i].alignment)
            else:
                self.give(offsets[i], offsets[i] + buffers[i].size)
        return offsets

    def take(self, size: int, alignment: int) -> int:
        """Return the beginning of `size` bytes in the smallest sufficient hole, or above everything."""
        first = bisect_left(self.by_size, (size, -1))
        candidates = self.by_size[first : first + TRIED]
        if alignment > 1:
            roomy = bisect_left(self.by_size, (size + alignment - 1, -1))
            candidates += self.by_size[roomy : roomy + 1]
        for _, begin in candidates:
            at = -(-begin // alignment) * alignment
            end = self.end_of[begin]
            if at + size <= end:
                self._drop(begin)
                self._add(begin, at)
                self._add(at + size, end)
                return at
        at = -(-self.top // alignment) * alignment
        self._add(self.top, at)
        self.top = at + size
        return at

    def give(self, begin: int, end: int) -> None:
        """Free [begin, end) again, merged with adjacent holes."""
        if end in self.end_of:
            after = self.end_of[end]
            self._drop(end)
            end = after
        if begin in self.begin_of:
            before = self.begin_of[begin]
            self._drop(before)
            begin = before
        if end == self.top:
            self.top = begin
        else:
            self._add(begin, end)

    def _add(self, begin: int, end: int) -> None:
        if begin < end:
            self.end_of[begin] = end
            self.begin_of[end] = begin
            insort(self.by_size, (end - begin, begin))

    def _drop(self, begin: int) -> None:
        end = self.end_of.pop(begin)
        del self.begin_of[end]
        del self.by_size[bisect_left(self.by_size, (end - begin, begin))]
