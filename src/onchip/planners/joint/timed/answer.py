"""The best plan that was found, of the least time or the least product of energy and time, with its bound."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import prod

from onchip.base.errors import IllegalPlan, NegativeAnswer
from onchip.check import certify, energy
from onchip.check.nest_clock import nest_times_of
from onchip.check.nest_times import NoTimes
from onchip.network import Network
from onchip.network.axes import GroupAxes, axes_of
from onchip.network.repeats import folded
from onchip.planners.fusion import FusionProblem
from onchip.planners.fusion.least import least_bytes
from onchip.planners.joint.timed.aim import Aim, Goal
from onchip.planners.joint.timed.beside import side_by_side
from onchip.planners.joint.timed.bound import least_picoseconds
from onchip.planners.joint.timed.hasten import Fastest, Hastened, different, hastened
from onchip.planners.joint.timed.layouts import Streams, layouts_for
from onchip.planners.joint.timed.lying import ROWS, Lying, may_lie_in_tiles
from onchip.planners.joint.timed.partition import Efforts, partitioned_plan
from onchip.planners.joint.timed.starts import FewestBytes, Sliced, whole_operators
from onchip.planners.limits import Limits
from onchip.planners.refusals import found_nothing
from onchip.plans import Plan, Status

__all__ = ["SPACE", "Starts", "quickest", "starts_of"]

PRICES = 3
"""The most prices of a byte that are tried for the least product."""

SAME_PRICE = 20
"""Prices that differ by less than one part in so many find the same plans."""

EFFORTS = Efforts(
    first=3_200_000,
    long=6_000_000,
    least=100_000,
    first_together=120_000_000,
    long_together=60_000_000,
    most=330_000_000,
)
"""The efforts of searches for the partition: steps of nests that are walked, and forty for every nest that is
looked at."""

START_EFFORT, PLAN_EFFORT, ALL_EFFORT = 2_000_000, 60_000_000, 280_000_000
"""The most effort of the search for one group of a plan that it begins with; that for all groups of the best
partition together, at last; and that for the partition and these, if the partition took less."""

OF_A_BIT = 4_500_000
"""The most effort at last for every bit of the numbers of indices of a network's operators: small and few
operators have few nests."""

PARTITIONED = 0.7
"""The share of the time that is left after which the partition is to stand."""

BEFORE_LAID = 0.6
"""The share of the time that is left in which nests are searched before tensors between them are laid in
tiles; in the rest they are searched for these tiles."""

PROMISING = 4
"""The plan of whole operators is searched for better nests where it is worse by less than one part in so
many."""

SPACE = (
    "the bound: every plan of nests, one after another or beside each other, of any tiles, homes, copies"
    " and sides of the array, each operator run at least once; the plan: the groups of fewest bytes, whole"
    " operators, or neighbours of the network's order with tensors streamed or whole between them, each in"
    " the fastest nest found, and tensors between them in DRAM row by row or in tiles"
)


@dataclass(frozen=True, slots=True)
class Starts:
    """Plans without a search for time, certified; None where there is none: the one of fewest bytes with its
    best copies, and that of whole operators with slices of weights in two copies.
    """

    fewest_bytes: Plan | None
    whole_operators: Plan | None

    def plans(self) -> list[Plan]:
        """Return those that there are."""
        return [made for made in (self.fewest_bytes, self.whole_operators) if made is not None]


def quickest(
    plan: Plan,
    problem: FusionProblem,
    began: float,
    limits: Limits,
    goal: Goal = "latency",
    starts: Starts | None = None,
    *,
    tiled: bool = True,
) -> Plan:
    """Return a plan of nests that is better than the plan of fewest bytes, as good as was found, and no worse
    than any of `starts`, which are found if they are not given. `tiled` lets tensors between groups lie in
    tiles in DRAM.

    `optimal` where its time is the bound of `least_picoseconds`, or the product of energy and time that of
    their bounds. Raises `NegativeAnswer` where the law of time says nothing of some run, or no nest has room.
    """
    answers = _Answers(plan, problem, began, limits, goal, tiled=tiled)
    starts = starts or answers.starts()
    aim = Aim(goal)
    if goal == "latency":
        return answers.best(aim, starts)
    best = min(starts.plans(), key=aim.value, default=None)
    if best is not None:
        aim = aim.priced_as(best)
    for _ in range(PRICES):
        found = answers.best(aim, starts)
        if best is not None and aim.value(found) >= aim.value(best):
            return best
        best, before = found, aim.per_byte
        aim = aim.priced_as(found)
        if limits.over() or abs(aim.per_byte - before) * SAME_PRICE < before:
            break
    assert best is not None
    return best


def starts_of(plan: Plan, problem: FusionProblem, began: float, limits: Limits, goal: Goal) -> Starts:
    """Return the plans that a search for time begins with, and none of which is better than its answer."""
    return _Answers(plan, problem, began, limits, goal).starts()


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


class _Answers:
    """The plans of one network for a goal, each certified."""

    def __init__(
        self,
        plan: Plan,
        problem: FusionProblem,
        began: float,
        limits: Limits,
        goal: Goal,
        *,
        tiled: bool = True,
    ) -> None:
        assert plan.chip.tiles is not None
        self.plan, self.problem, self.began, self.limits, self.goal = plan, problem, began, limits, goal
        self.tiled = tiled
        self.lying = Lying(open=may_lie_in_tiles(plan.network)) if tiled else ROWS
        least, meant = least_bytes(problem), folded(plan.network).network
        self.bounds = _Bounds(
            least,
            least_picoseconds(plan.network, plan.chip.tiles, least),
            energy(meant, plan.chip, least) if goal == "edp" else None,
        )

    def starts(self) -> Starts:
        """Return the plans without a search for time."""
        aim, fewest, whole = Aim(self.goal), None, None
        with found_nothing():  # some run has no nest of fewest bytes; a search may find others
            fewest = self.certified(hastened(self.plan, FewestBytes(self.problem, self.plan, self.limits, 0)))
        sliced = Sliced(self.problem, self.plan, self.limits, 0)
        for placed in whole_operators(self.plan, self.problem, self.limits):
            with found_nothing():  # no room for slices, or no times
                made = self.certified(hastened(placed, sliced))
                whole = made if whole is None else min(whole, made, key=aim.value)
        return Starts(fewest, whole)

    def best(self, aim: Aim, starts: Starts) -> Plan:
        """Return the best plan found for what bytes are worth to an aim."""
        best = min(starts.plans(), key=aim.value, default=None)
        refusal: NegativeAnswer | None = None
        limits = self.limits.share(PARTITIONED)
        fastest = Fastest(self.problem, self.plan, limits, EFFORTS.first, aim, self.lying)
        partitioned = partitioned_plan(self.plan, self.problem, fastest, EFFORTS)
        last = max(PLAN_EFFORT, ALL_EFFORT - fastest.spent)
        last = max(EFFORTS.least, min(last, OF_A_BIT * _bits(self.plan.network)))
        for start, most, together in (
            (partitioned, last, last),
            (starts.fewest_bytes or self.plan, START_EFFORT, PLAN_EFFORT),
            (starts.whole_operators, START_EFFORT, PLAN_EFFORT),
        ):
            if start is None or (start is starts.whole_operators and not _near(start, best, aim)):
                continue
            if best is not None and self.limits.over():
                break
            try:
                found = self.improved(start, most, together, aim)
            except IllegalPlan:
                raise
            except NegativeAnswer as no:
                refusal = refusal or no
                continue
            if best is None or aim.value(found) < aim.value(best):
                best = found
        if best is None:
            assert refusal is not None
            raise refusal
        return best

    def improved(self, start: Plan, most: int, together: int, aim: Aim) -> Plan:
        """Return a plan whose runs are searched for better nests, each with an effort of at most `most`, and
        all with `together`; some are beside the one before."""
        limits = self.limits.share(BEFORE_LAID) if self.lying.open else self.limits
        fastest = Fastest(self.problem, self.plan, limits, 0, aim, self.lying)
        fastest.effort = max(EFFORTS.least, min(most, together // max(1, different(start, fastest))))
        made = hastened(start, fastest)
        if self.lying.open:
            made = self.laid(start, made, fastest)
        alone = self.certified(made)
        found = side_by_side(alone, self.limits)
        if found is alone:
            return alone
        beside = self.certified(replace(made, program=found.program, groups=found.groups))
        return min(alone, beside, key=aim.value)

    def laid(self, start: Plan, made: Hastened, fastest: Fastest) -> Hastened:
        """Return the same with a layout for every tensor, and nests searched on for these."""
        groups = []
        for run, one in zip(made.runs, made.chosen, strict=True):
            layout = fastest.group(run.operators, run.streamed).law(one.nest).layout
            used = frozenset(b.tensor for b in layout.axes.buffers if b.tensor is not None)
            groups.append(Streams(layout, run.streamed & used, used - run.streamed))
        assert self.plan.chip.tiles is not None
        layouts = layouts_for(self.plan.network, groups, self.lying.open, self.plan.chip.tiles)
        again = Fastest(self.problem, self.plan, self.limits, 0, fastest.aim, Lying(layouts))
        again.effort = fastest.effort // 2
        return hastened(replace(start, program=made.program, groups=made.groups), again)

    def certified(self, made: Hastened) -> Plan:
        """Return the plan of a program, with what is claimed of it."""
        plan, bounds = self.plan, self.bounds

        def certified(status: Status) -> Plan:
            return certify(
                plan.network,
                plan.chip,
                plan.budget,
                made.program,
                status=status,
                lower_bound_bytes=0,
                latency_lower_bound_picoseconds=bounds.picoseconds,
                energy_lower_bound_picojoules=bounds.picojoules,
                dram_lower_bound_bytes=bounds.bytes,
                space=SPACE,
                seconds=time.perf_counter() - self.began,
                groups=made.groups,
                layouts=made.layouts,
                options={**plan.options, "objective": self.goal, "dram_tiles": self.tiled},
            )

        found = certified("feasible")
        if found.result.latency_picoseconds is None:
            try:
                nest_times_of(found)
            except NoTimes as reason:
                raise NegativeAnswer(f"no times are known of this plan, which {reason}") from None
            raise NegativeAnswer("this plan takes 10^18 picoseconds or more, and no plan states such times")
        if self.goal == "edp" and found.result.energy_picojoules is None:
            raise NegativeAnswer("this plan takes 10^18 picojoules or more, and no plan states such energies")
        return certified("optimal") if bounds.reached(found) else found


def _bits(network: Network) -> int:
    """Return the bits of the numbers of indices of all operators together."""
    found = [axes_of(network, (v,)) for v in network.order]
    cuts = [axes.operators[0] for axes in found if isinstance(axes, GroupAxes)]
    return sum(prod(cut.axes).bit_length() - 1 for cut in cuts)


def _near(start: Plan, best: Plan | None, aim: Aim) -> bool:
    """Return whether a start may become better than the best plan."""
    return best is None or aim.value(start) * PROMISING < aim.value(best) * (PROMISING + 1)
