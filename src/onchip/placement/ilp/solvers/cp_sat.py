"""CP-SAT: the default."""

from __future__ import annotations

import math
import os
import threading
import time
from typing import Any

from onchip.placement.ilp.rows import Model
from onchip.placement.ilp.solvers.outcome import Outcome
from onchip.placement.search import Limits, Progress

__all__ = ["WORKERS", "minimise"]

WORKERS = 8
"""Most threads; fewer where the machine has fewer cores."""

POLL_SECONDS = 0.2


def minimise(model: Model, limits: Limits, workers: int | None = None) -> Outcome:
    """Minimise with CP-SAT. It takes Ctrl-C itself, as the end of its time."""
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
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = workers or min(WORKERS, os.cpu_count() or 1)
    solver.parameters.random_seed = limits.seed % (1 << 31)
    solver.parameters.max_memory_in_mb = max(1, limits.memory >> 20)
    if limits.seconds is not None:
        solver.parameters.max_time_in_seconds = max(0.0, limits.seconds - (time.perf_counter() - began))
    with _Watch(solver, limits, began):
        status = solver.solve(cp, _reporter(limits, began))
    if status == cp_model.INFEASIBLE:
        return Outcome(None, 0, optimal=False, infeasible=True)
    bound = _whole(solver.best_objective_bound)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Outcome(None, bound, optimal=False)
    values = tuple(solver.value(v) for v in x)
    return Outcome(values, bound, status == cp_model.OPTIMAL)


def _whole(bound: float) -> int:
    """The least objective that a bound leaves; no objective here is negative."""
    return max(0, math.ceil(bound - 1e-6)) if math.isfinite(bound) else 0


def _reporter(limits: Limits, began: float) -> Any:
    """A callback that tells `limits.progress` of each better solution."""
    from ortools.sat.python import cp_model

    class Reporter(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        def on_solution_callback(self) -> None:
            if limits.progress is not None:
                bound = _whole(self.best_objective_bound)
                seconds = time.perf_counter() - began
                limits.progress(Progress(self.num_branches, round(self.objective_value), bound, seconds))

    return Reporter()


class _Watch:
    """Ends the search when the caller's `cancelled` says so; nothing when there is none."""

    def __init__(self, solver: Any, limits: Limits, began: float) -> None:
        self.solver, self.limits, self.began = solver, limits, began
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._poll, daemon=True)

    def _poll(self) -> None:
        while not self.over.wait(POLL_SECONDS):
            if self.limits.cancelled is not None and self.limits.cancelled():
                self.solver.stop_search()
                return

    def __enter__(self) -> None:
        if self.limits.cancelled is not None:
            self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        if self.thread.is_alive():
            self.thread.join()
