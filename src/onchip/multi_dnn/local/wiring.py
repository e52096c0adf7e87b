"""A schedule as instructions for each unit's process: units to wait for, pieces to run, units to notify.

Between two units there is one counter in the kernel for each direction. A unit that runs a step on which
others depend adds one to the counter of each such unit; a waiting unit knows how many of these must have
come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.workload import Workload

__all__ = ["Wired", "dependencies", "wire"]


class Wired(NamedTuple):
    """One step of a unit.

    `waits` are (other unit, how many of its messages to this unit must have come), `tells` the units that get
    one afterwards; `idle_ns` is an additional wait before the step begins.
    """

    step: Step
    waits: tuple[tuple[int, int], ...]
    tells: tuple[int, ...]
    idle_ns: int


def dependencies(workload: Workload, step: Step) -> Iterator[Step]:
    """Yield the steps that must have ended before `step` may begin, whatever its unit."""
    job, run, group = step
    if group:
        yield Step(job, run, group - 1)
        return
    if run:
        yield _last(workload, job, run - 1)
    frame, iteration = divmod(run, workload.jobs[job].iterations)
    if iteration:
        return
    for other in workload.waits_for[job]:
        yield _last(workload, other, (frame + 1) * workload.jobs[other].iterations - 1)
    finished = frame + 1 - workload.frames_at_once
    if workload.frames_at_once and finished > 0:
        for other in range(len(workload.jobs)):
            if other != job:
                yield _last(workload, other, finished * workload.jobs[other].iterations - 1)


def _last(workload: Workload, job: int, run: int) -> Step:
    return Step(job, run, len(workload.jobs[job].profile.groups) - 1)


def wire(workload: Workload, schedule: Schedule) -> tuple[tuple[Wired, ...], ...]:
    """Return, for each unit, its steps in order. The schedule must be one that `simulate` takes."""
    unit_of = {step: unit for unit, order in enumerate(schedule.order) for step in order}
    needs = {step: tuple(dependencies(workload, step)) for step in unit_of}
    told: dict[Step, set[int]] = {step: set() for step in unit_of}
    for step, before in needs.items():
        for other in before:
            if unit_of[other] != unit_of[step]:
                told[other].add(unit_of[step])
    messages: dict[tuple[Step, int], int] = {}
    for order in schedule.order:
        sent = [0] * len(schedule.order)
        for step in order:
            for target in told[step]:
                sent[target] += 1
                messages[step, target] = sent[target]
    idle = dict(schedule.idle_ms)

    def wired(step: Step, unit: int) -> Wired:
        waits: dict[int, int] = {}
        for other in needs[step]:
            source = unit_of[other]
            if source != unit:
                waits[source] = max(waits.get(source, 0), messages[other, unit])
        tells = tuple(sorted(told[step]))
        return Wired(step, tuple(sorted(waits.items())), tells, round(idle.get(step, 0.0) * 1e6))

    return tuple(tuple(wired(step, unit) for step in order) for unit, order in enumerate(schedule.order))
