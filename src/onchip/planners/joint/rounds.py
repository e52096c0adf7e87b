"""Searches with nests that go deeper only where the cheapest plan may be.

Searches of nests are cut off after some looks, and say then what a nest moves at least. A round finds the
cheapest way through the network with these bounds in place of costs. That is a bound of all plans; and if
the searches on that way were not cut, it is a plan that no other beats. Else they alone go deeper, and the
next round begins. (Edges of a shortest path priced as they are needed: LazySP, Dellin and Srinivasa 2016.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from onchip.planners.joint.incumbents import Incumbent
from onchip.planners.joint.nests import LAST_LOOKS
from onchip.planners.joint.search import Found, JointSearch
from onchip.planners.limits import Limits

__all__ = ["in_rounds"]

MOST_ROUNDS = 200

FIRST = 0.3
"""The share of the time that is left in which the first round is to end: those that follow take less."""

DEEPER = 25
"""Times as many looks for a search on the way of a round."""


def in_rounds(
    best: Incumbent | None,
    search: JointSearch,
    limits: Limits,
    looks: int,
    addressed: Callable[[Incumbent | None, Found], Incumbent | None],
) -> tuple[Incumbent | None, Found | None]:
    """Return the best program after rounds, and what they found of all plans; None if not even one ended.

    Every search of nests has had `looks`. `addressed` returns the better of a program and steps with
    addresses. It is not `complete` if a limit is reached, or a search is cut off after `LAST_LOOKS`.
    """
    last: Found | None = None
    at: dict[int, int] = {}
    for _ in range(MOST_ROUNDS):
        search.forget_nests(hopeful=True)
        below = None if best is None else best.dram_bytes
        within = limits.share(FIRST) if last is None else limits
        found = search.best(below, limits=within, widths=(0,))
        if found.end != "complete":
            break
        if found.dram_bytes is not None:
            best = addressed(best, found)
        steps = found if found.dram_bytes is not None or last is None else last
        bound = (
            found.lower_bound_bytes if last is None else max(found.lower_bound_bytes, last.lower_bound_bytes)
        )
        last = replace(steps, lower_bound_bytes=bound, complete=found.complete)
        deeper = [text for text in found.hoped if at.get(text, looks) < LAST_LOOKS]
        if found.complete or not deeper or limits.over():
            break
        for text in deeper:
            at[text] = min(at.get(text, looks) * DEEPER, LAST_LOOKS)
        for most in sorted({at[text] for text in deeper}):
            search.nests.costs.deepen_some([text for text in deeper if at[text] == most], most)
    search.forget_nests()
    return best, last
