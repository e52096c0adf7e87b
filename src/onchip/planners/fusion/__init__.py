"""Fusion decides which operators run as one group, tile by tile, so that what lies between them never leaves
the chip.

Source: Optimus (Cai, Wang, Zhang). docs/fusion-model.md derives what a group costs, docs/fusion-algorithms.md
says what each search does and where it fails.
"""

from onchip.planners.fusion.cost import GroupCost, group_cost
from onchip.planners.fusion.options import FusionOptions
from onchip.planners.fusion.problem import FusionProblem

__all__ = ["FusionOptions", "FusionProblem", "GroupCost", "group_cost"]
