"""Addresses for the steps that a search found, or for others that cost as little."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

from onchip.planners.joint.fitting import fitted
from onchip.planners.joint.incumbents import Incumbent
from onchip.planners.joint.layout import lay_out
from onchip.planners.joint.program import moved_bytes, program
from onchip.planners.joint.search import Found, JointSearch
from onchip.planners.limits import Limits

__all__ = ["with_addresses"]

SEEDS = 4
"""Searches for other, equally cheap steps if the first do not pack."""

PACKING_SECONDS = 20.0
"""The most seconds for the addresses of one list of steps."""

UNMOVED = 0.4
"""The share of the time that is left in which a list of steps is to pack without moves. Moves take time, too:
those found at once cost NASNet-A a twentieth of all its bytes more than those of a second."""


def with_addresses(
    best: Incumbent | None, search: JointSearch, found: Found, limits: Limits
) -> Incumbent | None:
    """Return the better of a program and one of the steps that a search found, if there are any."""
    if found.dram_bytes is None:
        return best
    with suppress(KeyboardInterrupt):  # pressed during the search for addresses: the best so far
        for steps in _addressed(search, found, limits):
            if best is None or steps.dram_bytes < best.dram_bytes:
                best = steps
            if best.dram_bytes == found.dram_bytes or limits.over():
                break
    return best


def _addressed(search: JointSearch, found: Found, limits: Limits) -> Iterator[Incumbent]:
    """Yield programs of steps as cheap as found, first those that pack unmoved, then dearer ones."""
    assert found.dram_bytes is not None
    tried = [found]
    yield from _laid_out(search, found, limits, relocate=False)
    for seed in range(1, SEEDS + 1):
        if limits.over() or search.large:  # other steps would take as long as all that comes then
            break
        again = search.best(
            found.dram_bytes + 1,
            limits=limits.at_most(PACKING_SECONDS),
            widths=(50,),
            seed=limits.seed + seed,
        )
        if again.dram_bytes == found.dram_bytes and again.steps not in [t.steps for t in tried]:
            tried.append(again)
            yield from _laid_out(search, again, limits, relocate=False)
    for one in tried[:2]:
        yield from _laid_out(search, one, limits, relocate=True)


def _laid_out(search: JointSearch, found: Found, limits: Limits, *, relocate: bool) -> Iterator[Incumbent]:
    """Yield the program of some steps, if they have addresses."""
    assert found.dram_bytes is not None
    began = time.perf_counter()
    problem = search.problem
    within = limits if relocate else limits.share(UNMOVED)
    seconds = within.at_most(PACKING_SECONDS).left()
    steps = fitted(problem, search.nests, found.steps, problem.budget)
    if steps is None:
        return
    layout = lay_out(problem, steps, relocate=relocate, time_limit=seconds, seed=limits.seed)
    if layout is not None:
        instructions, groups = program(problem, steps, layout, search.nests)
        moved = moved_bytes(problem, steps, instructions)
        yield Incumbent("joint", instructions, groups, moved, time.perf_counter() - began)
