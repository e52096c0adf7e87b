"""A plan's claim, proved again: its planner solves its problem anew, and the answers are compared.

The problem is the plan's own: its network, chip, budget and options, whatever file it came from. So a forged
digest, an edited budget or an invented bound does not survive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from onchip.base.errors import Infeasible, NegativeAnswer, UsageError
from onchip.check import plan_chip_of, standing
from onchip.check.named import why_outside
from onchip.check.options import PINNED
from onchip.machines.chip import RATES, Chip, builtin_chips
from onchip.network import Network
from onchip.planners.placement import PlacementOptions
from onchip.planners.progress import Progress
from onchip.plans import PinnedWeights, Plan, Run

__all__ = ["Proof", "prove"]

GOALS = {
    "traffic": ("traffic_bytes", "lower_bound_bytes"),
    "peak": ("extent_bytes", "peak_lower_bound_bytes"),
    "latency": ("latency_picoseconds", "latency_lower_bound_picoseconds"),
    "energy": ("energy_picojoules", "energy_lower_bound_picojoules"),
    "dram": ("dram_bytes", "dram_lower_bound_bytes"),
    "memory": ("memory_picoseconds", "memory_lower_bound_picoseconds"),
}
"""Objective -> what it makes small, and the planner's bound of that."""

PLACING = ("placement", "baseline", "memories")
"""Planners whose operators run one by one, with weights streamed or resident."""

LIMITS = ("time_limit", "memory_limit")
"""How hard to search is the caller's business, not that of a file."""

Outcome = Literal["proved", "refuted", "not decided"]


@dataclass(frozen=True, slots=True)
class Proof:
    """What solving a plan's problem again has shown.

    `proved`: the claim holds. `refuted`: `better` is a plan of the same problem below what was claimed to be
    the least. `not decided`: neither, for the `reason`. `claimed` is the bound in the plan, `bound` the one
    proved now, `best` the figure of the best plan found now; all of `what`, a field of the result. `space`
    says among which plans was searched now, which a file may not name. `holds` are the bounds in the plan
    that were proved, `unproved` the others: they stand in the file, and nothing more.
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
        """Everything but the plan, for JSON."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "better"}


def prove(
    plan: Plan,
    *,
    chip: Chip | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Proof:
    """Solve the problem of a plan that `check` accepts, and compare what comes with what it claims.

    `chip` is for plans of groups on a chip that is not built in, `time_limit` the seconds for the search.
    Raises `UsageError` where nothing is claimed, or by no planner of this version, and where `chip` is not
    what the plan records of its chip.
    """
    goal = str(plan.options.get("objective", "traffic"))
    if goal not in GOALS or standing(plan) == "none":
        raise UsageError("nothing is claimed in this plan that could be proved", item="--prove")
    if chip is not None:
        _same_chip(plan, chip)
    on = _chip(plan) if chip is None else chip
    again = _planner(plan, on, time_limit, progress or (lambda line: None))
    outside = why_outside(plan, str(plan.options.get("planner", "placement")))
    if outside:
        return _found("not decided", plan, goal, None, outside)
    try:
        made = again()
    except Infeasible as no:
        return _found("not decided", plan, goal, None, f"the planner finds no plan at all: {no}")
    except NegativeAnswer as no:
        return _found("not decided", plan, goal, None, str(no))
    return _compared(plan, made, goal)


def stated_bounds(plan: Plan) -> tuple[str, ...]:
    """The bounds in a plan that say anything: those above 0."""
    return tuple(bound for _, bound in GOALS.values() if getattr(plan.result, bound))


def _found(outcome: Outcome, plan: Plan, goal: str, made: Plan | None, reason: str = "") -> Proof:
    """What the search has shown of a goal's bound."""
    what, bound_of = GOALS[goal]
    best, bound = (None, None) if made is None else (getattr(made.result, key) for key in (what, bound_of))
    better, space = (made if outcome == "refuted" else None), "" if made is None else made.result.space
    claimed, stated = getattr(plan.result, bound_of) or 0, stated_bounds(plan)
    holds: tuple[str, ...] = ()
    if outcome == "proved":
        assert made is not None
        holds = tuple(key for key in stated if (getattr(made.result, key) or 0) >= getattr(plan.result, key))
    unproved = tuple(key for key in stated if key not in holds)
    return Proof(outcome, what, claimed, bound, best, reason, better, space, holds, unproved)


def _compared(plan: Plan, made: Plan, goal: str) -> Proof:
    """What a plan claims beside what its planner has found now."""
    claims, found = plan.result, made.result

    def undecided(reason: str) -> Proof:
        return _found("not decided", plan, goal, made, reason)

    ranged = plan.options.get("planner") != "baseline"  # whose bound is that of all orders
    if ranged and plan.options.get("order") == "minpeak" and _order(made) != _order(plan):
        return undecided("another order of least peak was found")
    if claims.space and found.space != claims.space:
        return undecided(f"its options give another space: {found.space}")
    if goal == "memory" and found.traffic_bytes != claims.traffic_bytes:
        if found.traffic_bytes < claims.lower_bound_bytes:
            return _found("refuted", plan, "traffic", made)
        if found.lower_bound_bytes > claims.traffic_bytes:
            return undecided(_stranger("traffic_bytes", found.lower_bound_bytes, claims.traffic_bytes))
        return undecided("the plan found now has other traffic, and its times say nothing")
    for other, (figure, bound) in GOALS.items():
        has, least, value = (getattr(r, k) for r, k in ((claims, figure), (found, bound), (found, figure)))
        if other == "memory" and other != goal:  # that one is of plans with as little traffic alone
            continue
        if has is not None and least is not None and least > has:
            return undecided(_stranger(figure, least, has))
        if value is not None and value < (getattr(claims, bound) or 0):
            return _found("refuted", plan, other, made)
    if goal == "memory" and found.lower_bound_bytes < claims.lower_bound_bytes:
        return undecided("the bound of the traffic was not reached")
    _, bound = GOALS[goal]
    if (getattr(found, bound) or 0) >= (getattr(claims, bound) or 0):
        return _found("proved", plan, goal, made)
    return undecided("the search ended before its bound was as high")


def _stranger(figure: str, least: int, has: int) -> str:
    """Why a plan with a figure below what is proved is none of those that were searched."""
    return (
        f"the plan is not among the plans that it names: they have {figure} of {least:,} or more, it {has:,}"
    )


def _same_chip(plan: Plan, chip: Chip) -> None:
    """Raise `UsageError` for a figure of a chip's file that is not the one that the plan records."""
    here, there = plan.chip, plan_chip_of(chip)
    keys = ("name", "alignment_bytes", *RATES)
    pairs: list[tuple[str, object, object]] = [(key, getattr(here, key), getattr(there, key)) for key in keys]
    own = plan.options.get("planner", "placement") in PLACING and plan.options.get("weights") == "resident"
    if own or here.weight_scratchpad_bytes is not None:
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
    """The chip that a plan was made for, as far as its planners look at it."""
    named = next((chip for chip in builtin_chips() if chip.name == plan.chip.name), None)
    stated: dict[str, Any] = {key: getattr(plan.chip, key) for key in (*RATES, "alignment_bytes", "memories")}
    stated["weight_scratchpad_bytes"] = plan.chip.weight_scratchpad_bytes
    if named is None:
        return Chip(plan.chip.name, element=plan.network.element, **stated)
    return replace(named, **stated)


def _planner(plan: Plan, chip: Chip, time_limit: float | None, say: Progress) -> Callable[[], Plan]:
    """What makes a plan of the same problem in the same space."""
    from onchip.planners import joint, placement
    from onchip.planners.fusion.fuse import fuse
    from onchip.planners.fusion.options import FusionOptions
    from onchip.planners.joint.options import SHARED, JointOptions
    from onchip.planners.placement.memories import plan_in_memories
    from onchip.planners.progress import of_fusion, of_joint, of_placement

    planner, network = plan.options.get("planner", "placement"), _as_read(plan)
    if planner == "segments":
        from onchip.microcontroller import segments

        modes: dict[object, segments.InputMode] = {mode: mode for mode in get_args(segments.InputMode)}
        goals: dict[object, segments.Objective] = {goal: goal for goal in get_args(segments.Objective)}
        mode, goal = modes.get(plan.options.get("input")), goals.get(plan.options.get("segments"))
        if mode is None or goal is None:
            raise UsageError("the plan names no input mode and objective of segments", item="--prove")
        asked_of = segments.SegmentOptions(mode, goal, time_limit)
        return lambda: segments.plan(network, plan.budget, asked_of)
    if planner == "fusion":
        fusing = FusionOptions(**_options(plan, FusionOptions, time_limit))

        def fused() -> Plan:
            made = fuse(network, chip, plan.budget, fusing, progress=of_fusion(say), beside=False)
            if made.plan is None:
                raise UsageError("what this fuser finds is no plan", item="--prove")
            return made.plan

        return fused
    placing = _placing(plan, time_limit)
    if planner == "joint":
        joining = {k: v for k, v in _options(plan, JointOptions, None).items() if k != "fuse"}
        shared = PlacementOptions(**{key: getattr(placing, key) for key in SHARED})
        asked = JointOptions(fuse=True, **joining)
        return lambda: joint.plan(network, chip, plan.budget, asked, shared, progress=of_joint(say))
    if planner == "memories":
        if not plan.chip.memories:
            raise UsageError("the plan's chip has one memory, not several", item="--prove")
        return lambda: plan_in_memories(network, chip, plan.chip.memories, placing, progress=say)
    if planner in ("placement", "baseline"):
        return lambda: placement.plan(network, chip, plan.budget, placing, progress=of_placement(say))
    raise UsageError(f"plans by {str(planner)[:60]} cannot be made again", item="--prove")


def _placing(plan: Plan, time_limit: float | None) -> PlacementOptions:
    """Options of placement, with the pins and states that stand apart in a plan."""
    from onchip.plans import PinnedTensor

    given = {k: v for k, v in _options(plan, PlacementOptions, time_limit).items() if k != "strategy"}
    if plan.options.get("planner") == "baseline":
        given.pop("order", None)  # its bound is that of all orders
    if plan.options.get("planner") in ("memories", "joint"):
        given.pop("objective", None)  # the only one that they have
    if plan.options.get("planner") == "joint":
        given.pop("weights", None)
    pins = [
        (p.tensor if isinstance(p, PinnedTensor) else f"weights:{p.operator}")
        + ("" if p.address is None else f"@{p.address}")
        for p in plan.pins
    ]
    state = [f"{s.input}={s.output}@{s.address}" for s in plan.state]
    return PlacementOptions(**given, pin=tuple(pins), state=tuple(state))


def _as_read(plan: Plan) -> Network:
    """The network before resident weights went into the workspaces, from where planning puts them again."""
    network, given = plan.network, plan.options
    own = given.get("planner", "placement") in PLACING and given.get("weights") == "resident"
    if not own or plan.chip.weight_scratchpad_bytes is not None:
        return network
    pinned = {p.operator for p in plan.pins if isinstance(p, PinnedWeights)}
    operators = tuple(
        op if op.name in pinned else replace(op, workspace=max(op.workspace - op.weight_bytes, 0))
        for op in network.operators
    )
    return replace(network, operators=operators)


def _options(plan: Plan, kind: type[Any], time_limit: float | None) -> dict[str, Any]:
    """The planner's options that the plan records; what it keeps on chip stands apart."""
    known = {f.name for f in fields(kind)} - {*PINNED, *LIMITS}
    given = {key: value for key, value in plan.options.items() if key in known}
    return {**given, "time_limit": time_limit} if time_limit is not None else given
