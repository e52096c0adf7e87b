"""ExecuTorch's memory planning by onchip: a callable for its `MemoryPlanningPass`, and one for its suite.

ExecuTorch states when each tensor lives; this package decides where: the least arena, with element-wise
results over operands where nothing reads these again, or the fewest bytes in the slower of several memories.
Every answer is a plan that the checker has proved. docs/executorch.md shows the use.
"""

from onchip.executorch.banks import Bank
from onchip.executorch.planner import Options, algorithm, planner

__all__ = ["Bank", "Options", "algorithm", "planner"]
