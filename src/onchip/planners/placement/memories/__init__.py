"""Placement in several on-chip memories: where every tensor lies, when it moves, and what goes to DRAM.

First the traffic to DRAM is least, then the time that all accesses to the memories take
(`memory_picoseconds`). Small networks are searched completely (`search`); for larger ones memories are
assigned along good orders (`assign`), and a relaxation that knows no order bounds any plan. docs/memories.md
says what is decided, and docs/placement-proofs.md why the bounds hold.
"""

from onchip.planners.placement.memories.levels import Levels, MemoryProblem
from onchip.planners.placement.memories.plan import plan_in_memories

__all__ = ["Levels", "MemoryProblem", "plan_in_memories"]
