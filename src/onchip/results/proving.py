"""A plan's claim, proved again: its planner solves its problem again, and the answers are compared.

The problem is the plan's own: its network, chip, budget and options, whatever file it came from. A forged
digest, an edited budget or an invented bound is therefore detected.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from onchip.base import guard
from onchip.base.errors import Infeasible, NegativeAnswer, UsageError
from onchip.check import plan_chip_of, standing
from onchip.check.claims.named import why_outside
from onchip.check.claims.objectives import BOUNDED
from onchip.machines.chip import RATES, Chip, Rates, builtin_chips
from onchip.planners import registry
from onchip.planners.limits import Limits, Progress
from onchip.planners.protocol import FiguresOnly
from onchip.plans import Plan, Run

__all__ = ["Proof", "prove"]

Outcome = Literal["proved", "refuted", "not decided"]


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of solving a plan's problem again.

    `proved`: the claim holds. `refuted`: `better` is a plan of the same problem below the claimed least. `not
    decided`: neither, for the `reason`. `claimed` is the bound in the plan, `bound` the one proved now,
    `best` the figure of the best plan found now; all of `what`, a field of the result. `space` names the
    plans that were searched now, which a file may not name. `holds` are the bounds in the plan that were
    proved, `unproved` the others, which are merely stated in the file.
    """

    outcome: Outcome
    what: str
    claimed: int
    bound: int | None
    best: int | None
    reason: str = ""
    better: Plan | None = None
    space: str = ""
    holds: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        """Return everything but the plan, for JSON."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "better"}


def prove(
    plan: Plan,
    *,
    chip: Chip | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Proof:
    """Solve the problem of a plan that `check` accepts, and compare the answer with the plan's claim.

    `chip` is for plans of groups on a chip that is not built in, `time_limit` the seconds for the search.
    Raises `UsageError` where nothing is claimed, or by no planner of this version, and where `chip` is not
    the chip that the plan records.
    """
    goal = str(plan.options.get("objective", "traffic"))
    if goal not in BOUNDED or standing(plan) == "none":
        raise UsageError("nothing is claimed in this plan that could be proved", item="--prove")
    if chip is not None:
        _same_chip(plan, chip)
    name = str(plan.options.get("planner", "placement"))
    planner = registry.find(name)
    if planner is None:
        raise UsageError(f"plans by {name[:60]} cannot be made again", item="--prove")
    # The caller decides the effort of the search, and a proof needs the search that ends.
    options = planner.options_of(replace(plan, options={**plan.options, **planner.exactly}))
    limits = replace(Limits.of(options, progress), time_limit=guard.left(time_limit))
    outside = why_outside(plan, name)
    if plan.caches and name != "placement":
        outside = outside or f"planner {name} does not make plans that begin caches again"
    if outside:
        return _found("not decided", plan, goal, None, outside)
    on = replace(_chip(plan) if chip is None else chip, memories=plan.chip.memories)
    try:
        made = planner.solve(planner.network_of(plan), on, plan.budget, options, limits)
    except FiguresOnly:
        raise UsageError("what this fuser finds is no plan", item="--prove") from None
    except Infeasible as no:
        return _found("not decided", plan, goal, None, f"the planner finds no plan at all: {no}")
    except NegativeAnswer as no:
        return _found("not decided", plan, goal, None, str(no))
    return _compared(plan, made, goal, one_order=getattr(options, "order", "") == "minpeak")


def stated_bounds(plan: Plan) -> tuple[str, ...]:
    """Return the meaningful bounds in a plan: those above 0."""
    return tuple(
        bound for goal, (_, bound) in BOUNDED.items() if goal != "edp" and getattr(plan.result, bound)
    )


def _found(outcome: Outcome, plan: Plan, goal: str, made: Plan | None, reason: str = "") -> Proof:
    """Return the proof of a goal's bound from the search's outcome."""
    what, bound_of = BOUNDED[goal]
    best, bound = (None, None) if made is None else (getattr(made.result, key) for key in (what, bound_of))
    better, space = (made if outcome == "refuted" else None), "" if made is None else made.result.space
    claimed, stated = getattr(plan.result, bound_of) or 0, stated_bounds(plan)
    holds: tuple[str, ...] = ()
    if outcome == "proved":
        assert made is not None
        holds = tuple(key for key in stated if (getattr(made.result, key) or 0) >= getattr(plan.result, key))
    unproved = tuple(key for key in stated if key not in holds)
    return Proof(outcome, what, claimed, bound, best, reason, better, space, holds, unproved)


def _compared(plan: Plan, made: Plan, goal: str, *, one_order: bool) -> Proof:
    """Compare a plan's claims with its planner's answer now; `one_order`: in the order that it chose."""
    claims, found = plan.result, made.result

    def undecided(reason: str) -> Proof:
        return _found("not decided", plan, goal, made, reason)

    if one_order and _order(made) != _order(plan):
        return undecided("another order of least peak was found")
    if claims.space and found.space != claims.space:
        return undecided(f"its options give another space: {found.space}")
    if goal == "memory" and found.traffic_bytes != claims.traffic_bytes:
        if found.traffic_bytes < claims.lower_bound_bytes:
            return _found("refuted", plan, "traffic", made)
        if found.lower_bound_bytes > claims.traffic_bytes:
            return undecided(_stranger("traffic_bytes", found.lower_bound_bytes, claims.traffic_bytes))
        return undecided("the plan found now has other traffic, and its times say nothing")
    for other, (figure, bound) in BOUNDED.items():
        has, least, value = (getattr(r, k) for r, k in ((claims, figure), (found, bound), (found, figure)))
        if other == "memory" and other != goal:  # that bound covers only plans with as little traffic
            continue
        if has is not None and least is not None and least > has:
            return undecided(_stranger(figure, least, has))
        if value is not None and value < (getattr(claims, bound) or 0):
            return _found("refuted", plan, other, made)
    if goal == "memory" and found.lower_bound_bytes < claims.lower_bound_bytes:
        return undecided("the bound of the traffic was not reached")
    _, bound = BOUNDED[goal]
    if (getattr(found, bound) or 0) >= (getattr(claims, bound) or 0):
        return _found("proved", plan, goal, made)
    return undecided("the search ended before its bound was as high")


def _stranger(figure: str, least: int, has: int) -> str:
    """Return why a plan with a figure below the proved bound is not among the searched ones."""
    return (
        f"the plan is not among the plans that it names: they have {figure} of {least:,} or more, it {has:,}"
    )


def _same_chip(plan: Plan, chip: Chip) -> None:
    """Raise `UsageError` for a figure of a chip's file that is not the one that the plan records."""
    here, there = plan.chip, plan_chip_of(chip)
    keys = ("name", "alignment_bytes", "accumulator_bytes", *RATES)
    pairs: list[tuple[str, object, object]] = [(key, getattr(here, key), getattr(there, key)) for key in keys]
    if plan.options.get("weights") == "resident" or here.weight_scratchpad_bytes is not None:
        pairs.append(("weight_scratchpad_bytes", here.weight_scratchpad_bytes, chip.weight_scratchpad_bytes))
    if here.memories:  # how much of each is the budget's
        ours, theirs = ([replace(m, bytes=0) for m in of.memories] for of in (here, chip))
        pairs.append(("memory", ours, theirs))
    for key, recorded, stated in pairs:
        if recorded != stated:
            told = f": {_told(stated)}, and in the plan {_told(recorded)}" if key != "memory" else ""
            raise UsageError(f"{key} is not what the plan records of its chip{told}", item="--chip")


def _told(value: object) -> str:
    return "not stated" if value is None else str(value)[:60]


def _order(plan: Plan) -> list[str]:
    return [step.operator for step in plan.program if isinstance(step, Run)]


def _chip(plan: Plan) -> Chip:
    """Return the chip that a plan was made for, as far as its planners read it."""
    named = next((chip for chip in builtin_chips() if chip.name == plan.chip.name), None)
    if named is None:
        named = Chip(plan.chip.name, plan.chip.alignment_bytes, plan.network.element)
    return replace(
        named,
        alignment_bytes=plan.chip.alignment_bytes,
        accumulator_bytes=plan.chip.accumulator_bytes,
        rates=Rates(**{key: getattr(plan.chip, key) for key in RATES}),
        weight_scratchpad_bytes=plan.chip.weight_scratchpad_bytes,
        memories=plan.chip.memories,
        tiles=plan.chip.tiles,
    )
