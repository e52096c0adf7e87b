"""Addresses for fixed live ranges: an offset for every buffer, so that none that live together overlap.

`pack` finds offsets within a capacity or proves that there are none; `minimise` finds the smallest capacity
and bounds it from below; `irreducible` names a minimal set of buffers that do not fit together. The complete
search behind them is C++ (`_core`); docs/packing.md explains its rules and why each is sound.
"""

from onchip.planners.packing.buffers import (
    ALL_RULES,
    Buffer,
    Engine,
    Packing,
    Rules,
    Status,
    fault,
    max_load,
)
from onchip.planners.packing.csv_file import BufferFile, read_buffers, write_buffers
from onchip.planners.packing.extent import Extent, minimise
from onchip.planners.packing.irreducible import irreducible
from onchip.planners.packing.pack import ENGINES, pack
from onchip.planners.packing.verdict import Conflict, PackOptions, Verdict, decide

__all__ = [
    "ALL_RULES",
    "ENGINES",
    "Buffer",
    "BufferFile",
    "Conflict",
    "Engine",
    "Extent",
    "PackOptions",
    "Packing",
    "Rules",
    "Status",
    "Verdict",
    "decide",
    "fault",
    "irreducible",
    "max_load",
    "minimise",
    "pack",
    "read_buffers",
    "write_buffers",
]
