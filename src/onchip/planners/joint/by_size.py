"""The joint search with too many groups to follow them all closely: groups of few operators come first.

A pass over groups of at most six operators takes seconds where one over all groups takes minutes, and every
tensor that it keeps on chip is one that fusion alone sends to DRAM. Its result prunes the other passes; it is
no bound.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from onchip.planners.fusion import FusionProblem
from onchip.planners.joint.nests import Nests
from onchip.planners.joint.search import PATIENCE, WIDTHS, Found, JointSearch
from onchip.planners.limits import Limits

__all__ = ["best_by_size", "best_of_few", "bound_by_size"]

MANY_GROUPS, SOME = 2_000, 200_000
"""With more groups than this, those of few operators come first; and the most groups in a pass if not all
can be listed."""

SIZES = (3, 6, 12)
"""Most operators of a group, step by step."""

NEXT = 3.0
"""Estimated time of the next step, relative to this step."""

BOUND_SIZES, BOUND_GROUPS = (2, 3, 4, 6, 8, 12, 16), 500_000
"""Most operators of the groups of which there is a bound if not all can be listed, and most such groups."""

PASSES = 20
"""The most passes that break ties in other ways, each wider than the last, where not all can be listed."""

FEW = (6, 4, 3)
"""Most operators of the groups of these passes: the largest of which all can be listed."""

SMALL = 0.4
"""The share of the time for groups of few operators, if all are listed."""


def best_by_size(
    problem: FusionProblem,
    over: Sequence[Sequence[int]],
    listed: JointSearch,
    below: int | None,
    limits: Limits,
    nests: Nests | None = None,
    widths: Sequence[int] = WIDTHS,
    *,
    joins: Sequence[int] = (),
    passes: int = PASSES,
) -> tuple[JointSearch, Found]:
    """Return the cheapest steps found that cost less than `below` bytes of DRAM traffic, and their search.

    With many groups, one narrow pass for every size, as long as all of that size can be listed and time is
    left. Then the search over the groups that were `listed` before, with its bound. If those are not all, the
    `passes` of `best_of_few`. `widths` are those of the search over all groups.
    """
    if not listed.all_groups:
        limits = limits.patient(PATIENCE).share(1.0)
        found = best_of_few(problem, over, below, limits, nests, joins=joins, passes=passes)
        if found is not None:
            return found
        part = JointSearch(problem, over, joins=joins, nests=nests, limits=limits, most_groups=SOME)
        return part, _unproved(part.best(below, limits=limits, widths=WIDTHS[:1]))
    if listed.groups <= MANY_GROUPS:
        return listed, listed.best(below, limits=limits, widths=widths)
    limits = limits.share(1.0)  # the clock of all parts below starts here
    best: tuple[JointSearch, Found] | None = None
    last = 0.0
    for most in SIZES:
        if best is not None and _over(limits.until(SMALL), NEXT * last):
            break
        start = time.perf_counter()
        search = JointSearch(problem, over, joins=joins, nests=nests, limits=limits, largest=most)
        if not search.all_groups:
            break
        some = search.best(below, limits=limits, widths=WIDTHS[:1])
        if some.dram_bytes is not None:
            best, below = (search, some), some.dram_bytes
        last = time.perf_counter() - start
    rest = listed.best(below, limits=limits, widths=widths)
    if rest.dram_bytes is not None or best is None:
        best = listed, rest
    return best[0], replace(best[1], lower_bound_bytes=rest.lower_bound_bytes, complete=rest.complete)


def best_of_few(
    problem: FusionProblem,
    over: Sequence[Sequence[int]],
    below: int | None,
    limits: Limits,
    nests: Nests | None = None,
    *,
    joins: Sequence[int] = (),
    passes: int = PASSES,
) -> tuple[JointSearch, Found] | None:
    """Return the cheapest steps found of groups of few operators in bands, and of nests, and their search.

    Passes of ever more states, which break ties in other ways: among equally cheap ways so far others may
    do better in the end. None if even groups of very few operators are too many.
    """
    for most in FEW:
        search = JointSearch(
            problem, over, joins=joins, nests=nests, limits=limits, largest=most, most_groups=SOME
        )
        if search.all_groups:
            break
    else:
        return None
    best: Found | None = None
    for number in range(passes):
        if best is not None and limits.over():
            break
        found = search.best(below, limits=limits, widths=(1 + 2 * number,), seed=number)
        if best is None or found.dram_bytes is not None:
            best, below = found, found.dram_bytes or below
    assert best is not None
    return search, _unproved(best)


def _unproved(found: Found) -> Found:
    """Return what was found, without a claim about groups that were not listed."""
    return replace(found, lower_bound_bytes=0, complete=False)


def bound_by_size(
    problem: FusionProblem,
    over: Sequence[Sequence[int]],
    nests: Nests | None,
    limits: Limits,
    *,
    joins: Sequence[int] = (),
) -> tuple[int, int] | None:
    """Return the most operators in bands of which all groups can be listed, and a bound of all plans of such.

    Sizes grow as long as time is left. None if there is none for the smallest.
    """
    limits = limits.patient(PATIENCE).share(1.0)
    best: tuple[int, int] | None = None
    last = 0.0
    for most in BOUND_SIZES:
        if _over(limits, NEXT * last):
            break
        start = time.perf_counter()
        search = JointSearch(
            problem,
            over,
            joins=joins,
            nests=nests,
            limits=limits,
            largest=most,
            most_groups=BOUND_GROUPS,
        )
        if not search.all_groups or search.misfits:
            break
        bound = search.bound(limits=limits)
        last = time.perf_counter() - start
        best = most, bound
    return best


def _over(limits: Limits, need: float) -> bool:
    """Return whether the search was stopped, or the remaining time is less than needed."""
    left = limits.left()
    return limits.stopped() or (left is not None and left <= need)
