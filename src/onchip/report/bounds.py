"""Three figures that place a plan: what every schedule moves, the bound of its space, what it moves."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.check.claims.standing import standing
from onchip.plans import Plan
from onchip.report import claims

__all__ = ["Bounds", "bound_rows", "bounds_of"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bytes to and from DRAM.

    `every` is what no schedule avoids: network inputs in, outputs out, and the weights of every operator that
    are not pinned, each once. `space` is the claimed least of the plans that the plan's `space` names, None
    where nothing is claimed of these bytes; `plan` is what the plan moves.
    """

    every: int
    space: int | None
    plan: int


def bounds_of(plan: Plan) -> Bounds:
    """Return the three figures of a plan; what moves no more than every schedule is the least."""
    every, moved = plan.limit_bytes, plan.result.dram_bytes
    return Bounds(every, moved if moved == every else _space(plan), moved)


def _space(plan: Plan) -> int | None:
    r, goal = plan.result, claims.objective(plan)
    if claims.is_grouped(plan) or goal == "dram":
        return (claims.dram_bound(plan) or None) if goal in ("dram", "traffic") else None
    if goal != "traffic":
        return None
    if r.status == "optimal":
        return r.dram_bytes
    known = r.lower_bound_bytes > 0 or r.traffic_bytes == 0
    return r.dram_bytes - r.traffic_bytes + r.lower_bound_bytes if known else None


def bound_rows(plan: Plan) -> tuple[tuple[int | None, str], tuple[int | None, str]]:
    """Return the figures besides the plan's own, with what each means; None for one that is not known."""
    found = bounds_of(plan)
    claimed = ", as claimed" if standing(plan) == "claimed" and found.plan > found.every else ""
    unknown = ": not known" if found.space is None else ""
    return (
        (found.space, f"least of its space{claimed}{unknown}"),
        (found.every, "inputs as far as read, outputs and weights, each once"),
    )
