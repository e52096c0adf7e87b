"""The least scratchpad in which a network runs without spill or reload (COSMA eq. 13-15), with addresses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from onchip.planners.limits import Limits
from onchip.planners.placement.addressed import place_schedule
from onchip.planners.placement.schedule import Schedule
from onchip.planners.placement.search import Found, Step, minimum_peak
from onchip.planners.placement.strategy import Answer, Task

__all__ = ["extent_of", "smallest"]

ORDERS_TRIED = 8
"""The most orders of least peak whose addresses are tried before one more byte than the peak is accepted."""

PACKING_SECONDS = 10.0
"""The most seconds for one packing."""

HALVINGS = 12
"""The number of halvings of the interval between sizes that pack and sizes that were not seen to."""


def smallest(task: Task) -> tuple[Answer, int]:
    """Return a schedule without traffic in the fewest bytes found, and a lower bound of any plan's peak.

    Peak and bytes agree, and are then proved least, unless a limit was hit or nothing packs into the peak.
    """
    limits = task.limits
    found = minimum_peak(task.problem, limits=limits)
    for steps in _orders(task, found, limits):
        schedule = Schedule.of(task.problem, steps)
        answer = _within(task, schedule, found.value, limits)
        if answer is not None:
            return answer, found.bound
        if limits.left() == 0.0:
            break
    return _beyond(task, Schedule.of(task.problem, found.steps), found.value, limits), found.bound


def extent_of(task: Task, answer: Answer) -> int:
    """Return one past the highest byte that an answer's addresses reserve."""
    size, workspace = task.problem.size, task.problem.workspace
    tops = [p.address + size[p.tensor] for p in answer.placed]
    return max([*tops, *(at + workspace[v] for v, at in answer.scratch.items())], default=0)


def _orders(task: Task, found: Found, limits: Limits) -> Iterator[tuple[Step, ...]]:
    """Yield the order of least peak, then others with the same peak."""
    yield found.steps
    seen = {found.order}
    if task.problem.order is not None or found.end != "complete":
        return
    for attempt in range(1, ORDERS_TRIED):
        other = minimum_peak(task.problem, limits=replace(limits, seed=limits.seed + attempt))
        if other.value == found.value and other.order not in seen:
            seen.add(other.order)
            yield other.steps


def _within(task: Task, schedule: Schedule, capacity: int, limits: Limits) -> Answer | None:
    limits = limits.at_most(PACKING_SECONDS)
    return place_schedule(schedule, capacity, task.alignment, limits, relocate=False)


def _beyond(task: Task, schedule: Schedule, peak: int, limits: Limits) -> Answer:
    """Return the fewest bytes found for one schedule that does not pack, as far as seen, into its peak."""
    low, step, best = peak, task.alignment, None
    while best is None:  # all stays side by side always pack: this ends
        best = _within(task, schedule, low + step, limits.at_most(1.0))
        low, step = (low, step) if best is not None else (low + step, 2 * step)
    for _ in range(HALVINGS):
        middle = (low + extent_of(task, best)) // 2
        if middle <= low or limits.left() == 0.0:
            break
        smaller = _within(task, schedule, middle, limits.at_most(1.0))
        low, best = (middle, best) if smaller is None else (low, smaller)
    return best
