"""The legal distances between an input and an output that share memory: any set of integers, with holes.

A distance D is the input's address minus the output's. The two share no byte at D <= -input and at
D >= output. In between, D is legal as long as no byte of the input is overwritten before it was read. A byte
of the input and a byte of the output that must not coincide forbid one distance; the forbidden distances are
therefore a union of intervals, and none of these need begin or end at 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.int64]

__all__ = ["Distances", "Interval", "merged"]

Interval = tuple[int, int]
"""Integers from the first to the last, both included."""


@dataclass(frozen=True, slots=True)
class Distances:
    """All distances except those in `lost`: ordered intervals, with a legal distance between any two."""

    lost: tuple[Interval, ...]

    @classmethod
    def beside(cls, given: int, made: int) -> Distances:
        """Return the distances at which `given` bytes of input and `made` of output share none."""
        return cls(((1 - given, made - 1),) if given and made else ())

    @classmethod
    def but(cls, low: Bytes, high: Bytes) -> Distances:
        """Return all distances except those from low[i] to high[i], for every i."""
        import numpy as np

        if not low.size:
            return cls(())
        order = np.argsort(low, kind="stable")
        low, reach = low[order], np.maximum.accumulate(high[order])
        ends = np.flatnonzero(low[1:] > reach[:-1] + 1)
        firsts, lasts = low[np.concatenate(([0], ends + 1))], reach[np.concatenate((ends, [-1]))]
        return cls(tuple(zip(firsts.tolist(), lasts.tolist(), strict=True)))

    def __contains__(self, distance: int) -> bool:
        return not any(low <= distance <= high for low, high in self.lost)

    @property
    def least(self) -> int:
        """The least distance from 0 up from which every distance is legal, in bytes."""
        return max(0, self.lost[-1][1] + 1) if self.lost else 0

    def span(self, given: int, made: int) -> int:
        """Return the fewest bytes that hold `given` bytes of input and `made` of output.

        They are max(given + D, made) - min(D, 0), which falls up to D = 0 and rises from there: the minimum
        is at a legal distance next to 0 on either side.
        """
        low, high = next((hole for hole in self.lost if hole[0] <= 0 <= hole[1]), (1, -1))
        return min(max(given + high + 1, made), max(given, made - (low - 1)))

    def mirrored(self, given: int, made: int) -> Distances:
        """Return the distances with addresses counted downwards: D becomes made - given - D."""
        turn = made - given
        return Distances(tuple((turn - high, turn - low) for low, high in reversed(self.lost)))

    def legal(self, most: int) -> list[Interval]:
        """Return the legal distances from -most to most."""
        found, at = [], -most
        for low, high in self.lost:
            if low > at:
                found.append((at, min(low - 1, most)))
            at = max(at, high + 1)
        if at <= most:
            found.append((at, most))
        return found


def merged(intervals: Sequence[Interval]) -> list[Interval]:
    """Return the same integers as disjoint intervals in order, without the empty ones."""
    found: list[Interval] = []
    for low, high in sorted(intervals):
        if low > high:
            continue
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found
