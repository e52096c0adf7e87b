"""Schedules of one frame, better and better: the dynamic scheduler's search in the background.

The first is available at once (whole networks on units, as HaX-CoNN's D-variant begins with a naive schedule,
its 5.3); then come stages of search, each with the best so far to beat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice, product

from onchip import _core
from onchip.base.errors import ProfileError
from onchip.multi_dnn.baselines import baselines
from onchip.multi_dnn.branch import branchable, solve_branching
from onchip.multi_dnn.dp import PairOptions, pairable, solve_pair
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.schedule import Schedule
from onchip.multi_dnn.search import SearchOptions, improve, pattern_of
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.solution import Solution
from onchip.multi_dnn.tasks import tasks_of
from onchip.multi_dnn.workload import Workload

__all__ = ["Stopped", "improvements", "naive"]

Stopped = Callable[[], bool]
"""Returns whether the search is to end; called often."""

MAPPINGS = 8
"""The most assignments of whole networks to units to try before the first answer, which must be immediate."""
QUICK, LONG = 300, 20_000
"""The number of schedules that the first and the last local search play."""
NARROW = 30
"""Labels a level of the first, narrow search for two chains."""


def naive(workload: Workload) -> Schedule:
    """Return the schedule of one frame with the least makespan of a few with every network on one unit.

    A group that its network's unit does not support runs where it is fastest. Units take the step that is
    ready first.
    """
    tasks = tasks_of(workload)
    rank = list(range(len(tasks.steps)))
    dispatcher = _core.Dispatcher(tasks=tasks.core, slowdown=cache(workload.model.slowdown))
    best: tuple[float, list[int], list[int]] | None = None
    for where in islice(_whole(workload), MAPPINGS):
        unit = [where[j][g] for j, _, g in tasks.steps]
        starts, ends = dispatcher.first_ready(unit=unit, rank=rank)
        if best is None or max(ends) < best[0]:
            best = (max(ends), unit, starts)
    assert best is not None
    _, unit, starts = best
    order: list[list[int]] = [[] for _ in workload.soc.units]
    for task in starts:
        order[unit[task]].append(task)
    return tasks.schedule(unit, order)


def _whole(workload: Workload) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield units of every group with each network on one unit: all on the same one first, then others."""
    count = len(workload.soc.units)
    ways = [(u,) * len(workload.jobs) for u in range(count)]
    many = product(range(count), repeat=len(workload.jobs))
    ways += islice((way for way in many if len(set(way)) > 1), MAPPINGS)
    for way in ways:
        yield tuple(
            tuple(
                u
                if group.runs_on(u)
                else min((v for v in range(count) if group.runs_on(v)), key=lambda v: group.ms[v] or 0.0)
                for group in job.profile.groups
            )
            for u, job in zip(way, workload.jobs, strict=True)
        )


def improvements(
    workload: Workload, objective: Objective, known: Schedule, stopped: Stopped
) -> Iterator[Solution]:
    """Yield solutions for one frame, none worse than `known` or the one before; the last is the best found.

    It ends early when `stopped` returns true, with the results until then.
    Raises `ProfileError` for a workload of several frames.
    """
    if workload.frames > 1:
        raise ProfileError("the dynamic scheduler plans one frame at a time", where="workload", item="frames")

    def searched(tries: int, starts: list[Schedule]) -> Solution:
        patterns = [pattern_of(workload, schedule) for schedule in starts]
        options = SearchOptions(tries=tries)
        return improve(workload, objective, patterns, options, stop=lambda tried, best: stopped())

    def exact(options: PairOptions) -> Solution:
        return solve_pair(workload, objective, options, known=best, stop=lambda labels: stopped())

    best = known
    stages: list[Callable[[], Solution]] = [lambda: searched(QUICK, [best])]
    if pairable(workload, objective):
        for options in (PairOptions(prove=False, width=NARROW), PairOptions(prove=False), PairOptions()):
            stages.append(lambda options=options: exact(options))  # type: ignore[misc]
    else:

        def again() -> Solution:
            return searched(LONG, [best, *(one.schedule for one in baselines(workload, objective))])

        stages.append(again)
        if branchable(workload, objective):
            stages.append(lambda: solve_branching(workload, objective, known=best, stop=lambda n: stopped()))
    least = objective.cost_ms(simulate(workload, known))
    for stage in stages:
        if stopped():
            return
        found = stage()
        if found.cost_ms <= least * (1 + 1e-12):
            best, least = found.schedule, found.cost_ms
            yield found
            if found.claim.proved:
                return
