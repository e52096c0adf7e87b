"""The fastest plan that was found, certified with its bound."""

from __future__ import annotations

import time
from dataclasses import replace

from onchip.base.errors import NegativeAnswer
from onchip.check import certify
from onchip.check.nest_clock import nest_times_of
from onchip.check.nest_times import NoTimes
from onchip.planners.fusion import FusionProblem
from onchip.planners.fusion.least import least_bytes
from onchip.planners.joint.timed.beside import side_by_side
from onchip.planners.joint.timed.bound import least_picoseconds
from onchip.planners.joint.timed.hasten import Fastest, Hastened, hastened
from onchip.planners.joint.timed.partition import partitioned_plan
from onchip.planners.limits import Limits
from onchip.plans import Plan

__all__ = ["EFFORT", "SPACE", "quickest"]

FIRST_EFFORT, EFFORT, PLAN_EFFORT = 800_000, 6_000_000, 60_000_000
"""The effort of the search for every group that a partition may have, for those of the best one, and at last
for all groups of the plan together, if that is more: steps of nests that are walked, and forty for every nest
that is looked at."""

SPACE = (
    "the bound: every plan of nests, one after another or beside each other, of any tiles, homes, copies and"
    " sides of the array, each operator run once; the plan: the groups of fewest bytes, or neighbours of the"
    " network's order with tensors streamed or whole between them, each in the fastest nest found"
)


def quickest(plan: Plan, problem: FusionProblem, began: float, limits: Limits) -> Plan:
    """Return a plan of nests that takes less time than the plan of fewest bytes, as little as was found.

    `optimal` where its time is the bound of `least_picoseconds`. Raises `NegativeAnswer` where the law of
    time says nothing of some run, or no nest has room.
    """
    assert plan.chip.tiles is not None
    least = least_bytes(problem)
    bound = least_picoseconds(plan.network, plan.chip.tiles, least)
    best: Plan | None = None
    refusal: NegativeAnswer | None = None
    fastest = Fastest(problem, plan, limits, FIRST_EFFORT)
    partitioned = partitioned_plan(plan, problem, fastest, EFFORT)
    for start, least_effort, together in ((plan, EFFORT // 3, 0), (partitioned, EFFORT, PLAN_EFFORT)):
        if start is None:
            continue
        effort = max(least_effort, together // max(1, len(start.groups)))
        try:
            made = hastened(start, Fastest(problem, plan, limits, effort))
            alone = _certified(plan, made, bound, least, began)
        except NegativeAnswer as no:
            refusal = refusal or no
            continue
        found = side_by_side(alone, limits)
        if found is not alone:
            made = replace(made, program=found.program, groups=found.groups)
            alone = _certified(plan, made, bound, least, began)
        if best is None or _time(alone) < _time(best):
            best = alone
    if best is None:
        assert refusal is not None
        raise refusal
    return best


def _time(plan: Plan) -> int:
    assert plan.result.latency_picoseconds is not None
    return plan.result.latency_picoseconds


def _certified(plan: Plan, made: Hastened, bound: int, least: int, began: float) -> Plan:
    """Return the plan of a program, with what is claimed of it."""
    options = {**plan.options, "objective": "latency"}

    def certified(status: str) -> Plan:
        return certify(
            plan.network,
            plan.chip,
            plan.budget,
            made.program,
            status=status,  # type: ignore[arg-type]
            lower_bound_bytes=0,
            latency_lower_bound_picoseconds=bound,
            dram_lower_bound_bytes=least,
            space=SPACE,
            seconds=time.perf_counter() - began,
            groups=made.groups,
            options=options,
        )

    found = certified("feasible")
    if found.result.latency_picoseconds is None:
        try:
            nest_times_of(found)
        except NoTimes as reason:
            raise NegativeAnswer(f"no times are known of this plan, which {reason}") from None
    return certified("optimal") if found.result.latency_picoseconds == bound else found
