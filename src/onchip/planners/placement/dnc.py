"""Strategy `dnc`: divide at break nodes, solve the pieces exactly, and decide crossing tensors with them.

Source: COSMA section IV, whose authors broke NAS networks by hand; here breaks are found. At exact cuts
nothing is lost, and the sum is the optimum. A piece too large to be solved is broken where few bytes are
live: only the order across a break is given up there, for the pieces before a break pass on every way to
arrive at it that may pay later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from onchip.planners.limits import End, Limits
from onchip.planners.placement.addressed import with_addresses
from onchip.planners.placement.cuts import break_points, exact_cuts, last_reads, topological
from onchip.planners.placement.greedy import evictions, list_order
from onchip.planners.placement.partition import partition_bound
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.search import Found, Step
from onchip.planners.placement.stages import START, Front, Stages, cheapest, relaxed
from onchip.planners.placement.strategy import Answer, Task

__all__ = ["Divided", "between", "divide", "quickly", "solve"]

STAGE = 24
"""The fewest operators between exact cuts: shorter pieces cost more to pass on than to search."""

SEARCHED = 250
"""The most operators of a piece that is searched whole; larger ones are broken."""

HARDLY = 2_000
"""Operators above which a piece is rarely searched to its end: less of the time is spent on trying."""

BEAM = 8
"""Width of the beam that gives a larger piece its first order."""

PATIENCE = 60.0
"""Seconds for a lower bound or for better orders if the caller sets no limit."""

BETWEEN_BREAKS = (32, 48, 64, 96, 128)
"""Operators between two breaks, tried in turn, each time from the best order so far."""


SECONDS_EACH = 1e-4
"""The fewest seconds for each operator that dividing takes: with less, one pass is the answer."""

Scheduled = tuple[tuple[Step, ...], int]
"""The steps of a schedule and its traffic."""


def solve(task: Task) -> Answer:
    """Return the least traffic over the orders that pass every break; proved if all breaks are exact cuts."""
    divided = divide(task.problem, task.budget, task.limits.share(0.6))
    answer = with_addresses(task.problem, task.budget, task.alignment, divided.found, task.limits)
    return replace(answer, figures={"exact_cuts": divided.exact_cuts, "pieces": divided.pieces})


@dataclass(frozen=True, slots=True)
class Divided:
    """The result of divide and conquer, the exact cuts used, and the number of different pieces searched."""

    found: Found
    exact_cuts: int
    pieces: int


def divide(
    problem: Problem, budget: int, limits: Limits, *, searched: int = SEARCHED, shortest: int = STAGE
) -> Divided:
    """Return the cheapest schedule found piece by piece, with a proved lower bound on any.

    They agree if every piece between exact cuts could be searched whole: those of up to `searched` operators,
    if they end within their share of the time. The others are broken. Cuts are at least `shortest` operators
    apart.
    """
    began = time.perf_counter()

    def left(part: float) -> Limits:
        return limits.share(part).patient(PATIENCE)

    order = topological(problem)
    if len(order) > SEARCHED:
        steps, value = evictions(problem, order, budget)
        hurried = limits.time_limit is not None and limits.time_limit < SECONDS_EACH * len(order)
        if _whole(problem, steps, budget) and (value == 0 or hurried or limits.stopped()):
            ended: End = "complete" if value == 0 else "stopped" if limits.stopped() else "time"
            found = Found(steps, value, 0, ended, 0, 0, 0, time.perf_counter() - began)
            return Divided(found, 0, 0)
    cuts = _not_too_short(exact_cuts(problem, order), shortest)
    walk = _Walk(Stages(problem, budget), order, cuts, searched)
    longest = max(map(len, walk.pieces))
    hard = longest > SEARCHED
    quick = quickly(walk.stages, order, left(0.2)) if hard else None
    steps, value = walk.upper(limits.share(0.4 if longest > HARDLY else 0.8))
    if quick is not None and quick[1] < value:
        steps, value = quick
    stopped, bound = walk.stopped, value
    if not walk.solved:
        bound = min(value, walk.lower(limits.at_most(0.0) if stopped else left(0.3)))
    if value > bound and not stopped:
        steps, value = improve(walk.stages, steps, value, bound, left(0.4))
        if value > bound and not limits.stopped():
            bound = min(value, max(bound, walk.lower(left(1.0))))
        stopped = limits.stopped()
    end: End = "complete" if value == bound else "stopped" if stopped else "time"
    found = Found(steps, value, bound, end, walk.stages.states, 0, 0, time.perf_counter() - began)
    return Divided(found, len(cuts) - 1, walk.stages.searches)


def _whole(problem: Problem, steps: Sequence[Step], budget: int) -> bool:
    """Return whether a schedule made without overwriting inputs fits: no step needs more than there is."""
    return not problem.overwrites or all(problem.step_bytes(step.operator) <= budget for step in steps)


def _not_too_short(cuts: Sequence[int], least: int) -> list[int]:
    """Return cuts at least `least` operators apart; the last one stays."""
    kept = [0]
    for cut in cuts[:-1]:
        if cut - kept[-1] >= least and cuts[-1] - cut >= least:
            kept.append(cut)
    return [*kept[1:], cuts[-1]]


class _Walk:
    """The pieces between exact cuts, one after the other."""

    def __init__(self, stages: Stages, order: Sequence[int], cuts: Sequence[int], searched: int) -> None:
        self.stages, self.cuts = stages, cuts
        self.pieces = [order[a:b] for a, b in zip([0, *cuts[:-1]], cuts, strict=True)]
        self.last = last_reads(stages.problem, order)
        self.whole = [len(piece) <= searched for piece in self.pieces]
        self.windows: dict[Problem, int] = {}
        self.solved, self.stopped = True, False
        """True if every piece was searched to its end; true if the caller wants the best so far."""

    def upper(self, limits: Limits) -> Scheduled:
        """Return a schedule and its traffic: the least, if every piece was solved."""
        front, todo = START, self.cuts[-1]
        for i, piece in enumerate(self.pieces):
            # Most pieces take a moment, or are known already: a hard one may take more than its share.
            rest = limits.share(min(1.0, 4 * len(piece) / todo))
            todo -= len(piece)
            beam = 1 if self.stopped else 0 if self.whole[i] else BEAM
            front, found = self._through(front, i, rest, beam)
            self.solved &= found.end == "complete"
            self.stopped |= found.end == "stopped" or limits.stopped()
        best = cheapest(front)
        return best.path(), best.at.paid

    def lower(self, limits: Limits) -> int:
        """Return a lower bound of every schedule. If a piece is not solved, the proof continues from a state
        that is no worse than any that it could have led to."""
        front, todo = START, self.cuts[-1]
        for i, piece in enumerate(self.pieces):
            rest = limits.share(min(1.0, 4 * len(piece) / todo))
            todo -= len(piece)
            least = 0
            if self.whole[i]:
                after, found = self._through(front, i, rest)
                if found.end == "complete":
                    front = after
                    continue
                least = found.bound
            if rest.left() != 0.0:
                problem, budget = self.stages.problem, self.stages.budget
                parts = partition_bound(problem, piece, budget, rest, known=self.windows)
                least = max(least, parts)
            front = relaxed(cheapest(front).at.paid + least)
        return cheapest(front).at.paid

    def _through(self, front: Front, i: int, limits: Limits, beam: int = 0) -> tuple[Front, Found]:
        lives_on = _read_from(self.last, self.cuts[i])
        return self.stages.through(front, self.pieces[i], lives_on, limits, beam)


def quickly(stages: Stages, order: Sequence[int], limits: Limits) -> Scheduled | None:
    """Return the better of two orders without search, the network's own and a list schedule, with breaks.

    Networks of equal blocks are mostly listed block by block: then the same few pieces repeat.
    """
    best = None
    for tried in dict.fromkeys((tuple(order), list_order(stages.problem))):
        # Whether an operator may overwrite an input depends on earlier readers: an order may need more room.
        if stages.problem.in_order(tried).minimum_budget > stages.budget:
            continue
        points = break_points(stages.problem, tried, BETWEEN_BREAKS[0])
        found = between(stages, tried, points, limits)
        if found is not None and (best is None or found[1] < best[1]):
            best = found
    return best


def improve(stages: Stages, steps: tuple[Step, ...], value: int, least: int, limits: Limits) -> Scheduled:
    """Return a schedule as cheap or cheaper: the best order between breaks, which move until nothing helps.

    Every piece is searched exactly, from all ways to arrive at it; only orders across a break are not tried.
    """
    failed, attempt = 0, 0
    while value > least and failed < 2 * len(BETWEEN_BREAKS):
        if limits.over():
            break
        every = BETWEEN_BREAKS[attempt // 2 % len(BETWEEN_BREAKS)]
        order = [step.operator for step in steps]
        # Every second time the breaks lie in the middle of earlier pieces.
        points = break_points(stages.problem, order, every, every // 2 if attempt % 2 else None)
        found = between(stages, order, points, limits)
        attempt += 1
        if found is not None and found[1] < value:
            (steps, value), failed = found, 0
        else:
            failed += 1
    return steps, value


def between(stages: Stages, order: Sequence[int], points: Sequence[int], limits: Limits) -> Scheduled | None:
    """Return the cheapest schedule that runs these pieces of `order` in turn; None if time runs out."""
    begin, front, tenth = 0, START, limits.share(0.1).left()
    last = last_reads(stages.problem, order)
    for end in points:
        if limits.over():
            return None
        each = limits if tenth is None else limits.at_most(tenth)
        front, _ = stages.through(front, order[begin:end], _read_from(last, end), each)
        begin = end
    best = cheapest(front)
    return best.path(), best.at.paid


def _read_from(last: Mapping[int, int], position: int) -> Callable[[int], bool]:
    """Return the predicate whether a tensor is read at that position or after it."""
    return lambda t: last.get(t, -1) >= position
