"""A plan's network planned again for other budgets, by the same planner with the same options."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onchip.base import guard
from onchip.base.errors import Infeasible, NegativeAnswer
from onchip.base.interrupt import until_interrupted
from onchip.plans import Plan
from onchip.report.what_if import WhatIf, WhatIfPoint

__all__ = ["budgets_around", "what_if"]

STEPS = 3
"""The number of budgets in each doubling."""


def budgets_around(plan: Plan) -> tuple[int, ...]:
    """Return budgets in bytes from a quarter of the plan's to four times it, ascending.

    They include two meaningful ones: the least in which each operator runs by itself, and the least known to
    need no traffic.
    """
    unit = plan.chip.alignment_bytes
    found = {
        max(unit, round(plan.budget * 2 ** (i / STEPS)) // unit * unit)
        for i in range(-2 * STEPS, 2 * STEPS + 1)
    }
    for key in ("mr_bytes", "zero_traffic_bytes"):
        known = plan.options.get(key)
        if isinstance(known, int) and plan.budget / 16 <= known <= plan.budget * 16:
            found.add(known)
    return tuple(sorted({*found, plan.budget}))


def what_if(
    plan: Plan,
    replan: Callable[[int], Plan],
    budgets: Sequence[int] | None = None,
    progress: Callable[[str], None] | None = None,
    *,
    seconds: float | None = None,
) -> WhatIf:
    """Return DRAM bytes of the network over budgets; `replan` makes the plan for one, within `seconds`.

    Ctrl-C ends it with the points made by then.
    """
    wanted = budgets_around(plan) if budgets is None else sorted({*budgets, plan.budget})
    points = [_point(plan)]
    with until_interrupted() as pressed:
        for i, budget in enumerate(b for b in wanted if b != plan.budget):
            if progress is not None:
                progress(f"what if: {i} of {len(wanted) - 1} budgets")
            try:
                with guard.part(seconds):
                    points.append(_point(replan(budget)))
            except Infeasible as no:
                points.append(WhatIfPoint(budget, "infeasible", needs=no.needs))
            except NegativeAnswer:
                points.append(WhatIfPoint(budget, "infeasible"))
            except KeyboardInterrupt:
                break
            if pressed():
                break
    points.sort(key=lambda point: point.budget)
    return WhatIf(str(plan.options.get("planner", "placement")), plan.budget, plan.limit_bytes, tuple(points))


def _point(plan: Plan) -> WhatIfPoint:
    result = plan.result
    bound = result.dram_lower_bound_bytes
    if bound is None and not plan.groups:
        bound = result.compulsory_bytes + result.weight_bytes + result.lower_bound_bytes
    return WhatIfPoint(plan.budget, result.status, result.dram_bytes, result.traffic_bytes, bound)
