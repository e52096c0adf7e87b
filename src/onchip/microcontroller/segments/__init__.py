"""Segments (vMCU): how far an output may overlap its input, and which layers fuse, on a microcontroller.

Segment planning cuts a network into groups. A group's output may overlap its input as far as the exact order
of reads and writes allows; inside a group, tensors lie in rings of rows and never whole. The plan states each
overlap and ring, and the checker proves them from the geometry alone.
"""

from typing import TYPE_CHECKING

from onchip.base.lazy import exports
from onchip.microcontroller.segments.options import InputMode, Objective, SegmentOptions

if TYPE_CHECKING:
    from onchip.microcontroller.segments.fold import Space
    from onchip.microcontroller.segments.frontier import Front, FrontPoint, front
    from onchip.microcontroller.segments.planning import plan, plan_of
else:
    __getattr__, __dir__ = exports(
        __name__, fold="Space", frontier="Front FrontPoint front", planning="plan plan_of"
    )

__all__ = [
    "Front",
    "FrontPoint",
    "InputMode",
    "Objective",
    "SegmentOptions",
    "Space",
    "front",
    "plan",
    "plan_of",
]
