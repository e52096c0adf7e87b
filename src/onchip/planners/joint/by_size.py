"""The joint search where groups are too many to follow them all closely: those of few operators first.

A pass over groups of at most six operators takes seconds where one over all groups takes minutes, and every
tensor that it keeps on chip is one that fusion alone sends to DRAM. What it finds prunes the others; it is no
bound.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from onchip.planners.fusion import FusionProblem
from onchip.planners.joint.search import PATIENCE, WIDTHS, Found, JointSearch
from onchip.planners.limits import Limits

__all__ = ["best_by_size"]

MANY_GROUPS, SOME = 2_000, 200_000
"""Groups beyond which those of few operators come first, and of how many there is a pass where not all can be
listed."""

SIZES = (3, 6, 12)
"""Most operators of a group, step by step."""

NEXT, MUCH = 3.0, 10.0
"""So much longer than this step the next one takes, about, and one over as many groups as may be listed."""

SEEDS = 20
"""Passes at most that break ties in other ways, each wider than the last."""

SMALL, ALMOST_ALL = 0.4, 0.8
"""The part of the time for groups of few operators, where all are listed and where they are not."""


def best_by_size(
    problem: FusionProblem,
    over: Sequence[Sequence[int]],
    listed: JointSearch,
    below: int | None,
    limits: Limits,
) -> tuple[JointSearch, Found]:
    """The cheapest steps found that cost less than `below` bytes of DRAM traffic, and the search that did.

    Of many groups one narrow pass for every size, as long as all of that size can be listed and time is left.
    Then the search over the groups that were `listed` before, with its bound, if those are all there are. If
    they are not, one pass over some, and ever wider ones, ties broken in other ways, where the best was.
    """
    if listed.all_groups and listed.groups <= MANY_GROUPS:
        return listed, listed.best(below, limits=limits)
    if not listed.all_groups:
        limits = limits.patient(PATIENCE)
    limits = limits.share(1.0)  # the clock of all parts below begins here
    best: tuple[JointSearch, Found] | None = None
    part, last = SMALL if listed.all_groups else ALMOST_ALL, 0.0
    for most in SIZES:
        if best is not None and _over(limits.until(part), NEXT * last):
            break
        start = time.perf_counter()
        search = JointSearch(problem, over, limits=limits, largest=most)
        if not search.all_groups:
            break
        found = search.best(below, limits=limits, widths=WIDTHS[:1])
        if found.dram_bytes is not None:
            best, below = (search, found), found.dram_bytes
        last = time.perf_counter() - start
    if listed.all_groups:
        rest = listed.best(below, limits=limits)
        if rest.dram_bytes is not None or best is None:
            best = listed, rest
        return best[0], replace(best[1], lower_bound_bytes=rest.lower_bound_bytes, complete=rest.complete)
    if best is None or not _over(limits, MUCH * last):
        if listed.groups > SOME:
            listed = JointSearch(problem, over, limits=limits, most_groups=SOME)
        found = listed.best(below, limits=limits, widths=WIDTHS[:1])
        if found.dram_bytes is not None or best is None:
            best, below = (listed, found), found.dram_bytes or below
    for seed in range(1, SEEDS + 1):  # among ways as cheap so far others may do better in the end
        if limits.over():
            break
        found = best[0].best(below, limits=limits, widths=(1 + 2 * seed,), seed=seed)
        if found.dram_bytes is not None:
            best, below = (best[0], found), found.dram_bytes
    return best[0], replace(best[1], lower_bound_bytes=0, complete=False)


def _over(limits: Limits, need: float) -> bool:
    """Whether somebody stopped it, or what is left is less than what is needed."""
    left = limits.left()
    return limits.stopped() or (left is not None and left <= need)
