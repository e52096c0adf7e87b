"""What `cosma.py measure` found, chosen and averaged; and the paper's own times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import mean
from typing import Any

from cosma_settings import FOUR

__all__ = ["PAPER_SECONDS", "RULES", "Claim", "Row", "chosen", "percent", "reductions", "yes"]

Row = dict[str, Any]
RULES = ("belady", "greedy")
PAPER_SECONDS = {
    "exact:given": {
        "pnasnet5large": (12.2, 12.3, 12.2),
        "amoebanet_d": (8.1, 8.3, 8.1),
        "nasnetalarge": (19.8, 20.0, 19.7),
        "darts": (5.0, 5.0, 5.0),
    },
    "exact:minpeak": {
        "pnasnet5large": (24.2, 22.4, 23.5),
        "amoebanet_d": (84.4, 8.2, 8.5),
        "nasnetalarge": (22.4, 22.4, 21.6),
        "darts": (5.2, 5.2, 5.2),
    },
    "dnc": {
        "pnasnet5large": (65.9, 63.5, 58.0),
        "amoebanet_d": (62.1, 59.9, 112.8),
        "nasnetalarge": (37.5, 22.9, 39.2),
        "darts": (19.1, 19.1, 19.1),
    },
}
"""Table II of the paper: seconds on an M1 Pro with Gurobi."""


def chosen(records: Iterable[Row], names: Iterable[str], **wanted: str) -> list[Row]:
    """The records of these networks with these values."""
    records = list(records)
    return [
        r for n in names for r in records if r["network"] == n and all(r[k] == v for k, v in wanted.items())
    ]


def reductions(records: Iterable[Row], way: str = "exact") -> tuple[float, float, int, int] | None:
    """Traffic that the exact plan, or another way, does without, of the four schemes'.

    (mean over the pairs of record and scheme where the scheme has traffic, of the bytes of all schemes
    together, pairs with traffic, pairs); None where no scheme has any.
    """
    records = list(records)
    pairs = [(r["rows"][way]["traffic"], r["rows"][s]["traffic"]) for r in records for s in FOUR]
    busy = [(ours, theirs) for ours, theirs in pairs if theirs]
    if not busy:
        return None
    total = 1 - sum(ours for ours, _ in busy) / sum(theirs for _, theirs in busy)
    return mean(1 - ours / theirs for ours, theirs in busy), total, len(busy), len(pairs)


def percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def yes(good: bool) -> str:
    return "yes" if good else "no"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, its figure, ours, whether it holds here, and what decides that."""

    text: str
    paper: str
    ours: str
    holds: str
    why: str = ""
