"""The standing of a plan's claim to be the best: proved, derived, or only stated.

The checker solves nothing. It proves a claim itself only where the figure equals what every plan needs:
nothing crosses that need not, or the operator that holds most fills the extent. It repeats all other claims.
"""

from __future__ import annotations

from typing import Literal

from onchip.check.caches import caches_of
from onchip.check.claims.objectives import BOUNDED, minimized
from onchip.network import Network, Operator, bits, mask
from onchip.network.windows import window_of
from onchip.plans import PinnedWeights, Plan, is_proved

__all__ = ["Standing", "standing", "why_derived"]

Standing = Literal["proved", "derived", "claimed", "none"]
"""`proved`: by a planner of this process. `derived`: the checker itself sees that no plan is below the
figure. `claimed`: only written in a file. `none`: the plan claims neither to be the best nor a bound above
0."""


def standing(plan: Plan) -> Standing:
    """Return the standing of the claims of a plan that `check` accepts."""
    if why_derived(plan):
        return "derived"
    first, *_ = minimized(str(plan.options.get("objective", "traffic")))
    _, bound = BOUNDED[first]
    if plan.result.status != "optimal" and not getattr(plan.result, bound):
        return "none"
    return "proved" if is_proved(plan) else "claimed"


def why_derived(plan: Plan) -> str:
    """Return why no plan can be below this one's figure, in words; empty if the checker does not see it.

    `check` accepts `plan`: its figures are those of its program.
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
    """Return the bytes that cross in every legal plan of a network: a bound that needs no search.

    Outputs that are made cross once. Weights do, unless they are pinned or their operator states a reach; an
    input does if some operator must read all of it.
    """
    net = plan.network
    handed_on = {name for s in plan.state for name in (s.input, s.output)}
    caches = caches_of(plan)
    handed_on |= {net.tensors[t].name for t in caches.inputs}
    pinned = {p.operator for p in plan.pins if isinstance(p, PinnedWeights)}
    made = mask(caches.outputs) & ~net.input_roots
    crossing = [t for t in bits(made) if net.tensors[t].name not in handed_on]
    for t in bits(net.input_roots):
        whole = any(_reads_all(net, net.operators[v], t) for v in bits(net.readers[t]))
        if whole and net.tensors[t].name not in handed_on:
            crossing.append(t)
    once = (op for op in net.operators if op.repeats is None)
    weights = sum(op.weight_bytes for op in once if op.reach is None and op.name not in pinned)
    return sum(net.tensors[t].bytes for t in crossing) + weights


def _reads_all(net: Network, op: Operator, tensor: int) -> bool:
    """Return whether an operator must read all of a tensor, however it is run."""
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
    """Return whether the plan's planner holds all operands of an operator at once, each in its own bytes."""
    return plan.options.get("planner") == "placement" and plan.options.get("in_place") is not True


def _most_held(plan: Plan) -> tuple[str, int]:
    """Return the operator that holds most while it runs, and its bytes."""
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
