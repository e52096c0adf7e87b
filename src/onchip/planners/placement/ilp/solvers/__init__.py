"""The open solvers behind one function: CP-SAT, and HiGHS and SCIP through OR-tools' MathOpt."""

from __future__ import annotations

from collections.abc import Sequence

from onchip.planners.limits import Limits
from onchip.planners.placement.ilp.rows import Model
from onchip.planners.placement.ilp.solvers.outcome import Outcome, Solver

__all__ = ["Outcome", "Solver", "minimise"]


def minimise(model: Model, solver: Solver, limits: Limits, first: Sequence[int] | None = None) -> Outcome:
    """Minimise the model's objective within the limits; Ctrl-C ends the solver, not the program.

    `first` is a solution to begin with, by variable; only CP-SAT uses it.
    """
    if solver == "cp-sat":
        from onchip.planners.placement.ilp.solvers import cp_sat

        return cp_sat.minimise(model, limits, first=first)
    from onchip.planners.placement.ilp.solvers import child

    return child.minimise(model, solver, limits)
