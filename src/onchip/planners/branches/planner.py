"""The simple method as a planner among others."""

from __future__ import annotations

from dataclasses import replace

from onchip.base.errors import NegativeAnswer
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.branches.options import BranchOptions
from onchip.planners.limits import Limits
from onchip.planners.protocol import Planner
from onchip.plans import Plan

__all__ = ["PLANNER"]


def _solve(network: Network, chip: Chip, budget: int, options: BranchOptions, limits: Limits) -> Plan:
    from onchip.planners.branches.plan import plan_branches

    return plan_branches(network, chip, budget, options, limits).plan


def _compared(network: Network, chip: Chip, budget: int, options: BranchOptions, limits: Limits) -> Plan:
    """Plan by the better of its rules, and only a network with modules."""
    from onchip.planners.branches.plan import plan_branches

    made = plan_branches(network, chip, budget, replace(options, rules="ours"), limits)
    if not made.detection.modules:
        raise NegativeAnswer("the network has no modules of branches")
    return made.plan


PLANNER = Planner(
    "branches",
    "onchip branches --rules ours: modules on chip",
    BranchOptions,
    _solve,
    searches=False,
    compared=_compared,
)
