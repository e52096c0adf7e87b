"""What the user of segments decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from onchip.base.errors import UsageError

__all__ = ["InputMode", "Objective", "SegmentOptions"]

InputMode = Literal["held", "once", "again"]
Objective = Literal["free", "once", "least"]


@dataclass(frozen=True, slots=True)
class SegmentOptions:
    """Options of segments; the fields are flags of `onchip mcu`."""

    input: Annotated[
        InputMode,
        "the input image: held in RAM, fetched once row by row, or fetched again where it is needed again",
    ] = "held"
    objective: Annotated[
        Objective,
        "free: the fewest bytes that cost no instructions, and where those are too many the fewest "
        "instructions that fit; once: the fewest bytes with no row made twice; least: the fewest bytes",
    ] = "free"
    time_limit: Annotated[
        float | None, "seconds for the search among plans that do work anew; the best so far is taken"
    ] = None

    def __post_init__(self) -> None:
        """Raises `UsageError` for a time limit that is none."""
        if self.time_limit is not None and not 0 <= self.time_limit < float("inf"):
            raise UsageError(f"{self.time_limit!r} is no number of seconds from 0 up", item="time_limit")
