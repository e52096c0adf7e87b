"""The cost of a subgraph at its best tile, in closed form: the steps of a tile fall into a few classes.

The compiled core (`contest_price.h`) looks at every tile of whole numbers and every k; this module states the
subgraph for it. The verifier prices what is chosen again, step by step, and its figure is the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf

from onchip import _core
from onchip.contest.demand import Subgraph
from onchip.contest.law import Law
from onchip.contest.problem import Problem
from onchip.contest.solution import Step
from onchip.contest.statement import Group, Statement, statement_of
from onchip.contest.walks import Walked, lines, small, walked

__all__ = ["Costs"]


@dataclass(frozen=True, slots=True)
class _Found:
    """A price, and the tile that has it; without one, no tile is below this latency."""

    latency: float
    tile: _core.ContestTile | Walked | None


class Costs:
    """Prices of the subgraphs of one problem under one law; equal ones are priced once.

    Those of several operators are priced as far as they can be in the seconds that are `left`.
    """

    def __init__(self, problem: Problem, law: Law, left: Callable[[], float | None] = lambda: None) -> None:
        self.problem, self.law, self.left = problem, law, left
        self._known: dict[tuple[object, ...], _Found] = {}
        self._single: dict[tuple[int, frozenset[int], bool], float] = {}
        self._stated: dict[tuple[bool, Statement], _Found] = {}

    def least(self, group: Group) -> float:
        """Return a latency that no tile, step and order of tiles is below; infinity if none fits.

        It is at most what the operators cost one by one, which is then as good a choice.
        """
        return self._price(group, True).latency

    def latency(self, group: Group) -> float:
        """Return the latency at the best tile, line by line; infinity if none fits.

        So it is where the operators cost less one by one, with what is resident written and loaded. Slices
        of two shapes count apart.
        """
        return self._price(group, False).latency

    def close(self, group: Group, limit: float) -> float:
        """Return `latency`, or less: of a small subgraph slices of two shapes are what the verifier sees.

        A latency that is not below the limit is not looked for.
        """
        known = self._price(group, False)
        least = self.least(group)
        limit = min(limit, self._limit(group, False), known.latency)
        if known.latency <= least or least >= limit or not small(self.problem, self.law, group):
            return known.latency
        better = walked(self.problem, self.law, group, limit)
        if better is not None:
            self._known[False, *self._shape(group)] = _Found(better.latency, better)
        return self._price(group, False).latency

    def _limit(self, group: Group, bound: bool) -> float:
        """Return what the operators cost one by one, if what they retain can be the last one's output."""
        last = [op for op in group.operators if self.problem.outputs[op] in group.retained]
        if len(group.operators) == 1 or len(last) > 1 or (last and last[0] != group.operators[-1]):
            return inf
        *others, final = group.operators
        limit = self._alone(final, group.retained, bound)
        limit += sum(self._alone(op, frozenset(), bound) for op in others)
        if not bound:
            limit += 2 * sum(map(self.problem.size, group.residents)) / self.problem.bandwidth
        return limit

    def _alone(self, op: int, retained: frozenset[int], bound: bool) -> float:
        key = (op, retained, bound)
        if key not in self._single:
            self._single[key] = self._price(Group((op,), frozenset(), retained), bound).latency
        return self._single[key]

    def step(self, group: Group) -> Step:
        """Return the group as a step of a schedule, at its best tile."""
        tile = self._price(group, False).tile
        if tile is None:
            raise ValueError(f"operators {group.operators} fit at no tile")
        output = Subgraph(self.problem, group.operators, 1).ends[0]
        across = -(-self.problem.widths[output] // tile.width)
        down = -(-self.problem.heights[output] // tile.height)
        return Step(
            operators=group.operators,
            width=tile.width,
            height=tile.height,
            depth=tile.depth,
            retained=tuple(sorted(group.retained)),
            traversal=_order(across, down, tile) if across > 1 or down > 1 else None,
        )

    def _price(self, group: Group, bound: bool) -> _Found:
        key = (bound, *self._shape(group))
        if key not in self._known:
            self._known[key] = self._ask(group, bound)
        return self._known[key]

    def _shape(self, group: Group) -> Iterator[object]:
        """Yield what the price depends on: operators and sizes, with tensors numbered as they come."""
        problem, number = self.problem, dict[int, int]()
        for op in group.operators:
            yield problem.base[op]
            yield problem.is_matmul[op]
            for tensor in (*problem.inputs[op], problem.outputs[op]):
                yield number.setdefault(tensor, len(number))
                yield problem.heights[tensor]
                yield problem.widths[tensor]
        yield frozenset(number[tensor] for tensor in group.residents)
        yield frozenset(number[tensor] for tensor in group.retained)

    def _ask(self, group: Group, bound: bool) -> _Found:
        """Price a group, unless another one makes the same statement."""
        statement = statement_of(self.problem, self.law, group, bound=bound)
        limit = self._limit(group, bound)
        known = self._stated.get((bound, statement))
        if known is None or (known.tile is None and known.latency < limit):
            seconds = self.left() if len(group.operators) > 1 else None
            core = statement.core(self.problem, self.law)
            tile = _core.contest_price(subgraph=core, bound=bound, limit=limit, seconds=seconds)
            fits = 0 <= tile.latency < limit
            known = _Found(tile.latency, tile) if fits else _Found(limit, None)
            self._stated[bound, statement] = known
        if known.tile is not None and known.latency < limit:
            return known
        return _Found(limit if bound else inf, None)


def _order(across: int, down: int, tile: _core.ContestTile | Walked) -> tuple[int, ...]:
    if isinstance(tile, Walked):
        return tile.order
    return lines(
        across,
        down,
        by_columns=tile.by_columns,
        from_right=tile.from_right,
        from_bottom=tile.from_bottom,
        turns=tile.turns,
    )
