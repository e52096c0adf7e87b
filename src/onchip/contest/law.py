"""The laws of the contest: there was no official scorer, so a figure means something under a named law only.

The rules L1 to L16 (docs/contest.md) are common to all laws; the organisers' answers contradict one another
in the points that are fields here. Every report prints the law's name.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from onchip.base.errors import UsageError

__all__ = ["LAWS", "Law", "law_named"]


@dataclass(frozen=True, slots=True)
class Law:
    """One reading of the contest's rules.

    - `product_step`: what a step of k of a MatMul's K costs, as a share of its base cost: k / K (`own`) or
      k / native (`native`).
    - `k_capped`: k is at most the native size.
    - `strips`: a strip that one operator makes for a MatMul of its subgraph is made again for every tile
      (`tile`), or is `kept`: it takes no time again as long as the next step wants the same one.
    - `accumulator`: the sums of a product that is used up inside lie in the output's room (`shared`), or
      take a tile of their own (`beside`).
    - `idle_residents`: a resident tensor that its step does not read takes `room`, or is `free`.
    - `read_elsewhere`: a tensor that is used up inside, and read by others too, is `lost` for them, or
      `written`.
    """

    name: str
    product_step: Literal["own", "native"] = "own"
    k_capped: bool = True
    strips: Literal["tile", "kept"] = "tile"
    accumulator: Literal["shared", "beside"] = "shared"
    idle_residents: Literal["room", "free"] = "room"
    read_elsewhere: Literal["lost", "written"] = "lost"

    def data(self) -> dict[str, str | bool]:
        """Return the law as in JSON, field by field."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


LAWS = {
    law.name: law
    for law in (
        Law("ruled"),
        Law("permissive", strips="kept"),
        Law(
            "winner",
            product_step="native",
            accumulator="beside",
            idle_residents="free",
            read_elsewhere="written",
        ),
        Law("nocap", k_capped=False),
    )
}
"""`ruled` takes the organisers' last word on every point; `winner` is the winning entry's own reading."""


def law_named(name: str) -> Law:
    """Return the law of a name; raises `UsageError` if there is none."""
    if name not in LAWS:
        raise UsageError(f"{name!r} is no law: {', '.join(LAWS)} are", item="--law")
    return LAWS[name]
