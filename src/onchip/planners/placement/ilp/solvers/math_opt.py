"""HiGHS and SCIP through OR-tools' MathOpt, in this process. `child` runs this in another one."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from onchip.base.or_tools import needs_or_tools
from onchip.planners.placement.ilp.rows import Model
from onchip.planners.placement.ilp.solvers.outcome import MathOptSolver, Outcome

__all__ = ["minimise"]


def minimise(model: Model, solver: MathOptSolver, seconds: float | None, seed: int = 0) -> Outcome:
    """Minimise with one thread until proved optimal, or for `seconds`. A row's `when` becomes a large M."""
    needs_or_tools()
    from ortools.math_opt.python import mathopt

    program = mathopt.Model()
    x = [program.add_integer_variable(lb=lo, ub=hi) for lo, hi in zip(model.lower, model.upper, strict=True)]
    for row in model.rows:
        terms, high = list(row.terms), row.high
        if row.when is not None:
            # The least M that frees the row: the most by which its terms can exceed it.
            big = max(0, sum(max(k * model.lower[i], k * model.upper[i]) for i, k in terms) - high)
            terms, high = [*terms, (row.when, big)], high + big
        low = row.low if row.low == row.high and row.when is None else -math.inf
        constraint = program.add_linear_constraint(lb=low, ub=high)
        for i, k in terms:
            # A variable can occur in a row twice.
            constraint.set_coefficient(x[i], constraint.get_coefficient(x[i]) + k)
    program.minimize(mathopt.fast_sum([k * x[i] for i, k in model.objective]))
    kinds = {"highs": mathopt.SolverType.HIGHS, "scip": mathopt.SolverType.GSCIP}
    parameters = mathopt.SolveParameters(
        time_limit=None if seconds is None else timedelta(seconds=max(seconds, 0.01)),
        relative_gap_tolerance=0.0,
        absolute_gap_tolerance=0.9,  # the objective is a whole number
        random_seed=seed % (1 << 31),
    )
    result = mathopt.solve(program, kinds[solver], params=parameters)
    reason = result.termination.reason
    if reason in (mathopt.TerminationReason.INFEASIBLE, mathopt.TerminationReason.INFEASIBLE_OR_UNBOUNDED):
        return Outcome(None, 0, optimal=False, infeasible=True)
    bound = _whole(result.termination.objective_bounds.dual_bound)
    if not result.has_primal_feasible_solution():
        return Outcome(None, bound, optimal=False)
    found: Any = result.variable_values()
    values = tuple(round(found[v]) for v in x)
    objective = sum(k * values[i] for i, k in model.objective)
    return Outcome(values, min(bound, objective), bound >= objective)


def _whole(bound: float) -> int:
    """Return the least whole number that a solver's floating-point bound allows."""
    return max(0, math.ceil(bound - 1e-4)) if math.isfinite(bound) else 0
