"""A bound over all groups without listing them: column generation with exact pricing.

The linear relaxation of set partitioning knows some groups (columns) and gives each operator a worth. Pricing
(`_core/fusion_pricing.cpp`) then finds, operator by operator from the last to the first, the group starting
there whose cost is least in excess of the worth of its operators. A group that costs less than the worth
joins the columns; an operator whose cheapest group costs less by d is worth d less in the bound, and then the
worths together bound every partition (docs/fusion-pricing.md). So every round gives a bound, and when no
operator has a cheaper group, the bound is the value of the relaxation over all groups.

Pricing may charge the halo of an operand only up to a part of it: that bounds the true costs, and is faster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from onchip import _core
from onchip.planners.limits import NO_LIMITS, Limits

__all__ = ["Relaxation", "Round", "relax"]

UNIT = 1e6
"""Bytes of one unit of the linear programs, whose numbers should be near 1."""

DEPTHS: tuple[tuple[int, int], ...] = (
    (1_000, 2_000),
    (4_000, 5_000),
    (30_000, 10_000),
    (250_000, 50_000),
    (2_000_000, 400_000),
    (0, 0),
)
"""Nodes for every operator, and the share of the relaxation's value (1 / n) by which a cheaper group may be
missed; 0: no limit, and none."""

GRACE = 2.0
"""Seconds beyond the limit for the first round, which gives the first bound."""

LAST_NODES = 2_000
"""Nodes for operators that remain when time is up."""

SLOW = 1_000
"""A round that gains less than this share (1 / n) is the last at its depth."""


@dataclass(frozen=True, slots=True)
class Round:
    """One round of pricing: columns known, the relaxation's value over them and the bound so far (bytes)."""

    columns: int
    value: int
    bound: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Relaxation:
    """The result of column generation: columns (places in the order, ascending) with their charged bytes.

    `bound`: no partition costs less. `worth` are the last worths; `complete`: no group at all is cheaper than
    its worth. `value` is that of the relaxation over the columns, `used` are the columns in it.
    """

    columns: dict[tuple[int, ...], int]
    used: tuple[tuple[int, ...], ...]
    worth: tuple[int, ...]
    value: int
    bound: int
    complete: bool
    nodes: int
    rounds: int


class _Master:
    """The restricted relaxation: fractions of columns that cover every operator once, for least bytes."""

    def __init__(self, operators: int) -> None:
        from ortools.math_opt.python import mathopt

        self.model = mathopt.Model()
        self.rows = [self.model.add_linear_constraint(lb=1, ub=1) for _ in range(operators)]
        self.columns: dict[tuple[int, ...], tuple[mathopt.Variable, int]] = {}
        self.solver = mathopt.IncrementalSolver(self.model, mathopt.SolverType.GLOP)

    def add(self, members: tuple[int, ...], cost: int) -> bool:
        if members in self.columns:
            return False
        column = self.model.add_variable(lb=0)
        self.model.objective.set_linear_coefficient(column, cost / UNIT)
        for v in members:
            self.rows[v].set_coefficient(column, 1)
        self.columns[members] = (column, cost)
        return True

    def solve(self) -> tuple[int, list[int], tuple[tuple[int, ...], ...]]:
        """Return value, worths and columns used; any worths give a bound, so they may be rounded."""
        result = self.solver.solve()
        duals, values = result.dual_values(), result.variable_values()
        worth = [round(duals[row] * UNIT) for row in self.rows]
        used = tuple(m for m, (column, _) in self.columns.items() if values[column] > 1e-6)
        return round(result.objective_value() * UNIT), worth, used


def relax(
    pricer: _core.Pricer,
    operators: int,
    known: Sequence[tuple[int, ...]] = (),
    *,
    copies: Callable[[tuple[int, ...]], Iterable[tuple[int, ...]]] | None = None,
    depths: slice = slice(None),
    enough: int | None = None,
    limits: Limits = NO_LIMITS,
    stop: Callable[[Round], bool] | None = None,
    keep: Callable[[int], None] | None = None,
) -> Relaxation:
    """Generate columns until nothing is cheaper, the bound is `enough`, or time is up.

    `known` are columns to start with, besides every operator alone; `copies` gives further groups that may
    pay because one does. `depths` selects from `DEPTHS`. `stop` is called after every round and ends the
    search if it returns true; Ctrl-C ends it, too. `keep` is called with every bound.
    """
    search = _Search(pricer, operators, known, copies)
    began = time.perf_counter()
    try:
        for _ in search.rounds(DEPTHS[depths], limits):
            now = Round(len(search.master.columns), search.value, search.bound, time.perf_counter() - began)
            if keep is not None:
                keep(search.bound)
            if (stop is not None and stop(now)) or (enough is not None and search.bound >= enough):
                break
    except KeyboardInterrupt:  # pressed again, it reaches the caller
        pass
    return search.result()


class _Search:
    """One run of column generation."""

    def __init__(
        self,
        pricer: _core.Pricer,
        operators: int,
        known: Sequence[tuple[int, ...]],
        copies: Callable[[tuple[int, ...]], Iterable[tuple[int, ...]]] | None,
    ) -> None:
        self.pricer, self.operators, self.copies = pricer, operators, copies
        self.master = _Master(operators)
        for v in range(operators):
            alone = pricer.cost([v])
            assert alone is not None
            self.master.add((v,), alone)
        for members in known:
            cost = pricer.cost(members)
            if cost is not None:
                self.master.add(members, cost)
        self.value, self.worth = 0, [0] * operators
        self.used: tuple[tuple[int, ...], ...] = ()
        self.bound = 0
        self.best_worth: list[int] | None = None
        self.complete = False
        self.nodes = self.done = 0

    def rounds(self, depths: Sequence[tuple[int, int]], limits: Limits) -> Iterator[None]:
        """Run rounds of pricing, ever deeper, between the last worths and those with the best bound."""
        depth, between = 0, 0.0
        self.value, self.worth, self.used = self.master.solve()
        while limits.left() != 0.0:
            at = self.worth
            if self.best_worth is not None and between:
                at = [
                    round(between * b + (1 - between) * w)
                    for b, w in zip(self.best_worth, self.worth, strict=True)
                ]
            nodes, part = depths[depth]
            bound, value = self.bound, self.value
            added, exact = self._price(at, nodes, self.value // part if part else 0, limits)
            self.value, self.worth, self.used = self.master.solve()
            self.done += 1
            yield
            if self.bound >= self.value:
                self.complete = True
                return
            if max(value - self.value, self.bound - bound) > self.value // SLOW and added:
                continue
            if between and not added:
                between = 0.0 if between < 0.2 else between / 2
                continue
            if depth == len(depths) - 1:
                if not added:
                    self.complete = exact and not part
                    return
                continue
            depth += 1
            between = 0.5

    def _price(self, worth: Sequence[int], nodes: int, tolerance: int, limits: Limits) -> tuple[int, bool]:
        """Price every operator; return the number of new columns, and whether every minimum was reached."""
        bound, added, exact = list(worth), 0, True
        for v in range(self.operators - 1, -1, -1):
            left = None if limits.time_limit is None else limits.time_limit - limits.spent()
            if left is not None and left <= 0:
                if self.best_worth is not None or left <= -GRACE:
                    return added, False
                nodes, left = LAST_NODES, GRACE + left  # without the rest there is no bound at all
            found = self.pricer.price(
                first=v, worth=bound, tolerance=tolerance, nodes=nodes, limits=_core.Limits(seconds=left)
            )
            self.nodes += found.nodes
            exact = exact and found.complete
            bound[v] += found.least
            added += self._take(found.columns)
        if sum(bound) > self.bound:
            self.bound, self.best_worth = sum(bound), list(worth)
        return added, exact

    def _take(self, columns: Iterable[tuple[Sequence[int], int]]) -> int:
        """Add columns and their copies; return how many of them are new, copies not counted."""
        new = 0
        for members, cost in columns:
            group = tuple(members)
            if not self.master.add(group, cost):
                continue
            new += 1
            if self.copies is None or len(group) == 1:
                continue
            for copy in self.copies(group):
                if copy not in self.master.columns and (price := self.pricer.cost(copy)) is not None:
                    self.master.add(copy, price)
        return new

    def result(self) -> Relaxation:
        columns = {members: cost for members, (_, cost) in self.master.columns.items()}
        return Relaxation(
            columns,
            self.used,
            tuple(self.worth),
            self.value,
            self.bound,
            self.complete,
            self.nodes,
            self.done,
        )
