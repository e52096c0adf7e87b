"""A bound by duality: a worth for each operator such that no group costs less than its operators' worths.

If there are too many sets of operators to price one by one, the relaxation of set partitioning over all
groups bounds every plan: its groups cover each operator once. Groups are listed; a round of column generation
prices all of them (`Joint.price`), and lowers worths until none is cheaper, so that every round gives a
bound.
"""

from __future__ import annotations

from onchip import _core
from onchip.base.or_tools import needs_or_tools
from onchip.planners.limits import Limits

__all__ = ["worths"]

UNIT = 1e6
"""Bytes of one unit of the linear programs, whose numbers should be near 1."""

DEAR, UNLIMITED = 4, 1 << 60
"""The price of an operator that cannot run alone, in those of all others; costs that mean it begin here."""

COLUMNS = 500
"""The most groups that one round adds."""


def worths(joint: _core.Joint, operators: int, limits: Limits) -> list[int]:
    """Return the worth of every operator in bytes, by place; no group costs less than its operators together.

    The best that column generation finds in the time; every round is at least as good as the last.
    """
    needs_or_tools()
    from ortools.math_opt.python import mathopt

    model = mathopt.Model()
    rows = [model.add_linear_constraint(lb=1, ub=1) for _ in range(operators)]

    def add(members: list[int], cost: int) -> None:
        column = model.add_variable(lb=0)
        model.objective.set_linear_coefficient(column, cost / UNIT)
        for v in members:
            rows[v].set_coefficient(column, 1)

    alone = [joint.least(v) for v in range(operators)]
    # One that cannot run alone has a price that is out of all proportion. A lower one only lowers worths.
    dear = DEAR * (int(UNIT) + sum(cost for cost in alone if cost < UNLIMITED))
    for v in range(operators):
        add([v], min(alone[v], dear))
    solver = mathopt.IncrementalSolver(model, mathopt.SolverType.GLOP)
    best: list[int] | None = None
    while True:
        result = solver.solve()
        if not result.has_dual_feasible_solution():  # not for lack of one: its numbers are too far apart
            return best or [0] * operators
        duals = result.dual_values()
        worth = [round(duals[row] * UNIT) for row in rows]
        if best is not None:  # between the two: worths that oscillate find worse groups
            worth = [(w + b) // 2 for w, b in zip(worth, best, strict=True)]
        found = joint.price(
            worth=worth, most=COLUMNS, limits=limits.core(lambda groups, states: limits.stopped())
        )
        better = best is None or sum(found.worth) > sum(best)
        if better:
            best = found.worth
        value = result.objective_value() * UNIT
        assert best is not None
        columns = found.columns
        if not found.complete or (not columns and not better) or sum(best) >= value * (1 - 1e-6):
            return best
        for members, cost in columns:
            add(members, cost)
