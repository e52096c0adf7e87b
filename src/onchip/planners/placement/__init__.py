"""Placement decides the order of the operators, every address, and all spills and reloads, together.

Source: COSMA (Li, Gupta, Malik). First the least traffic over all orders and evictions, without addresses
(`minimum_traffic`, exact, in C++); then addresses for that schedule. docs/placement.md explains the result,
docs/placement-proofs.md proves its optimality.
"""

from typing import TYPE_CHECKING

from onchip.base.lazy import exports
from onchip.planners.placement.options import PlacementOptions

if TYPE_CHECKING:
    from onchip.planners.placement.least_budgets import Budgets, budgets
    from onchip.planners.placement.planning import plan, refuse_if_infeasible
    from onchip.planners.placement.problem import Problem
    from onchip.planners.placement.search import Found, Rules, Step, minimum_peak, minimum_traffic
    from onchip.planners.placement.weights import as_planned
    from onchip.planners.placement.without_traffic import ZeroTraffic, zero_traffic
else:
    __getattr__, __dir__ = exports(
        __name__,
        least_budgets="Budgets budgets",
        planning="plan refuse_if_infeasible",
        problem="Problem",
        search="Found Rules Step minimum_peak minimum_traffic",
        weights="as_planned",
        without_traffic="ZeroTraffic zero_traffic",
    )

__all__ = [
    "Budgets",
    "Found",
    "PlacementOptions",
    "Problem",
    "Rules",
    "Step",
    "ZeroTraffic",
    "as_planned",
    "budgets",
    "minimum_peak",
    "minimum_traffic",
    "plan",
    "refuse_if_infeasible",
    "zero_traffic",
]
