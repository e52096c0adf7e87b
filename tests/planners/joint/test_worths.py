"""The linear programs behind the worths of operators, where one of these cannot run alone."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from onchip.planners.joint.bound import worths
from onchip.planners.limits import Limits

ALONE = [
    4096,
    4096,
    4096,
    64,
    7520,
    9120,
    (1 << 61) - 1,
    64,
    1536,
    4608,
    2304,
    1536,
    4096,
    0,
    128,
    9856,
    9792,
    0,
]


COSTS = [(min(a, 9999) + min(b, 9999)) * 3 // 4 for a, b in pairwise(ALONE)]


class Pairs:
    """Groups of two neighbours, which cost three quarters of both."""

    def least(self, v: int) -> int:
        return ALONE[v]

    def price(self, worth: list[int], most: int, limits: Any) -> SimpleNamespace:
        cheaper = [([v, v + 1], c) for v, c in enumerate(COSTS) if worth[v] + worth[v + 1] > c]
        lowered = list(worth)
        for v, cost in enumerate(COSTS):
            lowered[v + 1] -= max(0, lowered[v] + lowered[v + 1] - cost)
        return SimpleNamespace(worth=lowered, columns=cheaper, complete=True)


def test_an_operator_that_cannot_run_alone_leaves_worths_to_the_others() -> None:
    """Its price is out of proportion: it is none that a solver of floats may see."""
    found = worths(Pairs(), len(ALONE), Limits())  # type: ignore[arg-type]
    assert all(worth <= alone for worth, alone in zip(found, ALONE, strict=True))
    assert all(found[v] + found[v + 1] <= cost for v, cost in enumerate(COSTS))
    assert sum(found) > 0
