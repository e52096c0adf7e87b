"""A plan's claim, proved again: its planner solves its problem anew, and the answers are compared.

The problem is the plan's own: its network, chip, budget and options, whatever file it came from. So a forged
digest, an edited budget or an invented bound does not survive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from onchip.base.errors import Infeasible, NegativeAnswer, UsageError
from onchip.check import standing
from onchip.machines.chip import RATES, Chip, builtin_chips
from onchip.planners.placement import PlacementOptions
from onchip.planners.placement.claim import space_of
from onchip.planners.progress import Progress
from onchip.plans import Plan, Run, bind

__all__ = ["Proof", "prove"]

GOALS = {
    "traffic": ("traffic_bytes", "lower_bound_bytes"),
    "peak": ("extent_bytes", "peak_lower_bound_bytes"),
    "latency": ("latency_picoseconds", "latency_lower_bound_picoseconds"),
    "energy": ("energy_picojoules", "energy_lower_bound_picojoules"),
    "dram": ("dram_bytes", "dram_lower_bound_bytes"),
    "memory": ("memory_picoseconds", "memory_lower_bound_picoseconds"),
}


@dataclass(frozen=True, slots=True)
class Proof:
    """What solving a plan's problem again has shown.

    `proved`: the claim holds. `refuted`: `better` is a plan of the same problem below what was claimed to be
    the least. `not decided`: neither, for the `reason`. `claimed` is the bound in the plan, `bound` the one
    proved now, `best` the figure of the best plan found now; all of `what`, a field of the result. `space`
    says among which plans was searched now, which a file may not name.
    """

    outcome: Literal["proved", "refuted", "not decided"]
    what: str
    claimed: int
    bound: int | None
    best: int | None
    reason: str = ""
    better: Plan | None = None
    space: str = ""

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
    Raises `UsageError` where nothing is claimed, or by no planner of this version.
    """
    goal = str(plan.options.get("objective", "traffic"))
    if goal not in GOALS or standing(plan) == "none":
        raise UsageError("nothing is claimed in this plan that could be proved", item="--prove")
    what, bound_of = GOALS[goal]
    claimed = getattr(plan.result, bound_of) or 0
    again = _planner(plan, chip or _chip(plan), time_limit, progress or (lambda line: None))

    def found(
        outcome: Literal["proved", "refuted", "not decided"], made: Plan | None, reason: str = ""
    ) -> Proof:
        best, bound = (
            (None, None) if made is None else (getattr(made.result, key) for key in (what, bound_of))
        )
        better, space = (made if outcome == "refuted" else None), "" if made is None else made.result.space
        return Proof(outcome, what, claimed, bound, best, reason, better, space)

    try:
        made = again()
    except Infeasible as no:
        return found("not decided", None, f"the planner finds no plan at all: {no}")
    except NegativeAnswer as no:
        return found("not decided", None, str(no))
    if goal == "memory" and made.result.traffic_bytes != plan.result.traffic_bytes:
        if made.result.traffic_bytes < plan.result.lower_bound_bytes:
            what, bound_of, claimed = *GOALS["traffic"], plan.result.lower_bound_bytes
            return found("refuted", made)
        return found("not decided", made, "the plan found now has other traffic, and its times say nothing")
    best, bound = getattr(made.result, what), getattr(made.result, bound_of) or 0
    if plan.options.get("order") == "minpeak" and _order(made) != _order(plan):
        return found("not decided", made, "another order of least peak was found")
    if plan.result.space and made.result.space != plan.result.space:
        return found("not decided", made, f"its options give another space: {made.result.space}")
    if best is not None and best < claimed:
        return found("refuted", made)
    if goal == "memory" and made.result.lower_bound_bytes < plan.result.lower_bound_bytes:
        return found("not decided", made, "the bound of the traffic was not reached")
    if bound >= claimed:
        return found("proved", made)
    return found("not decided", made, "the search ended before its bound was as high")


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

    planner, network = plan.options.get("planner", "placement"), plan.network
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

        def placed() -> Plan:
            made = placement.plan(network, chip, plan.budget, placing, progress=of_placement(say))
            # What the plan records is how its network was made; here that is the network.
            weights = plan.options.get("weights", "streamed")
            words = space_of(
                network,
                replace(placing, weights="resident" if weights == "resident" else "streamed"),
                apart=plan.chip.weight_scratchpad_bytes is not None,
                held=bool(plan.pins or plan.state),
            )
            return bind(replace(made, result=replace(made.result, space=words)))

        return placed
    raise UsageError(f"plans by {str(planner)[:60]} cannot be made again", item="--prove")


def _placing(plan: Plan, time_limit: float | None) -> PlacementOptions:
    """Options of placement for a plan's network, where resident weights are in the workspaces already."""
    from onchip.plans import PinnedTensor

    given = {k: v for k, v in _options(plan, PlacementOptions, time_limit).items() if k != "strategy"}
    if plan.options.get("planner") == "baseline":
        given.pop("order", None)  # its bound is that of all orders
    if plan.options.get("planner") in ("memories", "joint"):
        given.pop("objective", None)  # the only one that they have
    if plan.chip.weight_scratchpad_bytes is None:
        given["weights"] = "streamed"
    pins = [
        (p.tensor if isinstance(p, PinnedTensor) else f"weights:{p.operator}")
        + ("" if p.address is None else f"@{p.address}")
        for p in plan.pins
    ]
    state = [f"{s.input}={s.output}@{s.address}" for s in plan.state]
    return PlacementOptions(**given, pin=tuple(pins), state=tuple(state))


def _options(plan: Plan, kind: type[Any], time_limit: float | None) -> dict[str, Any]:
    """The planner's options that the plan records."""
    known = {f.name for f in fields(kind)}
    given = {key: value for key, value in plan.options.items() if key in known}
    return {**given, "time_limit": time_limit} if time_limit is not None else given
