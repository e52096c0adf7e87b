"""The best plan that was found, of the least time or the least product of energy and time, with its bound."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace

from onchip.base.errors import NegativeAnswer
from onchip.check import certify, energy
from onchip.check.nest_clock import nest_times_of
from onchip.check.nest_times import NoTimes
from onchip.planners.fusion import FusionProblem
from onchip.planners.fusion.least import least_bytes
from onchip.planners.joint.timed.aim import Aim, Goal
from onchip.planners.joint.timed.beside import side_by_side
from onchip.planners.joint.timed.bound import least_picoseconds
from onchip.planners.joint.timed.hasten import Fastest, Hastened, hastened
from onchip.planners.joint.timed.partition import partitioned_plan
from onchip.planners.limits import Limits
from onchip.plans import Plan

__all__ = ["EFFORT", "SPACE", "quickest"]

PRICES = 3
"""The most prices of a byte that are tried for the least product."""

SAME_PRICE = 20
"""Prices that differ by less than one part in so many find the same plans."""

FIRST_EFFORT, EFFORT, PLAN_EFFORT = 800_000, 6_000_000, 60_000_000
"""The effort of the search for every group that a partition may have, for those of the best one, and at last
for all groups of the plan together, if that is more: steps of nests that are walked, and forty for every nest
that is looked at."""

SPACE = (
    "the bound: every plan of nests, one after another or beside each other, of any tiles, homes, copies and"
    " sides of the array, each operator run once; the plan: the groups of fewest bytes, or neighbours of the"
    " network's order with tensors streamed or whole between them, each in the fastest nest found"
)


def quickest(
    plan: Plan, problem: FusionProblem, began: float, limits: Limits, goal: Goal = "latency"
) -> Plan:
    """Return a plan of nests that is better than the plan of fewest bytes, as good as was found.

    `optimal` where its time is the bound of `least_picoseconds`, or the product of energy and time that of
    their bounds. Raises `NegativeAnswer` where the law of time says nothing of some run, or no nest has room.
    """
    assert plan.chip.tiles is not None
    least = least_bytes(problem)
    bounds = _Bounds(
        least,
        least_picoseconds(plan.network, plan.chip.tiles, least),
        energy(plan.network, plan.chip, least) if goal == "edp" else None,
    )
    aim = Aim(goal)
    if goal == "latency":
        return _quickest(plan, problem, began, limits, aim, bounds)
    best: Plan | None = None
    with suppress(NegativeAnswer):  # then the search for groups may find some
        best = _fewest_bytes_quickly(plan, problem, began, limits, aim, bounds)
        aim = aim.priced_as(best)
    for _ in range(PRICES):
        found = _quickest(plan, problem, began, limits, aim, bounds)
        if best is not None and aim.value(found) >= aim.value(best):
            return best
        best, before = found, aim.per_byte
        aim = aim.priced_as(found)
        if limits.over() or abs(aim.per_byte - before) * SAME_PRICE < before:
            break
    assert best is not None
    return best


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Bytes, picoseconds and, where that is asked for, picojoules that every plan takes."""

    bytes: int
    picoseconds: int
    picojoules: int | None

    def reached(self, plan: Plan) -> bool:
        """Return whether nothing can be better than a plan."""
        r = plan.result
        return r.latency_picoseconds == self.picoseconds and self.picojoules in (None, r.energy_picojoules)


def _fewest_bytes_quickly(
    plan: Plan, problem: FusionProblem, began: float, limits: Limits, aim: Aim, bounds: _Bounds
) -> Plan:
    """Return the plan of fewest bytes in nests that are as fast as a short search finds."""
    fastest = Fastest(problem, plan, limits, FIRST_EFFORT)
    return _certified(plan, hastened(plan, fastest), bounds, began, aim)


def _quickest(
    plan: Plan, problem: FusionProblem, began: float, limits: Limits, aim: Aim, bounds: _Bounds
) -> Plan:
    """Return the best plan found for what bytes are worth to an aim."""
    best: Plan | None = None
    refusal: NegativeAnswer | None = None
    fastest = Fastest(problem, plan, limits, FIRST_EFFORT, aim)
    partitioned = partitioned_plan(plan, problem, fastest, EFFORT)
    for start, least_effort, together in ((plan, EFFORT // 3, 0), (partitioned, EFFORT, PLAN_EFFORT)):
        if start is None:
            continue
        effort = max(least_effort, together // max(1, len(start.groups)))
        try:
            made = hastened(start, Fastest(problem, plan, limits, effort, aim))
            alone = _certified(plan, made, bounds, began, aim)
        except NegativeAnswer as no:
            refusal = refusal or no
            continue
        found = side_by_side(alone, limits)
        if found is not alone:
            made = replace(made, program=found.program, groups=found.groups)
            alone = _certified(plan, made, bounds, began, aim)
        if best is None or aim.value(alone) < aim.value(best):
            best = alone
    if best is None:
        assert refusal is not None
        raise refusal
    return best


def _certified(plan: Plan, made: Hastened, bounds: _Bounds, began: float, aim: Aim) -> Plan:
    """Return the plan of a program, with what is claimed of it."""
    options = {**plan.options, "objective": aim.goal}

    def certified(status: str) -> Plan:
        return certify(
            plan.network,
            plan.chip,
            plan.budget,
            made.program,
            status=status,  # type: ignore[arg-type]
            lower_bound_bytes=0,
            latency_lower_bound_picoseconds=bounds.picoseconds,
            energy_lower_bound_picojoules=bounds.picojoules,
            dram_lower_bound_bytes=bounds.bytes,
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
    return certified("optimal") if bounds.reached(found) else found
