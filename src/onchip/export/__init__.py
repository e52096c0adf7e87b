"""Writers for whoever consumes a plan: a runtime, a compiler's back end, another packer.

Every format is a module with one function `write`; `onchip.export.registry` knows them by name. Writers read
a plan and nothing of the planner that made it, and the checker has proved the plan before they see it.
docs/export.md describes the formats.
"""

from onchip.export.registry import FORMATS, export

__all__ = ["FORMATS", "export"]
