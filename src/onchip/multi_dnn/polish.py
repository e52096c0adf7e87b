"""Inserted idle time: a group that begins a little later can meet a better neighbour.

Between two moments at which a group begins or ends, the cost is linear in a delay, so the useful delays are
exactly those that make a group begin or end together with another one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.solution import Claim, Solution
from onchip.multi_dnn.timeline import Timeline
from onchip.planners.limits import NO_LIMITS, Limits

__all__ = ["polish"]


def polish(
    solution: Solution, limits: Limits = NO_LIMITS, *, tries: int = 400, share: float = 0.1
) -> Solution:
    """Return the solution with delays before some groups, where they pay; itself where none do.

    At most `tries` schedules are judged, and no delay is longer than `share` of the cost. The result
    may be better than the best without idle time, so its claim is only that it was found. When time is up,
    and on Ctrl-C, the best so far is returned, and its `ended` says so.
    """
    began = time.perf_counter()
    workload, objective = solution.timeline.workload, solution.objective
    best, ended, left, better = solution, solution.ended, tries, True
    try:
        while better and left > 0 and ended != "time":
            better = False
            for delayed in _delays(best.schedule, best.timeline, share * solution.cost_ms):
                if not left:
                    break
                if limits.left() == 0.0:
                    ended = "time"
                    break
                left -= 1
                judged = simulate(workload, delayed)
                if objective.cost_ms(judged) < best.cost_ms * (1 - 1e-6):
                    best, better = replace(best, schedule=delayed, timeline=judged), True
    except KeyboardInterrupt:
        ended = "stopped"
    if best is solution:
        return replace(solution, ended=ended)
    return replace(
        best,
        claim=Claim("searched", False),
        seconds=solution.seconds + time.perf_counter() - began,
        solver=f"{solution.solver} and delays",
        ended=ended,
    )


def _delays(schedule: Schedule, timeline: Timeline, most: float) -> Iterator[Schedule]:
    """Yield the schedule with one group's delay changed so that it meets an event of another network."""
    idle = dict(schedule.idle_ms)
    for segment in timeline.segments:
        events = {
            moment
            for other in timeline.segments
            if other.step.job != segment.step.job
            for moment in (other.start, other.end)
        }
        gaps = {event - segment.start for event in events} | {event - segment.end for event in events}
        known = idle.get(segment.step, 0.0)
        waits = {known + gap for gap in gaps if 1e-9 < gap <= most}
        if known:
            waits.add(0.0)
        for wait in sorted(waits):
            changed: dict[Step, float] = {**idle, segment.step: wait}
            yield replace(schedule, idle_ms=tuple((step, ms) for step, ms in changed.items() if ms))
