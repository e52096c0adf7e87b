"""Joint planning decides fusion and placement as one: which operators run as a group in tiles, and which
tensors between the groups stay on chip whole.

Optimus sends every tensor between groups through DRAM, COSMA never fuses; both are contained here. This is
the only planner that uses two others. docs/joint.md defines the model and proves the rules of the search.
"""

from onchip.planners.joint.options import JointOptions, refuse
from onchip.planners.joint.plan import plan

__all__ = ["JointOptions", "plan", "refuse"]
