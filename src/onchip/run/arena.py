"""The scratchpad as bytes, with a shadow that records the owner of each byte.

The bytes alone cannot reveal every wrong plan: an overwritten zero may have been a zero before. So each range
also has an owner, the last claim that reserved or wrote it, and every read of a tensor checks that all its
bytes still have that owner.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["POISON", "Arena", "Claim"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

POISON = 0xFF
"""Freed and never-written bytes: not-a-number in every floating-point format, at any address."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The owner of a range: a tensor or a scratch area, and the instruction that reserved or wrote it."""

    owner: str
    instruction: int


class Arena:
    """`size` bytes, poisoned. Ranges are half-open, in bytes of this array."""

    def __init__(self, size: int) -> None:
        self.bytes: Bytes = np.full(size, POISON, np.uint8)
        self._starts = [0]
        self._claims: list[Claim | None] = [None]

    @property
    def size(self) -> int:
        return len(self.bytes)

    def reserve(self, start: int, end: int, claim: Claim) -> None:
        """Give a range to an owner and poison it."""
        self.bytes[start:end] = POISON
        self._mark(start, end, claim)

    def release(self, start: int, end: int, owner: str) -> None:
        """Poison those bytes of a range that still belong to `owner`."""
        for a, b, claim in self.pieces(start, end):
            if claim is not None and claim.owner == owner:
                self.bytes[a:b] = POISON
                self._mark(a, b, None)

    def write(self, start: int, data: Bytes, claim: Claim) -> None:
        self.bytes[start : start + len(data)] = data
        self._mark(start, start + len(data), claim)

    def hand_over(self, start: int, end: int, claim: Claim) -> None:
        """Give a range to another owner and leave its bytes as they are."""
        self._mark(start, end, claim)

    def read(self, start: int, end: int) -> Bytes:
        """Return a copy of a range."""
        return self.bytes[start:end].copy()

    def pieces(self, start: int, end: int) -> list[tuple[int, int, Claim | None]]:
        """Return the range cut where the owner changes."""
        found = []
        i = bisect_right(self._starts, start) - 1
        while start < end and i < len(self._starts) and self._starts[i] < end:
            stop = self._starts[i + 1] if i + 1 < len(self._starts) else self.size
            found.append((max(start, self._starts[i]), min(end, stop), self._claims[i]))
            i += 1
        return found

    def intruder(self, start: int, end: int, *owners: str) -> tuple[int, int, Claim | None] | None:
        """Return the first piece of the range that belongs to none of `owners`; None when there is none."""
        for piece in self.pieces(start, end):
            if piece[2] is None or piece[2].owner not in owners:
                return piece
        return None

    def _mark(self, start: int, end: int, claim: Claim | None) -> None:
        if start >= end:
            return
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end - 1) - 1
        stop = self._starts[last + 1] if last + 1 < len(self._starts) else self.size
        starts, claims = [start], [claim]
        if self._starts[first] < start:
            starts.insert(0, self._starts[first])
            claims.insert(0, self._claims[first])
        if end < stop:
            starts.append(end)
            claims.append(self._claims[last])
        self._starts[first : last + 1] = starts
        self._claims[first : last + 1] = claims
