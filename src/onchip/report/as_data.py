"""The report's figures as data: bounds, and the nests of loops with what lives and crosses in them."""

from __future__ import annotations

from typing import Any

from onchip.check.as_nests import plan_as_nests
from onchip.plans import Plan
from onchip.report.as_nests import as_nests_data
from onchip.report.bounds import bounds_of
from onchip.report.nest import shown_nests
from onchip.report.nest.data import nest_data
from onchip.report.nest.words import equal_nests
from onchip.report.steps import timeline

__all__ = ["data"]


def data(plan: Plan) -> dict[str, Any]:
    """Return the figures of a plan's report by the keys that docs/report.md lists, ready for JSON.

    Raises `IllegalPlan` for a program that is not legal.
    """
    line = timeline(plan)
    nests, found = shown_nests(plan, line), bounds_of(plan)
    as_nests = plan_as_nests(plan)
    first = {name: names[0] for names in equal_nests(nests).values() for name in names}
    return {
        "network": plan.network.name,
        "chip": plan.chip.name,
        "budget_bytes": plan.budget,
        "status": plan.result.status,
        "space": plan.result.space,
        "compulsory_limit_bytes": found.every,
        "dram_bound_bytes": found.space,
        "dram_bytes": found.plan,
        "nests": [
            {"group": name, "equal_to": first[name], **nest_data(nest)} for name, nest in nests.items()
        ],
        **({} if as_nests is None else {"as_nests": as_nests_data(as_nests)}),
    }
