"""Searches with nests that go deeper only where the cheapest plan may be.

Searches of nests are cut off after some looks, and say then what a nest moves at least. A round finds the
cheapest way through the network with these bounds in place of costs. That is a bound of all plans; and if
the searches on that way were not cut, it is a plan that no other beats. Else they alone go deeper, and the
next round begins. (Edges of a shortest path priced as they are needed: LazySP, Dellin and Srinivasa 2016.)
"""

from __future__ import annotations

from dataclasses import replace

from onchip.planners.joint.addressed import with_addresses
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
    packing: Limits,
) -> tuple[Incumbent | None, Found | None]:
    """Return the best program after rounds, and what they found of all plans; None if not even one ended.

    `packing` are the limits of the search for addresses. What they found is not `complete` if a limit is
    reached, or a search is cut off after `LAST_LOOKS`.
    """
    last: Found | None = None
    for _ in range(MOST_ROUNDS):
        search.forget_nests(hopeful=True)
        below = None if best is None else best.dram_bytes
        within = limits.share(FIRST) if last is None else limits
        found = search.best(below, limits=within, widths=(0,))
        if found.end != "complete":
            break
        best = with_addresses(best, search, found, packing)
        steps = found if found.dram_bytes is not None or last is None else last
        bound = (
            found.lower_bound_bytes if last is None else max(found.lower_bound_bytes, last.lower_bound_bytes)
        )
        last = replace(steps, lower_bound_bytes=bound, complete=found.complete)
        if found.complete or limits.over():
            break
        if not search.nests.costs.deepen_some(texts=found.hoped, times=DEEPER, most=LAST_LOOKS):
            break
    search.forget_nests()
    return best, last
