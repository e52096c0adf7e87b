"""The plan of an int8 network on a microcontroller: by segments, or else in whole tensors."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.base.errors import ModelError
from onchip.microcontroller.result.microcontroller_whole import States, whole_tensors
from onchip.microcontroller.segments import SegmentOptions
from onchip.microcontroller.segments import plan as plan_segments
from onchip.network import Network
from onchip.plans import Plan

__all__ = ["MicrocontrollerPlan", "planned_for"]


@dataclass(frozen=True, slots=True)
class MicrocontrollerPlan:
    """A certified plan; `whole` is the reason for whole tensors where segments has no plan, else None."""

    plan: Plan
    whole: str | None


def planned_for(
    network: Network, ram_bytes: int, options: SegmentOptions, states: States = ()
) -> MicrocontrollerPlan:
    """Return the plan within so many bytes: by segments, else whole tensors in the order of least peak.

    `states` are the tensors, before and after, of what the network keeps between two inferences. A network is
    placed tensor by tensor, element-wise layers in place, if it has several inputs or outputs or a state, or
    if a layer that no window describes (a resizing, a map read in another shape) runs while others are kept.
    Raises `Infeasible` or `NeedsTraffic`, and `ModelError` where neither planner applies.
    """
    if len(network.outputs) != 1 or sum(t.kind == "input" for t in network.tensors) != 1:
        if options.input != "held":
            raise ModelError(
                f"has several inputs or outputs, or a state: its input must be held, not {options.input}",
                where=network.source or network.name,
            )
        return MicrocontrollerPlan(
            whole_tensors(network, ram_bytes, options, states), "it has several inputs or outputs, or a state"
        )
    try:
        return MicrocontrollerPlan(plan_segments(network, ram_bytes, options), None)
    except ModelError as problem:
        if options.input != "held":
            raise
        reason = f"{problem.item} {problem.reason}" if problem.item else problem.reason
    return MicrocontrollerPlan(whole_tensors(network, ram_bytes, options), reason)
