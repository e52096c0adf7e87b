"""Copies of a group in similar cells: networks repeat themselves, so columns may, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from onchip.network import bits, mask
from onchip.planners.fusion.problem import FusionProblem

__all__ = ["Copies"]

MOST_PERIODS = 24


class Copies:
    """The copies of a group: shifted in the order so that all its operators meet operators like them.

    Groups are given by places in the network's order, ascending. A copy is convex; the caller computes its
    cost.
    """

    def __init__(self, problem: FusionProblem) -> None:
        self.network = problem.network
        order = self.network.order
        place = {v: i for i, v in enumerate(order)}
        self.kind = [_kind(problem, v) for v in order]
        self.above = [mask(place[p] for p in bits(self.network.predecessors[v])) for v in order]
        for v in range(len(order)):
            for p in bits(self.above[v]):
                self.above[v] |= self.above[p]
        self.below = [0] * len(order)
        for v in range(len(order)):
            for p in bits(self.above[v]):
                self.below[p] |= 1 << v

    @cached_property
    def periods(self) -> tuple[int, ...]:
        """Return distances at which operators often meet operators like them, commonest first."""
        last: dict[object, list[int]] = {}
        seen: Counter[int] = Counter()
        for v, kind in enumerate(self.kind):
            before = last.setdefault(kind, [])
            seen.update(v - u for u in before[-8:])
            before.append(v)
        return tuple(d for d, _ in seen.most_common(MOST_PERIODS))

    def of(self, members: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Yield the copies of a group."""
        for period in self.periods:
            for shift in (period, -period):
                if members[0] + shift < 0 or members[-1] + shift >= len(self.kind):
                    continue
                moved = tuple(v + shift for v in members)
                alike = all(self.kind[u] == self.kind[v] for u, v in zip(members, moved, strict=True))
                if alike and self.convex(moved):
                    yield moved

    def convex(self, members: tuple[int, ...]) -> bool:
        """Return whether no path between members leaves them."""
        above = below = inside = 0
        for v in members:
            above |= self.above[v]
            below |= self.below[v]
            inside |= 1 << v
        return not above & below & ~inside


def _kind(problem: FusionProblem, v: int) -> object:
    """Return the properties that make operators alike: form, windows, maps and weights."""
    op = problem.operators[v]
    windows = tuple((problem.maps[x.tensor], x.rows, x.columns, x.whole) for x in op.operands)
    return op.form, windows, tuple(problem.maps[t] for t in op.outputs), op.weight_bytes
