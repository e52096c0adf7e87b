"""The plan of an int8 network on a microcontroller: by segments, or else in whole tensors."""

from __future__ import annotations

from dataclasses import dataclass, replace

from onchip.base.errors import ModelError, NeedsTraffic
from onchip.microcontroller.segments import SegmentOptions
from onchip.microcontroller.segments import plan as plan_segments
from onchip.network import Network
from onchip.plans import Plan

__all__ = ["MicrocontrollerPlan", "planned_for"]

ALIGNMENT = 4
"""The alignment of whole tensors: workspaces are read by words."""


@dataclass(frozen=True, slots=True)
class MicrocontrollerPlan:
    """A certified plan; `whole` is the reason for whole tensors where segments has no plan, else None."""

    plan: Plan
    whole: str | None


def planned_for(network: Network, ram_bytes: int, options: SegmentOptions) -> MicrocontrollerPlan:
    """Return the plan within so many bytes: by segments, else whole tensors in the order of least peak.

    A network is placed tensor by tensor, element-wise layers in place, if a layer that no window describes (a
    resizing, a concatenation along rows, a map read in another shape) runs while other tensors are kept.
    Raises `Infeasible` or `NeedsTraffic`, and `ModelError` where neither planner applies.
    """
    if len(network.outputs) != 1:
        raise ModelError("must have one output", where=network.source or network.name)
    try:
        return MicrocontrollerPlan(plan_segments(network, ram_bytes, options), None)
    except ModelError as problem:
        if options.input != "held" or sum(t.kind == "input" for t in network.tensors) != 1:
            raise
        reason = f"{problem.item} {problem.reason}" if problem.item else problem.reason
    return MicrocontrollerPlan(_whole_tensors(network, ram_bytes, options), reason)


def _whole_tensors(network: Network, ram_bytes: int, options: SegmentOptions) -> Plan:
    from onchip.machines.chip import load_chip
    from onchip.planners import placement

    chip = replace(load_chip("generic"), name="mcu", alignment_bytes=ALIGNMENT)
    how = placement.PlacementOptions(objective="peak", in_place=True, time_limit=options.time_limit)
    found = placement.plan(network, chip, None, how)
    if found.result.extent_bytes > ram_bytes:
        result = found.result
        raise NeedsTraffic(needs=result.extent_bytes, at_least=result.lower_bound_bytes, has=ram_bytes)
    return found
