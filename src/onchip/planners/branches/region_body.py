"""The objects that an address search moves: bodies of parts, in units of the alignment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["ALL_RULES", "Bases", "Body", "Part", "RegionRules", "forbidden", "free_bases"]

Bases = Mapping[str, Sequence[int]]
"""By cluster, bases to try first."""


@dataclass(frozen=True, slots=True)
class RegionRules:
    """The rules that shorten the search, each a switch. None changes whether there are addresses."""

    quick: bool = True
    """Heuristics and the packer before the complete search."""

    forced: bool = True
    """If only one order of two pieces is left, take it."""

    section_bound: bool = True
    """At a step, the parts above (below) a level must fit between it and the end (beginning)."""

    symmetry: bool = True
    """Of free pieces alike in size and steps, the earlier one lies lower."""


ALL_RULES = RegionRules()


@dataclass(frozen=True, slots=True)
class Part:
    """`size` units at base + `offset`, those of `piece`, live in the half-open steps [start, end)."""

    piece: int
    offset: int
    size: int
    start: int
    end: int

    def meets(self, other: Part) -> bool:
        """Return whether both live at a common step and take bytes."""
        return self.start < other.end and other.start < self.end and self.size > 0 and other.size > 0


@dataclass(frozen=True, slots=True)
class Body:
    """A piece or a cluster, moved as one: its base is in [low, high], so fixed if they are equal."""

    cluster: str | None
    parts: tuple[Part, ...]
    low: int
    high: int

    @property
    def impossible(self) -> bool:
        """True if it fits nowhere, even alone: no base is left, or two of its parts share a byte."""
        return self.low > self.high or any(
            p.meets(q) and p.offset < q.offset + q.size and q.offset < p.offset + p.size
            for k, p in enumerate(self.parts)
            for q in self.parts[:k]
        )

    @property
    def area(self) -> int:
        """Units times steps."""
        return sum(p.size * (p.end - p.start) for p in self.parts)

    @property
    def steps(self) -> int:
        """The steps at which any part of it lives, counted once a part."""
        return sum(p.end - p.start for p in self.parts)

    @property
    def size(self) -> int:
        """Units of all its parts."""
        return sum(p.size for p in self.parts)


def forbidden(lower: Body, upper: Body) -> list[tuple[int, int]]:
    """Return the open intervals that the base of `upper` less that of `lower` avoids: ascending, disjoint.

    Parts p of `lower` and q of `upper` that meet share a byte exactly if the difference of the bases is more
    than `p.offset - q.offset - q.size` and less than `p.offset + p.size - q.offset`.
    """
    intervals = [
        (p.offset - q.offset - q.size, p.offset + p.size - q.offset)
        for p in lower.parts
        for q in upper.parts
        if p.meets(q)
    ]
    if len(intervals) < 2:
        return intervals
    intervals.sort()
    merged: list[tuple[int, int]] = []
    for low, high in intervals:
        if merged and low < merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return merged


def free_bases(body: Body, taken: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the closed intervals of bases that lie in none of the open intervals `taken`, ascending."""
    free, at = [], body.low
    for low, high in sorted(taken):
        if low >= at:
            free.append((at, min(low, body.high)))
        at = max(at, high)
        if at > body.high:
            return free
    return [*free, (at, body.high)]
