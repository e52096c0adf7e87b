"""Placement in several on-chip memories: the place of every tensor, its moves, and its traffic to DRAM.

It minimises first the traffic to DRAM, then the time of all accesses to the memories (`memory_picoseconds`).
Small networks are searched completely (`search`); for larger ones memories are assigned along good orders
(`assign`), and a relaxation that knows no order bounds any plan. docs/memories.md states the decisions, and
docs/placement-proofs.md proves the bounds.
"""

from onchip.planners.placement.memories.levels import Levels, MemoryProblem
from onchip.planners.placement.memories.plan import plan_in_memories

__all__ = ["Levels", "MemoryProblem", "plan_in_memories"]
