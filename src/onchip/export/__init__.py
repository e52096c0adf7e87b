"""Writers of plans for other programs: a runtime, a compiler's back end, another packer.

Every format is a module with one function `write`; `onchip.export.registry` knows them by name. Writers
depend on the plan and not on its planner, and the checker proves the plan before they read it.
docs/export.md describes the formats.
"""

import warnings
from importlib import import_module
from typing import Any

from onchip.export.layout import Copy, Layout, Place, Residency, Stream
from onchip.export.registry import FORMATS, export

__all__ = ["FORMATS", "Copy", "Layout", "Place", "Residency", "Stream", "export"]


def __getattr__(name: str) -> Any:
    """Return an old name that moved to schedules: for this release, with a line of warning."""
    if name not in ("SCHEDULE_FORMATS", "export_schedule"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    there = "onchip.multi_dnn.export"
    warnings.warn(f"{__name__}.{name} is {there}.{name} now", FutureWarning, stacklevel=2)
    return getattr(import_module(there), name)
