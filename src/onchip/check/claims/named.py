"""The check that a plan is one of those that its options name, as far as the plan alone shows.

A claim ranges over the plans of a space, and the options name the space. So a plan whose order, shared bytes
or weights the options exclude cannot claim to be the best of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from onchip.check.claims.objectives import BOUNDED
from onchip.check.rules import broken
from onchip.plans import Alloc, Join, Move, Nest, PinnedWeights, Plan, Rings, Rows, Run, Tiling

__all__ = ["prove_named", "why_outside"]

_TIMED = ("traffic", "latency", "energy", "edp")

_PROVES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "placement": {"traffic": _TIMED, "latency": _TIMED, "energy": _TIMED, "peak": (*_TIMED, "peak")},
    "baseline": {"traffic": ("traffic",)},
    "memories": {"memory": ("traffic", "memory")},
    "fusion": {"dram": ("dram",)},
    "joint": {
        "dram": ("dram",),
        "energy": ("dram", "energy"),
        "latency": ("dram", "latency"),
        "edp": ("dram", "energy", "latency", "edp"),
    },
    "segments": {"peak": ("peak",)},
    "rows": {"peak": ("peak",)},
    "branches": {"traffic": ()},
}
"""Planner -> its objectives -> the figures whose bounds it states."""


def prove_named(plan: Plan) -> None:
    """Refuse claims of a plan that its own options exclude. Raises `Broken`.

    `plan` has a legal program and correct figures. Options of a planner that is not onchip's own are not
    examined.
    """
    stated = any(getattr(plan.result, bound) for _, bound in BOUNDED.values())
    planner = plan.options.get("planner")
    if (stated or plan.result.status == "optimal") and planner in _PROVES:
        reason = why_outside(plan, str(planner))
        if reason:
            broken("claim", reason)


def why_outside(plan: Plan, planner: str) -> str:
    """Return why a plan is not one that `planner` and its options name; empty if nothing shows it.

    Nothing shows it for a planner that is not onchip's own.
    """
    goals = _PROVES.get(planner)
    if goals is None:
        return ""
    goal = str(plan.options.get("objective", "traffic"))
    if goal not in goals:
        return f"planner {planner} has no objective {goal[:60]}, but {', '.join(goals)}"
    for what, (_, bound) in BOUNDED.items():
        if getattr(plan.result, bound) and what not in goals[goal]:
            return f"planner {planner} proves no {bound} by {goal}"
    if bool(plan.chip.memories) != (planner == "memories"):
        several = "one memory" if planner == "memories" else "several memories"
        return f"planner {planner} is not for a chip of {several}"
    again = next((op.name for op in plan.network.operators if op.repeats is not None), None)
    if again and not (planner == "joint" and plan.options.get("recompute") is True):
        allowed = (
            "option recompute is not true" if planner == "joint" else f"planner {planner} runs nothing again"
        )
        return f"{allowed}, and {again} repeats an operator"
    begins = planner == "joint" and all(cache.input is None for cache in plan.caches)
    if planner != "placement" and (plan.pins or plan.state or (plan.caches and not begins)):
        return f"planner {planner} keeps nothing on chip for good, and the plan has pins, states or caches"
    if planner in ("placement", "baseline", "memories"):
        return _placed(plan, planner, goal)
    return _tiled(plan, planner)


def _placed(plan: Plan, planner: str, goal: str) -> str:
    """Return the same for plans in which operators run one by one, whole."""
    asked = plan.options
    if plan.groups:
        return f"planner {planner} runs no groups, and the plan has {len(plan.groups):,}"
    shares = planner == "placement" and asked.get("in_place") is True
    grown = {cache.output for cache in plan.caches}
    for i, step in enumerate(plan.program):
        where = f"at program[{i}]"
        if isinstance(step, Join):
            return f"planner {planner} joins nothing in DRAM, and the plan does {where}"
        if isinstance(step, Run) and step.streaming:
            return f"planner {planner} streams no operands, and the plan does {where}"
        if isinstance(step, Alloc) and (step.parts or step.by or (step.over is not None and not shares)):
            if step.tensor in grown and not step.parts:
                continue
            return f"the options let no two tensors share bytes, and they do {where}"
        if isinstance(step, Move) and asked.get("moves") is False:
            return f"option moves is false, and a tensor moves {where}"
    if goal == "peak" and plan.result.traffic_bytes:
        return f"by peak nothing is evicted, and the plan has traffic of {plan.result.traffic_bytes:,} bytes"
    if planner != "baseline" and asked.get("order") == "given":
        ran = [step.operator for step in plan.program if isinstance(step, Run)]
        given = [plan.network.operators[v].name for v in plan.network.order]
        for runs, own in zip(ran, given, strict=False):
            if runs != own:
                return f"option order is given, and {runs} runs where the network has {own}"
    return _resident(plan)


def _resident(plan: Plan) -> str:
    """Return why weights are not resident as the option states; empty if they are."""
    if plan.options.get("weights") != "resident" or plan.chip.weight_scratchpad_bytes is not None:
        return ""
    pinned = {p.operator for p in plan.pins if isinstance(p, PinnedWeights)}
    for op in plan.network.operators:
        if op.workspace < op.weight_bytes and op.name not in pinned:
            return f"option weights is resident, and the workspace of {op.name} does not hold its weights"
    return ""


def _tiled(plan: Plan, planner: str) -> str:
    """Return the same for plans with groups."""
    asked = plan.options
    over = [
        step for step in plan.program if isinstance(step, Alloc) and (step.parts or step.over is not None)
    ]
    streams = any(isinstance(step, Run) and step.streaming for step in plan.program)
    if planner == "fusion" and over:
        return f"planner fusion lays no tensor over another, and the plan does with {over[0].tensor}"
    if planner == "joint" and asked.get("overlap") is False and over:
        return f"option overlap is false, and {over[0].tensor} lies over another tensor"
    nests = [group.name for group in plan.groups if isinstance(group.tiling, Nest)]
    if planner == "joint" and not asked.get("nests") and nests:
        return f"option nests is not true, and {nests[0]} runs as a nest"
    joined = [step.operator for step in plan.program if isinstance(step, Join)]
    if planner == "joint" and not asked.get("concat_views") and joined:
        return f"option concat_views is not true, and {joined[0]} is joined in DRAM"
    if planner == "joint" and asked.get("dram_tiles") is not True and plan.layouts:
        return f"option dram_tiles is not true, and {plan.layouts[0].tensor} lies in tiles"
    if planner in ("fusion", "segments", "rows") and joined:
        return f"planner {planner} joins nothing in DRAM, and the plan does with {joined[0]}"
    if planner == "segments" and asked.get("input") == "held" and streams:
        return "option input is held, and the plan streams it"
    for key, value in (("weight_tile", False), ("batch_weights", "shared"), ("halo", "recompute")):
        if planner == "fusion" and asked.get(key) == value:
            return f"with option {key} {str(value).lower()} nothing can run"
    residency = asked.get("residency") if planner == "fusion" else None
    for group in plan.groups:
        rings = isinstance(group.tiling, Rings)
        if planner != "branches" and rings != (planner == "segments"):
            runs = "in rings" if rings else "in no rings"
            return f"planner {planner} has no groups {runs}, and {group.name} runs so"
        if planner != "branches" and isinstance(group.tiling, Rows) != (planner == "rows"):
            runs = "by rows" if isinstance(group.tiling, Rows) else "otherwise than by rows"
            return f"planner {planner} has no groups {runs}, and {group.name} runs so"
        tile = asked.get("channel_tile")
        if isinstance(group.tiling, Tiling) and tile is not None and group.tiling.channels != tile:
            return f"option channel_tile is {tile}, and group {group.name} has {group.tiling.channels:,}"
        passing = isinstance(group.tiling, Tiling) and group.tiling.streamed
        if planner == "fusion" and asked.get("isoa") == "off" and passing:
            return f"option isoa is off, and group {group.name} streams a tensor"
        held, fetched = group.resident_weights, group.refills
        if held and (residency == "none" or (residency == "all" and fetched)):
            return f"option residency is {residency}, and group {group.name} keeps weights of {held[0]}"
    return ""
