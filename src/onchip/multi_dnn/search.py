"""Local search for any number of networks and units, one frame or a stream of them: anytime, with a bound.

The search is in C++ (`_core/corun_local.cpp`), which plays thousands of schedules a second by the judge's
rules; the judge decides the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onchip import _core
from onchip.multi_dnn.bound import lower_bound
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.solution import Claim, Solution
from onchip.multi_dnn.tasks import Tasks, one_frame, tasks_of
from onchip.multi_dnn.workload import Workload

__all__ = ["Pattern", "SearchOptions", "improve", "pattern_of", "played_ms"]

Stop = Callable[[int, float], bool]
"""Called at intervals with the number of schedules tried and the best cost in ms; true ends the search."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The limits of local search."""

    tries: int = 20_000
    """Schedules to play at most."""
    time_limit: float | None = None
    """Seconds."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Pattern:
    """The pattern that repeats every frame: the unit of each group of one frame, in the order in which they
    begin."""

    starts: tuple[tuple[Step, int], ...]


def pattern_of(workload: Workload, schedule: Schedule) -> Pattern:
    """Return the pattern of a schedule for `tasks.one_frame(workload)`."""
    timeline = simulate(one_frame(workload), schedule)
    return Pattern(tuple((s.step, s.unit) for s in timeline.segments))


def improve(
    workload: Workload,
    objective: Objective,
    patterns: Sequence[Pattern],
    options: SearchOptions = SearchOptions(),
    *,
    stop: Stop | None = None,
) -> Solution:
    """Return the best schedule that local search reaches from the patterns; no worse than their best."""
    began = time.monotonic()
    tasks = tasks_of(workload)
    answer = _searched(tasks, objective, patterns, options, stop)
    schedule = tasks.schedule(answer.best.unit, answer.order)
    timeline = simulate(workload, schedule)
    return Solution(
        schedule,
        timeline,
        objective,
        Claim("searched", False),
        lower_bound(workload, objective),
        time.monotonic() - began,
        "local search",
        answer.end,
    )


def played_ms(workload: Workload, objective: Objective, pattern: Pattern) -> float:
    """Return the cost of a pattern by the search's own player; the judge must find the same."""
    return _searched(tasks_of(workload), objective, [pattern], SearchOptions(tries=0), None).value


def _searched(
    tasks: Tasks,
    objective: Objective,
    patterns: Sequence[Pattern],
    options: SearchOptions,
    stop: Stop | None,
) -> _core.LocalSchedule:
    workload = tasks.workload
    return _core.local_search(
        tasks=tasks.core,
        slowdown=workload.model.slowdown,
        stream=_core.CorunStream(
            task=tasks.token_tasks, chain=[step.job for step in tasks.tokens], lag=tasks.lag
        ),
        aim=_core.CorunAim(
            kind=objective.value, last=tasks.last, firsts=tasks.firsts, pipelined=workload.pipelined
        ),
        starts=[_candidate(tasks, pattern) for pattern in patterns],
        tries=options.tries,
        seed=options.seed,
        limits=_core.Limits(seconds=options.time_limit, stop=stop),
    )


def _candidate(tasks: Tasks, pattern: Pattern) -> _core.CorunCandidate:
    """Return units by token, and the sequence of tokens."""
    token = {step: n for n, step in enumerate(tasks.tokens)}
    units = [0] * len(tasks.tokens)
    for step, unit in pattern.starts:
        units[token[step]] = unit
    return _core.CorunCandidate(unit=units, sequence=[token[step] for step, _ in pattern.starts])
