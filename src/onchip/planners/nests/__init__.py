"""The nest of loops in which a group of operators moves the fewest bytes in some room.

Any operators whose reach is known run in one tiling: a spine of loops, operators in the bodies of these
loops, passes of neighbouring operators, and for every buffer the place where it is filled and given back. The
search is exact within that family; every rule that makes it quick has a switch.
"""

from onchip.planners.nests.overlap import pairs_of
from onchip.planners.nests.search import (
    ALL_RULES,
    MANY,
    NestFound,
    NestRules,
    NestSearch,
    best_nest,
    group_key,
)
from onchip.planners.nests.widening import scratch_of, widened

__all__ = [
    "ALL_RULES",
    "MANY",
    "NestFound",
    "NestRules",
    "NestSearch",
    "best_nest",
    "group_key",
    "pairs_of",
    "scratch_of",
    "widened",
]
