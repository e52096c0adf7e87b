"""A sentence of HaX-CoNN beside what comes out here, and how it is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hax_conn_cases import SETS

__all__ = ["WITHIN", "Claim", "Ours", "always", "near", "within"]

WITHIN = "within it, by another search"
"""Of a limit for seconds: ours is within it, and the paper's own method is another, told beside."""
Ours = Callable[[str], str]
"""A cell for one set of constants."""


@dataclass(frozen=True)
class Claim:
    """What the paper says, what comes out under each set of constants, and why that is not the same.

    `holds` is judged on the row's own figures: `light` first, then the others.
    """

    text: str
    paper: str
    ours: Ours
    holds: Callable[[Ours], str]
    why: str = ""


def near(paper: float, within: float, at: int = 0) -> Callable[[Ours], str]:
    """Whether our figure (the `at`-th of its cell) is within so much of the paper's, and where."""

    def judged(ours: Ours) -> str:
        close = [abs(float(ours(c).split(", ")[at]) - paper) <= within for c in SETS]
        return (
            "yes" if all(close) else ", ".join(c for c, one in zip(SETS, close, strict=True) if one) or "no"
        )

    return judged


def always(good: Callable[[str], bool]) -> Callable[[Ours], str]:
    """Whether our cell is as the claim has it, and under which sets."""

    def judged(ours: Ours) -> str:
        held = [c for c in SETS if good(ours(c))]
        return "yes" if len(held) == len(SETS) else ", ".join(held) or "no"

    return judged


def within(good: Callable[[str], bool]) -> Callable[[Ours], str]:
    """The same for seconds of a search that is not the paper's own."""

    def judged(ours: Ours) -> str:
        said = always(good)(ours)
        return WITHIN if said == "yes" else said

    return judged
