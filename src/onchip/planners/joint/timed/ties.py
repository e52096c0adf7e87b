"""Plans that move no more bytes than one of fewest, in less time: bytes alone say little of it, and energy
grows with the bytes alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from onchip.base.errors import NegativeAnswer
from onchip.check.nest_durations import PICOSECONDS
from onchip.planners.fusion import FusionProblem
from onchip.planners.joint.timed.aim import Aim
from onchip.planners.joint.timed.beside import side_by_side
from onchip.planners.joint.timed.hasten import Fastest, different, hastened
from onchip.planners.joint.timed.starts import FewestBytes
from onchip.planners.limits import Limits
from onchip.plans import Plan

__all__ = ["hastened_plans"]

EFFORT, LEAST, TOGETHER = 2_000_000, 100_000, 8_000_000
"""The most and the least effort of the search for one group, and that for all groups that differ in more than
names."""

DEAR = 1_000
"""A byte is worth so many times the time in which it crosses: a nest that moves more is hardly ever taken."""


def hastened_plans(plan: Plan, problem: FusionProblem, limits: Limits) -> Iterator[Plan]:
    """Yield plans with the runs of a plan of fewest bytes in faster and faster nests, none certified.

    First with the best copies of every buffer, which move as much; then with nests that are searched for.
    Nothing is yielded where a run has no nest.
    """
    assert plan.chip.tiles is not None
    rate = sum(channel.bytes_per_second for channel in plan.chip.tiles.channels)
    aim = Aim(per_byte=Fraction(DEAR * PICOSECONDS, rate).limit_denominator(10**6))
    with suppress(NegativeAnswer):
        searched = Fastest(problem, plan, limits, 0, aim)
        searched.effort = max(LEAST, min(EFFORT, TOGETHER // max(1, different(plan, searched))))
        for fastest in (FewestBytes(problem, plan, limits, 0), searched):
            made = hastened(plan, fastest)
            plan = replace(plan, program=made.program, groups=made.groups)
            yield plan
            beside = side_by_side(plan, limits)
            if beside is not plan:
                yield beside
