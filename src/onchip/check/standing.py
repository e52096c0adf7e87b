"""What a plan's claim of being the best is worth, here and now.

The checker solves nothing. Of some claims it sees the proof all the same, because no plan at all can be below
the figure; the others it can only repeat.
"""

from __future__ import annotations

from typing import Literal

from onchip.network import Network, Operator, bits
from onchip.network.windows import window_of
from onchip.plans import PinnedWeights, Plan, is_proved

__all__ = ["Standing", "standing", "why_derived"]

Standing = Literal["proved", "derived", "claimed", "none"]
"""`proved`: by a planner of this process. `derived`: the checker sees by itself that no plan is below the
figure. `claimed`: written in a file, and nothing more. `none`: nothing is claimed, neither the best nor a
bound above 0."""

_GOALS = {
    "traffic": ("traffic_bytes", "lower_bound_bytes"),
    "memory": ("traffic_bytes", "lower_bound_bytes"),
    "peak": ("extent_bytes", "peak_lower_bound_bytes"),
    "latency": ("latency_picoseconds", "latency_lower_bound_picoseconds"),
    "energy": ("energy_picojoules", "energy_lower_bound_picojoules"),
    "dram": ("dram_bytes", "dram_lower_bound_bytes"),
}


def standing(plan: Plan) -> Standing:
    """What the claims of a plan that `check` accepts are worth."""
    if why_derived(plan):
        return "derived"
    _, bound = _GOALS[str(plan.options.get("objective", "traffic"))]
    if plan.result.status != "optimal" and not getattr(plan.result, bound):
        return "none"
    return "proved" if is_proved(plan) else "claimed"


def why_derived(plan: Plan) -> str:
    """Why no plan can be below this one's figure, in words, as the checker sees it; empty where it does not.

    `plan` is one that `check` accepts: its figures are those of its program.
    """
    goal, r = plan.options.get("objective", "traffic"), plan.result
    if r.status != "optimal":
        return ""
    if goal == "traffic" and r.traffic_bytes == 0:
        return "nothing crosses beyond what is compulsory, and no plan does with less"
    if goal == "dram" and r.dram_bytes == least_crossing(plan):
        return "inputs, weights and outputs cross once each, and no plan does with less"
    if goal == "peak" and _whole_and_apart(plan):
        hardest, least = _most_held(plan)
        if r.extent_bytes == least:
            return f"operator {hardest}, whole and its operands apart, alone takes as much"
    return ""


def least_crossing(plan: Plan) -> int:
    """Bytes that cross in every legal plan of a network: a floor that needs no search.

    What is made and leaves crosses once. Weights do, unless they are pinned or their operator says what parts
    of them it needs; an input does where some operator has no way to leave out a part of it.
    """
    net = plan.network
    handed_on = {name for s in plan.state for name in (s.input, s.output)}
    pinned = {p.operator for p in plan.pins if isinstance(p, PinnedWeights)}
    made = net.output_roots & ~net.input_roots
    crossing = [t for t in bits(made) if net.tensors[t].name not in handed_on]
    for t in bits(net.input_roots):
        whole = any(_reads_all(net, net.operators[v], t) for v in bits(net.readers[t]))
        if whole and net.tensors[t].name not in handed_on:
            crossing.append(t)
    weights = sum(op.weight_bytes for op in net.operators if op.reach is None and op.name not in pinned)
    return sum(net.tensors[t].bytes for t in crossing) + weights


def _reads_all(net: Network, op: Operator, tensor: int) -> bool:
    """Whether there is no way to run an operator that reads but a part of a tensor."""
    geometry = op.geometry
    if op.reach is not None:
        return False
    if geometry is None or geometry.kind in ("elementwise", "concat", "rowwise", "fully_connected"):
        return True
    if geometry.kind not in ("conv", "depthwise", "pool"):
        return geometry.kind != "pad"
    sides = (geometry.input, geometry.output, geometry.kernel, geometry.stride, geometry.padding)
    if tuple(map(len, sides)) != (4, 4, 2, 2, 4) or min(geometry.padding) < 0:
        return False
    first = 1 if geometry.layout == "NHWC" else 2
    for axis in (0, 1):
        window = window_of(geometry, axis, geometry.input[first + axis], geometry.output[first + axis])
        if window.dilation != 1 or window.stride > window.taps or window.end(window.outputs) < window.size:
            return False
    return geometry.kind != "conv" or geometry.groups >= 1


def _whole_and_apart(plan: Plan) -> bool:
    """Whether the plan says that it is of a planner whose operators hold all operands, each its own bytes."""
    return plan.options.get("planner") == "placement" and plan.options.get("in_place") is not True


def _most_held(plan: Plan) -> tuple[str, int]:
    """The operator that holds most while it runs, and how much."""
    net, up = plan.network, plan.chip.round_up
    held = (
        (
            sum(up(net.tensors[t].bytes) for t in bits(net.reads[op.id] | net.writes[op.id]))
            + up(op.workspace),
            op.name,
        )
        for op in net.operators
    )
    most, name = max(held, default=(0, ""))
    return name, most
