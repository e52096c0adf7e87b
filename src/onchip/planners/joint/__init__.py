"""Joint planning decides fusion and placement together: the operators that run as a group in tiles, and the
tensors between the groups that stay on chip whole.

Optimus sends every tensor between groups through DRAM, COSMA never fuses; both are contained here. This is
the only planner that uses two others. docs/joint.md defines the model and proves the rules of the search.
"""

from typing import TYPE_CHECKING

from onchip.base.lazy import exports
from onchip.planners.joint.options import JointOptions, refuse

if TYPE_CHECKING:
    from onchip.planners.joint.begun import plan_begun
    from onchip.planners.joint.planning import plan
else:
    __getattr__, __dir__ = exports(__name__, begun="plan_begun", planning="plan")

__all__ = ["JointOptions", "plan", "plan_begun", "refuse"]
