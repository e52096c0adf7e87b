"""The readings of the paper's equations: one switch each where they are silent or forbid legal plans.

docs/placement-ilp.md shows for each switch a small network on which it changes the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["AS_PRINTED", "SENSIBLE", "Reading"]


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of COSMA's equations 1 to 12."""

    inputs: Literal["sensible", "literal"] = "sensible"
    """`sensible`: a network input has a copy in DRAM from the start. `literal`: eq. 4 and 12 as printed, so
    that its first spill is charged like that of any tensor."""

    relocations: bool = True
    """A tensor may be spilled and retrieved at one step, and so change its address between two operators that
    both need it; eq. 1 as printed allows one action a step."""

    outputs_written: bool = True
    """A network output's spill is its compulsory write and free; eq. 12 as printed charges it again."""


SENSIBLE = Reading()
"""The reading whose optimum is that of every other strategy."""

AS_PRINTED = Reading(inputs="literal", relocations=False, outputs_written=False)
"""The equations to the letter."""
