"""The joint search where all groups are too many to list: those of few operators first, then of more.

A pass over groups of at most six operators takes seconds where all groups would take hours, and every tensor
that it keeps on chip is one that fusion alone sends to DRAM. What it finds is no bound of anything.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from onchip.fusion import FusionProblem
from onchip.fusion.search import Limits
from onchip.joint.search import WIDTHS, Found, JointSearch

__all__ = ["best_by_size"]

SIZES = (3, 6, 12)
"""Most operators of a group, step by step."""

NEXT = 3.0
"""So much longer than this step the next one takes, about."""


def best_by_size(
    problem: FusionProblem,
    over: Sequence[Sequence[int]],
    listed: JointSearch,
    below: int | None,
    limits: Limits,
) -> tuple[JointSearch, Found]:
    """The cheapest steps found that cost less than `below` bytes of DRAM traffic, and the search that did.

    One narrow pass for every size of groups as long as all of that size can be listed and time is left; then
    one over the groups that were `listed` before; then wider ones where the best was found.
    """
    began = time.perf_counter()

    def left() -> Limits:
        seconds = None if limits.seconds is None else limits.seconds - (time.perf_counter() - began)
        return replace(limits, seconds=None if seconds is None else max(0.0, seconds))

    def over_already(last: float = 0.0) -> bool:
        seconds = left().seconds
        stopped = limits.cancelled is not None and limits.cancelled()
        return stopped or (seconds is not None and seconds <= NEXT * last)

    best: tuple[JointSearch, Found] | None = None
    last = 0.0
    for most in SIZES:
        if best is not None and over_already(last):
            break
        start = time.perf_counter()
        search = JointSearch(problem, over, limits=left(), largest=most)
        if not search.all_groups:
            break
        found = search.best(below, limits=left(), widths=WIDTHS[:1])
        if found.dram_bytes is not None:
            best, below = (search, found), found.dram_bytes
        last = time.perf_counter() - start
    for widths in (WIDTHS[:1], *((width,) for width in WIDTHS[1:])):
        if best is not None and over_already():
            break
        search = listed if widths == WIDTHS[:1] or best is None else best[0]
        found = search.best(below, limits=left(), widths=widths)
        if best is None or found.dram_bytes is not None:
            best = search, found
            below = below if found.dram_bytes is None else found.dram_bytes
        if limits.seconds is None and widths != WIDTHS[:1]:
            break  # each has its own patience
    assert best is not None
    search, found = best
    return search, replace(found, lower_bound_bytes=0, complete=False)
