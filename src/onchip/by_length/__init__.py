"""Plans for every length of a network up to a longest one, and the lengths at which the best plan changes.

One plan serves a stretch of lengths: the same instructions at the same addresses, with the sizes of each
length. Where the stretch ends is found by bisection, and that the plan is the best in it is proved
(`onchip.by_length.stretch`). `Lengths` is the table that a runtime follows.
"""

from typing import TYPE_CHECKING

from onchip.base.lazy import exports
from onchip.by_length.options import LengthOptions, SessionOptions

if TYPE_CHECKING:
    from onchip.by_length.cover import plan_lengths
    from onchip.by_length.rows import Row
    from onchip.by_length.session import Session, plan_prompt
    from onchip.by_length.table import Lengths
else:
    __getattr__, __dir__ = exports(
        __name__, cover="plan_lengths", rows="Row", session="Session plan_prompt", table="Lengths"
    )

__all__ = [
    "LengthOptions",
    "Lengths",
    "Row",
    "Session",
    "SessionOptions",
    "plan_lengths",
    "plan_prompt",
]
