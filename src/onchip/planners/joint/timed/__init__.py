"""The shortest time of a plan in nests, on a chip that states rates of tiles: docs/objectives.md.

From the plan of fewest bytes: every run becomes the fastest nest found, with copies of its buffers, and
groups begin beside the one before where that pays.
"""

from onchip.planners.joint.timed.answer import quickest

__all__ = ["quickest"]
