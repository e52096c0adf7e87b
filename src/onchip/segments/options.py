"""What the user of segments decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

__all__ = ["InputMode", "SegmentOptions"]

InputMode = Literal["held", "once", "again"]


@dataclass(frozen=True, slots=True)
class SegmentOptions:
    """Options of segments; the fields are flags of `onchip mcu`."""

    input: Annotated[
        InputMode,
        "the input image: held in RAM, fetched once row by row, or fetched again where it is needed again",
    ] = "held"
