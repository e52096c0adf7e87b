"""The shortest inference found: several schedules, each with its copies prefetched.

The schedule of least traffic is not always the fastest: it may fill the scratchpad so that nothing can be
prefetched. So schedules that leave room are tried too: the order of least peak, and the least traffic within
less than the budget.
"""

from __future__ import annotations

from collections.abc import Iterator

from onchip.check import Clock
from onchip.planners.limits import Limits
from onchip.planners.placement.addressed import place_schedule
from onchip.planners.placement.exact import search
from onchip.planners.placement.objectives.prefetch import Prefetched, prefetch
from onchip.planners.placement.program import program
from onchip.planners.placement.schedule import Schedule
from onchip.planners.placement.search import minimum_peak
from onchip.planners.placement.strategy import Answer, Task
from onchip.plans import Instruction

__all__ = ["fastest"]

SECONDS = 30.0
"""The most seconds for all schedules together if the caller sets no limit."""

SHARES = (0.85, 0.7)
"""Shares of the budget for which schedules are also found, so that the rest is room for prefetching."""

PLACING_SECONDS = 5.0


def fastest(
    task: Task,
    clock: Clock,
    answer: Answer,
    made: tuple[Instruction, ...],
    bound: int,
) -> Prefetched:
    """Return the fastest program found for a task with known least traffic; `bound` is a proved lower bound.

    `answer` is that of the traffic strategy and `made` its program: it is tried first, so the result is never
    slower than that with its copies prefetched. Tensors kept on chip (pins, state) stay as they are.
    """
    if task.problem.kept is not None:
        return Prefetched(made, clock.latency(made))

    limits = task.limits.at_most(SECONDS)

    def prefetched(program: tuple[Instruction, ...]) -> Prefetched:
        return prefetch(program, clock, task.budget, task.alignment, bound=bound, limits=limits.share(0.5))

    best = prefetched(made)
    for other in _candidates(task, answer, limits) if best.latency > bound else ():
        found = prefetched(program(task.network, task.problem, other.order, other.placed, other.scratch))
        best = found if found.latency < best.latency else best
        if best.latency <= bound or limits.left() == 0.0:
            break
    return best


def _candidates(task: Task, answer: Answer, limits: Limits) -> Iterator[Answer]:
    """Yield other placed schedules than that of least traffic: with a lower peak, or within less room."""
    problem, seen = task.problem, {answer.order}
    peak = minimum_peak(problem, limits=limits.at_most(PLACING_SECONDS))
    if peak.value <= task.budget and peak.order not in seen:
        seen.add(peak.order)
        yield from _placed(task, Schedule.of(problem, peak.steps), limits)
    for share in SHARES:
        within = int(task.budget * share)
        if within >= problem.minimum_budget and peak.value > within:
            found = search(problem, within, limits.at_most(PLACING_SECONDS))
            yield from _placed(task, Schedule.of(problem, found.steps), limits)


def _placed(task: Task, schedule: Schedule, limits: Limits) -> Iterator[Answer]:
    limits = limits.at_most(PLACING_SECONDS)
    placed = place_schedule(schedule, task.budget, task.alignment, limits, relocate=False)
    if placed is not None:
        yield placed
