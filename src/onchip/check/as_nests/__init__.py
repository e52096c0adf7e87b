"""Groups in bands, blocks and boxes as nests of loops, and what they cost then.

`as_nest` makes the nest of a group: the same operators in the same order and pieces, with a home for every
buffer; or it says why the law of nests (docs/nests.md) has none. `plan_as_nests` does so for a whole plan:
both figures of every group, the reasons for what differs, and whether the plan still fits.
"""

from onchip.check.as_nests.convert import AsNest, as_nest
from onchip.check.as_nests.differences import DIFFERENCES, OF_BYTES, differences
from onchip.check.as_nests.plan import AsNests, Compared, in_nests, plan_as_nests
from onchip.check.as_nests.taken import Costless, Taken, costless_nests, taken
from onchip.check.as_nests.unsaid import REASONS, Unsaid

__all__ = [
    "DIFFERENCES",
    "OF_BYTES",
    "REASONS",
    "AsNest",
    "AsNests",
    "Compared",
    "Costless",
    "Taken",
    "Unsaid",
    "as_nest",
    "costless_nests",
    "differences",
    "in_nests",
    "plan_as_nests",
    "taken",
]
