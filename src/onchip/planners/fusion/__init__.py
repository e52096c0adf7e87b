"""Fusion decides which operators run as one group, tile by tile, so that the tensors between them never leave
the chip.

Source: Optimus (Cai, Wang, Zhang). docs/fusion-model.md derives the cost of a group,
docs/fusion-algorithms.md states the scope and the limits of each search.
"""

from typing import TYPE_CHECKING

from onchip.base.lazy import exports
from onchip.planners.fusion.options import FusionOptions

if TYPE_CHECKING:
    from onchip.planners.fusion.cost import GroupCost, group_cost
    from onchip.planners.fusion.problem import FusionProblem
else:
    __getattr__, __dir__ = exports(__name__, cost="GroupCost group_cost", problem="FusionProblem")

__all__ = ["FusionOptions", "FusionProblem", "GroupCost", "group_cost"]
