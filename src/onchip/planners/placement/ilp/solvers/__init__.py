"""The open solvers behind one function: CP-SAT, and HiGHS and SCIP through OR-tools' MathOpt."""

from __future__ import annotations

from onchip.planners.limits import Limits
from onchip.planners.placement.ilp.rows import Model
from onchip.planners.placement.ilp.solvers.outcome import Outcome, Solver

__all__ = ["Outcome", "Solver", "minimise"]


def minimise(model: Model, solver: Solver, limits: Limits) -> Outcome:
    """Minimise the model's objective within the limits; Ctrl-C ends the solver, not the program."""
    if solver == "cp-sat":
        from onchip.planners.placement.ilp.solvers import cp_sat

        return cp_sat.minimise(model, limits)
    from onchip.planners.placement.ilp.solvers import child

    return child.minimise(model, solver, limits)
