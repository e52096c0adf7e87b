"""The least time of a plan in nests, or product of energy and time: docs/objectives.md.

Every run of the plan of fewest bytes, and of a partition that is chosen anew, becomes the best nest
that a compiled search finds, with copies of its buffers. Groups begin beside the one before where that pays.
"""

from onchip.planners.joint.timed.aim import Goal
from onchip.planners.joint.timed.answer import quickest
from onchip.planners.joint.timed.ties import hastened_plans

__all__ = ["Goal", "hastened_plans", "quickest"]
