"""The solution of the integer programs: CP-SAT for a moment, whose proofs are exact, and then HiGHS.

HiGHS closes what CP-SAT does not, and works with floating-point numbers: its bound counts after it has been
lowered by a millionth, so that no rounding of its own makes a plan optimal. Values are checked as integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from onchip.planners.limits import Limits
from onchip.planners.placement.ilp.rows import Model
from onchip.planners.placement.ilp.solvers import child, cp_sat
from onchip.planners.placement.ilp.solvers.outcome import Outcome

__all__ = ["solve"]

FIRST = 5.0
"""The most seconds before HiGHS starts."""

SHARE = 0.3
"""Share of the time that CP-SAT has first."""

MARGIN = 1e-6


def solve(model: Model, limits: Limits) -> Outcome:
    """Return the least objective found within the limits, and a proved bound of any."""
    first = cp_sat.minimise(model, limits.share(SHARE).at_most(FIRST))
    if first.optimal or first.infeasible or limits.stopped():
        return first
    try:
        second = child.minimise(model, "highs", limits)
    except RuntimeError:  # it crashed: keep the result of CP-SAT
        return first
    values = second.values if second.values is not None and _holds(model, second.values) else None
    found = [v for v in (first.values, values) if v is not None]
    best = min(found, key=lambda v: _objective(model, v), default=None)
    bound = max(first.bound, math.floor(second.bound * (1 - MARGIN)))
    if best is not None:
        bound = min(bound, _objective(model, best))
    return replace(first, values=best, bound=bound, optimal=best is not None and first.bound == bound)


def _objective(model: Model, values: Sequence[int]) -> int:
    return sum(k * values[x] for x, k in model.objective)


def _holds(model: Model, values: Sequence[int]) -> bool:
    """Return whether whole numbers satisfy every row exactly."""
    inside = all(lo <= v <= hi for lo, v, hi in zip(model.lower, values, model.upper, strict=True))
    return inside and all(
        row.low <= sum(k * values[x] for x, k in row.terms) <= row.high for row in model.rows
    )
