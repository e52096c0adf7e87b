"""Addresses for a chain of groups: each output over or beside its input, scratch where neither lies.

A group that runs forward writes upwards from below its input, one in reverse downwards from above it; so a
chain that alternates needs no modulo and moves nothing. The search goes through the few places that can
matter (at an end of the pool, next to a scratch, as close as the distance allows), all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

__all__ = ["Link", "Placed", "Traversal", "Way", "place"]

Traversal = Literal["forward", "reverse"]


ALIGNMENT = 4
"""Of scratches: sums and workspaces in them are read by words."""


@dataclass(frozen=True, slots=True)
class Way:
    """A group run one way: the bytes of its scratch, and its safe distance (None: output beside input)."""

    scratch: int
    distance: int | None


@dataclass(frozen=True, slots=True)
class Link:
    """A group to place: bytes of its input (0: it is fetched) and output, and what running either way takes.

    A way in which it must not run is None: in reverse where it must begin with the first row.
    """

    input: int
    output: int
    forward: Way | None
    reverse: Way | None

    @property
    def ways(self) -> tuple[tuple[Traversal, Way], ...]:
        both: tuple[tuple[Traversal, Way | None], ...] = ("forward", self.forward), ("reverse", self.reverse)
        return tuple((traversal, way) for traversal, way in both if way is not None)

    @property
    def needs(self) -> int:
        """The fewest bytes in which the group can run."""
        return min(
            way.scratch
            + min(
                self.input + self.output,
                max(self.input + apart, self.output) if apart is not None else 1 << 60,
            )
            for _, way in self.ways
            for apart in (way.distance,)
        )


@dataclass(frozen=True, slots=True)
class Placed:
    """Addresses of the first input and of every link's output and scratch, and which way each link runs."""

    bytes: int
    input: int
    outputs: tuple[int, ...]
    scratches: tuple[int, ...]
    traversals: tuple[Traversal, ...]


def place(links: Sequence[Link]) -> Placed:
    """The placement of least extent that the candidates allow; the greatest `needs` is a bound for any."""
    low = max(link.needs for link in links)
    found = _within(links, low)
    if found is not None:
        return found
    high = 2 * max(link.input + link.output + way.scratch for link in links for _, way in link.ways)
    best = _within(links, high)
    while best is None:
        high *= 2
        best = _within(links, high)
    while high - low > 1:
        middle = (low + high) // 2
        found = _within(links, middle)
        low, high, best = (low, middle, found) if found is not None else (middle, high, best)
    assert best is not None
    return best


def _within(links: Sequence[Link], pool: int) -> Placed | None:
    """A placement in `pool` bytes, or None where no candidate leads to one."""

    @cache
    def onwards(i: int, at: int) -> tuple[tuple[int, int, Traversal], ...] | None:
        """Outputs, scratches and traversals from link i on, whose input lies at `at`."""
        if i == len(links):
            return ()
        for choice in _choices(links, i, at, pool):
            rest = onwards(i + 1, choice[0])
            if rest is not None:
                return (choice, *rest)
        return None

    first = links[0]
    margins = [0, *(way.scratch for _, way in first.ways)]
    starts = dict.fromkeys(a for m in margins for a in (pool - first.input - m, m) if a >= 0)
    for at in starts:
        if at + first.input > pool:
            continue
        found = onwards(0, at)
        if found is not None:
            outputs, scratches, traversals = zip(*found, strict=True)
            return Placed(pool, at, outputs, scratches, traversals)
    return None


def _choices(links: Sequence[Link], i: int, at: int, pool: int) -> list[tuple[int, int, Traversal]]:
    """Where link i's output and scratch may go, and which way it runs, when its input lies at `at`."""
    link = links[i]
    end = at + link.input
    coming = [way.scratch for _, way in links[i + 1].ways] if i + 1 < len(links) else []
    found: dict[tuple[int, int, Traversal], None] = {}
    for traversal, way in link.ways:
        margins = (0, way.scratch, *coming)
        places = {a for m in margins for a in (m, pool - link.output - m)}
        if link.input:
            places |= {at - link.output, end}
            if way.distance is not None:
                places.add(at - way.distance if traversal == "forward" else end + way.distance - link.output)
        for a in sorted(places):
            if a < 0 or a + link.output > pool:
                continue
            beside = not link.input or a + link.output <= at or a >= end
            apart = at - a if traversal == "forward" else a + link.output - end
            if not beside and (way.distance is None or apart < way.distance):
                continue
            taken = [(a, a + link.output), *([(at, end)] if link.input else [])]
            scratch = _gap(way.scratch, taken, pool)
            if scratch is not None:
                found[a, scratch, traversal] = None
    return list(found)


def _gap(size: int, taken: Sequence[tuple[int, int]], pool: int) -> int | None:
    """The lowest aligned address of `size` free bytes; 0 for none."""
    if not size:
        return 0
    free = 0
    for first, end in sorted(taken):
        if first - free >= size:
            return free
        free = max(free, -(-end // ALIGNMENT) * ALIGNMENT)
    return free if pool - free >= size else None
