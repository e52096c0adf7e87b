"""Placement in several memories as a planner among others: its budget is the chip's memories."""

from __future__ import annotations

from onchip.base.errors import UsageError
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.limits import Limits
from onchip.planners.placement.options import PlacementOptions
from onchip.planners.placement.planner import as_read
from onchip.planners.protocol import Planner, recorded
from onchip.plans import Plan

__all__ = ["PLANNER"]


def _solve(network: Network, chip: Chip, _: int, options: PlacementOptions, limits: Limits) -> Plan:
    from onchip.planners.placement.memories.plan import plan_in_memories

    return plan_in_memories(network, chip, chip.memories, options, limits)


def _options_of(plan: Plan) -> PlacementOptions:
    if not plan.chip.memories:
        raise UsageError("the plan's chip has one memory, not several", item="--prove")
    made: PlacementOptions = recorded(
        PlacementOptions, plan, but=("objective", "pin", "state", "capacity", "strategy")
    )
    return made


PLANNER = Planner(
    "memories",
    "onchip plan on a chip with several memories",
    PlacementOptions,
    _solve,
    anywhere=False,
    read_options=_options_of,
    read_network=as_read,
)
