"""Bytes of a scratchpad and the times at which their last owners gave them back."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

__all__ = ["Released"]


class Released:
    """For every byte, the time at which its last owner released it: disjoint stretches, ascending."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.times: list[int] = []

    def latest(self, start: int, end: int) -> int:
        """Return the time at which the last byte of [start, end) was released."""
        first, last = bisect_right(self.ends, start), bisect_left(self.starts, end)
        return max(self.times[first:last], default=0) if start < end else 0

    def set(self, start: int, end: int, time: int) -> None:
        """Record that all bytes of [start, end) are released at `time`."""
        if start >= end:
            return
        first, last = bisect_right(self.ends, start), bisect_left(self.starts, end)
        rows = [(start, end, time)]
        if first < last:
            if self.starts[first] < start:
                rows.insert(0, (self.starts[first], start, self.times[first]))
            if end < self.ends[last - 1]:
                rows.append((end, self.ends[last - 1], self.times[last - 1]))
        for column, values in zip((self.starts, self.ends, self.times), zip(*rows, strict=True), strict=True):
            column[first:last] = values
