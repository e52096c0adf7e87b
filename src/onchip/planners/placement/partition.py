"""A lower bound for networks too large to search: the sum over windows, each searched as if alone.

Any set of operators, run in any order, costs at least what it costs with nothing else in the scratchpad.
These costs can be added up, each transfer counted at most once, because a tensor touched in several windows
is charged in only one of them; docs/placement-proofs.md has the proof.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from onchip.planners.limits import Limits
from onchip.planners.placement.cuts import break_points
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.search import minimum_traffic
from onchip.planners.placement.stages import sub_problem

__all__ = ["partition_bound", "windows_bound"]

FIRST, GROWTH = 24, 2
"""Operators of the first windows, and the factor to the next: the larger, the less is lost at borders."""

LARGEST = 400
"""Larger windows rarely end within a time limit."""

EACH = 0.3
"""Share of the time that one window may take: the bound proved by then counts."""


def partition_bound(
    problem: Problem,
    order: Sequence[int],
    budget: int,
    limits: Limits,
    *,
    first: int = FIRST,
    known: dict[Problem, int] | None = None,
) -> int:
    """Return a lower bound on the traffic of `problem` within `budget` bytes; windows are cut from `order`.

    From `first` operators on, larger and larger windows are tried while time is left. Valid for every order
    that `problem` allows. `known` are optima of windows solved before; new ones are added.
    """
    best, every, last = 0, first, 0.0
    known = {} if known is None else known
    while True:
        left = limits.left()
        if left is not None and left <= 2 * last:  # the next one would not end in time
            return best
        start = time.perf_counter()
        best = max(best, windows_bound(problem, order, budget, every, limits, known))
        last = time.perf_counter() - start
        if every >= min(len(order), LARGEST) or limits.stopped():
            return best
        every *= GROWTH


def windows_bound(
    problem: Problem,
    order: Sequence[int],
    budget: int,
    every: int,
    limits: Limits,
    known: dict[Problem, int],
) -> int:
    """Return the sum over windows of about `every` operators."""
    most = limits.share(EACH).left()
    points = break_points(problem, order, every)
    windows = [order[a:b] for a, b in zip([0, *points[:-1]], points, strict=True)]
    payer = _payers(problem, windows)
    total, unfinished = 0, dict[Problem, int]()
    for w, window in enumerate(windows):
        touched = {t for v in window for t in (*problem.inputs[v], *problem.outputs[v])}
        sub, _ = sub_problem(problem, window, free=(t for t in touched if payer[t] != w))
        if sub not in known and sub not in unfinished:
            if limits.over():
                continue  # counts as nothing
            each = limits if most is None else limits.at_most(most)
            found = minimum_traffic(sub, budget, limits=each)
            (known if found.end == "complete" else unfinished)[sub] = found.bound
        total += known[sub] if sub in known else unfinished[sub]
    return total


def _payers(problem: Problem, windows: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return for each tensor the window that is charged for it: the one that touches it most often."""
    touches: dict[int, Counter[int]] = {}
    for w, window in enumerate(windows):
        for v in window:
            for t in (*problem.inputs[v], *problem.outputs[v]):
                touches.setdefault(t, Counter())[w] += 1
    return {t: max(counts, key=lambda w: counts[w]) for t, counts in touches.items()}
