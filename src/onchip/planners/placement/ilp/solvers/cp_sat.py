"""CP-SAT: the default."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from onchip.base.or_tools import needs_or_tools
from onchip.planners.limits import Limits
from onchip.planners.placement.ilp.rows import Model
from onchip.planners.placement.ilp.solvers.outcome import Outcome
from onchip.planners.placement.search import line_of

__all__ = ["PRESOLVE", "WORKERS", "minimise"]

WORKERS = 8
"""The most threads; fewer if the machine has fewer cores."""

PRESOLVE = True
"""CP-SAT simplifies the model first: less to search, and seconds where a proof needs no search."""

POLL_SECONDS = 0.2


def minimise(
    model: Model, limits: Limits, workers: int | None = None, first: Sequence[int] | None = None
) -> Outcome:
    """Minimise with CP-SAT, from a first solution if there is one; Ctrl-C ends its time."""
    needs_or_tools()
    from ortools.sat.python import cp_model

    began = time.perf_counter()
    cp = cp_model.CpModel()
    x = [cp.new_int_var(lo, hi, "") for lo, hi in zip(model.lower, model.upper, strict=True)]
    for row in model.rows:
        total = cp_model.LinearExpr.weighted_sum([x[i] for i, _ in row.terms], [k for _, k in row.terms])
        constraint = cp.add_linear_constraint(total, row.low, row.high)
        if row.when is not None:
            constraint.only_enforce_if(x[row.when])
    cp.minimize(
        cp_model.LinearExpr.weighted_sum([x[i] for i, _ in model.objective], [k for _, k in model.objective])
        if model.objective
        else 0
    )
    if first is not None:
        for variable, value in zip(x, first, strict=True):
            cp.add_hint(variable, value)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = workers or min(WORKERS, os.cpu_count() or 1)
    solver.parameters.cp_model_presolve = PRESOLVE
    solver.parameters.random_seed = limits.seed % (1 << 31)
    solver.parameters.max_memory_in_mb = max(1, limits.memory_limit >> 20)
    left = limits.left()
    if left is not None:
        solver.parameters.max_time_in_seconds = left
    # This thread handles Ctrl-C, not a handler of the solver's, which other threads share.
    solver.parameters.catch_sigint_signal = False
    status = _solve(solver, cp, _reporter(limits, began), limits)
    if status == cp_model.INFEASIBLE:
        return Outcome(None, 0, optimal=False, infeasible=True)
    bound = _whole(solver.best_objective_bound)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Outcome(None, bound, optimal=False)
    values = tuple(solver.value(v) for v in x)
    return Outcome(values, bound, status == cp_model.OPTIMAL)


def _whole(bound: float) -> int:
    """Return the least objective that a bound allows; no objective here is negative."""
    return max(0, math.ceil(bound - 1e-6)) if math.isfinite(bound) else 0


def _reporter(limits: Limits, began: float) -> Any:
    """Return a callback that reports each better solution to `limits.progress`."""
    from ortools.sat.python import cp_model

    class Reporter(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        def on_solution_callback(self) -> None:
            bound = _whole(self.best_objective_bound)
            seconds = time.perf_counter() - began
            limits.say(line_of(self.num_branches, round(self.objective_value), bound, seconds))

    return Reporter()


def _solve(solver: Any, cp: Any, reporter: Any, limits: Limits) -> Any:
    """Return the solver's status. It works in a thread, so that this one handles Ctrl-C and `cancelled`."""
    with ThreadPoolExecutor(1) as beside:
        solving = beside.submit(solver.solve, cp, reporter)
        ending = False
        while True:
            try:
                if wait((solving,), POLL_SECONDS).done:
                    return solving.result()
                ending = ending or limits.stopped()
            except KeyboardInterrupt:
                ending = True
            if ending:  # repeatedly, for it has an effect only once the search has begun
                solver.stop_search()
