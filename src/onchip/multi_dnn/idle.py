"""The reasons of a unit's idle times: the dependency that its next group waits for, moment by moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.timeline import Segment, Timeline

__all__ = ["Idle", "Why", "idle_times"]

Why = Literal["elsewhere", "moving", "another run", "on purpose", "nothing left"]
"""The reasons, in order: the group before the next one is on another unit; the network is changing units;
the run may begin only when another one has ended; a wait was inserted; the unit has no more work."""

ROUNDING = 1e-9
"""The relative length up to which an idle time does not count."""


@dataclass(frozen=True, slots=True)
class Idle:
    """The unit is idle from `start` to `end` (ms). It then runs `next`, which waits for `cause`."""

    unit: int
    start: float
    end: float
    why: Why
    next: Step | None = None
    cause: Step | None = None


def idle_times(schedule: Schedule, line: Timeline) -> tuple[Idle, ...]:
    """Return all idle times until the makespan, unit by unit; neighbours have different reasons."""
    at = {s.step: s for s in line.segments}
    ends = {s.end: s.step for s in line.segments}
    idle = dict(schedule.idle_ms)
    found: list[Idle] = []
    rows: list[list[Segment]] = [[] for _ in line.workload.soc.units]
    for s in line.segments:
        rows[s.unit].append(s)
    for unit, row in enumerate(rows):
        free = 0.0
        for s in row:
            found += _before(s, free, at, ends, idle.get(s.step, 0.0))
            free = max(free, s.end)
        if free < line.makespan_ms * (1 - ROUNDING):
            found.append(Idle(unit, free, line.makespan_ms, "nothing left"))
    return tuple(found)


def _before(
    s: Segment, free: float, at: dict[Step, Segment], ends: dict[float, Step], inserted: float
) -> Iterator[Idle]:
    """Yield the reasons for the time from `free` until a segment's start."""
    job, run, group = s.step
    marks: list[tuple[float, Why, Step | None]] = []
    if group:
        before = at[Step(job, run, group - 1)]
        marks += [(before.end, "elsewhere", before.step), (s.ready, "moving", before.step)]
    else:
        marks.append((s.ready, "another run", ends.get(s.ready)))
    marks.append((s.start, "on purpose" if inserted else "elsewhere", None))
    since = free
    for until, why, cause in marks:
        until = min(until, s.start)
        if since < until * (1 - ROUNDING):
            yield Idle(s.unit, since, until, why, s.step, cause)
            since = until
