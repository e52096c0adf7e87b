"""The options of segment planning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onchip.base.errors import UsageError
from onchip.base.options import group, option, options

__all__ = ["InputMode", "Method", "Objective", "SegmentOptions"]

InputMode = Literal["held", "once", "again"]
Method = Literal["best", "chains", "rows"]
Objective = Literal["free", "once", "least"]


@group("Goal and search")
@options
@dataclass(frozen=True, slots=True)
class SegmentOptions:
    """The options of segment planning."""

    input: InputMode = option(
        "held",
        "The input image: `held` in RAM, fetched `once` row by row, or fetched `again` where it is needed "
        "again.",
    )

    objective: Objective = option(
        "free",
        "`free`: the fewest bytes that cost no instructions, and where those are too many the fewest "
        "instructions that fit; `once`: the fewest bytes with no row made twice; `least`: the fewest bytes.",
    )

    time_limit: float | None = option(
        None, "Seconds for the search among plans that do work anew; the best so far is taken."
    )

    method: Method = option(
        "best",
        "`chains`: groups of layers in rings of rows, or else whole tensors; `rows`: an address for each row "
        "of every map, in strips or made twice where that is needed to fit; `best`: the better of the two.",
    )

    def __post_init__(self) -> None:
        """Raise `UsageError` for a time limit that is negative, infinite or no number."""
        if self.time_limit is not None and not 0 <= self.time_limit < float("inf"):
            raise UsageError(f"{self.time_limit!r} is no number of seconds from 0 up", item="time_limit")
