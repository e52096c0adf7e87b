"""Strategy `exact` (COSMA's problem): search orders and evictions completely, then find addresses.

The search itself is C++ (`_core/placement_traffic.cpp`), behind `onchip.planners.placement.search`.

Large networks are divided at their exact cuts first (`onchip.planners.placement.dnc`), which loses nothing.
"""

from __future__ import annotations

import time
from dataclasses import replace

from onchip.planners.limits import Limits
from onchip.planners.placement.addressed import with_addresses
from onchip.planners.placement.cuts import exact_cuts, topological
from onchip.planners.placement.dnc import divide
from onchip.planners.placement.options import DEFAULTS
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.search import Found, minimum_traffic
from onchip.planners.placement.sources import first_spills, literal_figures, with_sources, without_sources
from onchip.planners.placement.strategy import Answer, Task

__all__ = ["search", "solve"]

WHOLE = 400
"""The most operators of a network that is searched as one piece, which takes a moment."""

MOMENT = 0.5
"""Seconds of a moment: a network that takes longer and has exact cuts is divided after all."""

EVERYTHING = 1 << 62
"""The most operators of a piece that is searched to the end: any number."""


def solve(task: Task) -> Answer:
    """Return the least traffic, proved unless a limit is hit or no cheapest schedule packs."""
    if task.options.inputs == "literal":
        return _with_inputs_charged(task)
    # The search must end early enough to leave time for the addresses.
    found = search(task.problem, task.budget, task.limits.share(0.7))
    return with_addresses(
        task.problem,
        task.budget,
        task.alignment,
        found,
        task.limits,
        other_schedules=search,
    )


def search(problem: Problem, budget: int, limits: Limits) -> Found:
    """Return the least traffic without regard to addresses, whole or in pieces, whichever is quicker."""
    operators = len(problem.inputs)
    if operators <= WHOLE:
        if len(exact_cuts(problem, topological(problem))) == 1:
            return minimum_traffic(problem, budget, limits=limits)
        found = minimum_traffic(problem, budget, limits=limits.at_most(MOMENT))
        if found.end in ("complete", "stopped") or limits.left() == 0.0:
            return found
        began = time.perf_counter()
        divided = divide(problem, budget, limits, searched=EVERYTHING).found
        return replace(divided, seconds=found.seconds + time.perf_counter() - began)
    return divide(problem, budget, limits, searched=EVERYTHING).found


def _with_inputs_charged(task: Task) -> Answer:
    """Return the same for `inputs literal`: the least traffic if an input's first spill is charged too."""
    made = solve(replace(task, problem=with_sources(task.problem), options=DEFAULTS))
    answer = without_sources(task.problem, made)
    bound = min(answer.traffic, max(0, made.bound - first_spills(task.problem)))
    figures = {**made.figures, **literal_figures(task.problem, answer, made.bound)}
    return replace(answer, bound=bound, figures=figures)
