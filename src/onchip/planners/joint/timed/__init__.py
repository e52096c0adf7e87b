"""The shortest time of a plan in nests, on a chip that states rates of tiles: docs/objectives.md.

Every run of the plan of fewest bytes, and of a partition that is chosen for time, becomes the fastest nest
that a compiled search finds, with copies of its buffers. Groups begin beside the one before where that pays.
"""

from onchip.planners.joint.timed.answer import quickest

__all__ = ["quickest"]
