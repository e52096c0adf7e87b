"""Joint planning as a planner among others."""

from __future__ import annotations

from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.joint.options import FusedPlacementOptions
from onchip.planners.limits import Limits
from onchip.planners.protocol import Planner
from onchip.plans import Plan

__all__ = ["PLANNER"]


def _solve(network: Network, chip: Chip, budget: int, options: FusedPlacementOptions, limits: Limits) -> Plan:
    from onchip.planners.joint.planning import plan

    return plan(network, chip, budget, *options.halves(), limits)


PLANNER = Planner(
    "joint", "onchip plan --fuse: groups in tiles and whole tensors", FusedPlacementOptions, _solve
)
