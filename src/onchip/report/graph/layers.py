"""Columns of a directed graph: the column of each box, the order within columns, and the heights.

The three steps are those of Sugiyama's method: columns by longest path, order by barycentres, heights by
least squares. Links that pass a column have a place of their own in it (a *via*), so that no link crosses a
box.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Arc", "Place", "columns_of", "heights", "in_order"]

SWEEPS = 9
"""Passes over the columns, forward and back: more change little. The last goes forward: chains are level."""


@dataclass(frozen=True, slots=True)
class Place:
    """An occupied place in a column: a box, or a link that passes the column (`box` is None)."""

    height: float
    box: int | None = None


@dataclass(frozen=True, slots=True)
class Arc:
    """A piece of a link from one column to the next; `out` and `into` are heights within its two places."""

    source: int
    target: int
    out: float
    into: float


def columns_of(count: int, links: Sequence[tuple[int, int]]) -> list[int]:
    """Return the column of each box: one after the last box that it follows, sources beside a first reader.

    Raises `ValueError` for a cycle.
    """
    followers: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for a, b in links:
        followers[a].append(b)
        waiting[b] += 1
    sources = [v for v in range(count) if not waiting[v]]
    column, ready, seen = [0] * count, list(sources), 0
    while ready:
        a = ready.pop()
        seen += 1
        for b in followers[a]:
            column[b] = max(column[b], column[a] + 1)
            waiting[b] -= 1
            if not waiting[b]:
                ready.append(b)
    if seen < count:
        raise ValueError("the links go round in a circle")
    for a in sources:
        if followers[a]:
            column[a] = min(column[b] for b in followers[a]) - 1
    return column


def in_order(columns: list[list[int]], arcs: Sequence[Arc]) -> list[list[int]]:
    """Return the places of every column in the order of fewest crossings that a few sweeps find."""
    before, after = _neighbours(arcs)
    best, fewest = columns, _crossings(columns, after)
    order = [list(c) for c in columns]
    for sweep in range(SWEEPS):
        if not fewest:
            break
        forward = sweep % 2 == 0
        rank = {p: float(i) for column in order for i, p in enumerate(column)}
        for column in order if forward else reversed(order):
            near = before if forward else after
            weight = {p: _mean([rank[q] for q, _, _ in near.get(p, ())], rank[p]) for p in column}
            column.sort(key=lambda p: weight[p])
            rank.update((p, float(i)) for i, p in enumerate(column))
        crossings = _crossings(order, after)
        if crossings < fewest:
            best, fewest = [list(c) for c in order], crossings
    return best


def heights(
    columns: Sequence[Sequence[int]], places: Sequence[Place], arcs: Sequence[Arc], gap: float
) -> dict[int, float]:
    """Return the top of every place: as level with its links as the order and `gap` between places allow."""
    before, after = _neighbours(arcs)
    top: dict[int, float] = {}
    for column in columns:
        y = 0.0
        for p in column:
            top[p] = y
            y += places[p].height + gap
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        first, second = (before, after) if forward else (after, before)
        for column in columns if forward else reversed(columns):
            wanted = []
            for p in column:
                near = first.get(p) or second.get(p) or []
                wanted.append(_mean([top[q] + theirs - own for q, theirs, own in near], top[p]))
            _spread(column, wanted, places, gap, top)
    least = min(top.values(), default=0.0)
    return {p: y - least for p, y in top.items()}


def _spread(
    column: Sequence[int], wanted: Sequence[float], places: Sequence[Place], gap: float, top: dict[int, float]
) -> None:
    """Set tops nearest to the wanted ones, by squares, in the given order: colliding places are pooled."""
    offset, pools = 0.0, list[tuple[float, int]]()  # (sum of wanted less offset, members)
    offsets = []
    for p, want in zip(column, wanted, strict=True):
        offsets.append(offset)
        total, members = want - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / members:
            more, others = pools.pop()
            total, members = total + more, members + others
        pools.append((total, members))
        offset += places[p].height + gap
    tops = [total / members for total, members in pools for _ in range(members)]
    for p, base, shift in zip(column, tops, offsets, strict=True):
        top[p] = base + shift


def _neighbours(
    arcs: Sequence[Arc],
) -> tuple[dict[int, list[tuple[int, float, float]]], dict[int, list[tuple[int, float, float]]]]:
    """Return each place's links in the column before and after: (place, its height, own height)."""
    before: dict[int, list[tuple[int, float, float]]] = {}
    after: dict[int, list[tuple[int, float, float]]] = {}
    for a in arcs:
        before.setdefault(a.target, []).append((a.source, a.out, a.into))
        after.setdefault(a.source, []).append((a.target, a.into, a.out))
    return before, after


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _crossings(columns: Sequence[Sequence[int]], after: dict[int, list[tuple[int, float, float]]]) -> int:
    """Return the pairs of arcs that cross, counted as inversions."""
    rank = {p: i for column in columns for i, p in enumerate(column)}
    found = 0
    for column in columns:
        ends: list[int] = []
        for p in column:
            targets = sorted(rank[q] for q, _, _ in after.get(p, ()))
            found += sum(len(ends) - bisect_right(ends, t) for t in targets)
            for t in targets:
                insort(ends, t)
    return found
