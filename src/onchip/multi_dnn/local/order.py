"""The order check of an execution against its schedule, from its times; independent of the wiring."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.workload import Workload

__all__ = ["violations"]


def violations(workload: Workload, schedule: Schedule, times: Mapping[Step, tuple[int, int]]) -> list[str]:
    """Return the violations of the order, a line each: `times` are [start, end) of every step, in ns.

    All times are of one clock.
    On a unit no step begins before the step ordered before it has ended; a group waits for the one before it,
    a run for the one before it, the first run of a frame for the jobs that it is after and, where only so
    many frames may be under way, for all jobs to have finished an earlier one.
    """
    found: list[str] = []

    def after(step: Step, others: list[Step], why: str) -> None:
        found.extend(
            f"{_label(workload, step)} began before {_label(workload, other)} had ended: {why}"
            for other in others
            if times[step][0] < times[other][1]
        )

    for unit, order in enumerate(schedule.order):
        name = workload.soc.units[unit].name
        for first, second in pairwise(order):
            after(second, [first], f"the order of {name}")
    for j, job in enumerate(workload.jobs):
        last = len(job.profile.groups) - 1
        for r in range(workload.runs(j)):
            for g in range(last):
                after(Step(j, r, g + 1), [Step(j, r, g)], "the next group of a run")
            if r:
                after(Step(j, r, 0), [Step(j, r - 1, last)], "the next run of a network")
        for frame in range(workload.frames):
            first = Step(j, frame * job.iterations, 0)
            ends = {
                other.name: Step(o, (frame + 1) * other.iterations - 1, len(other.profile.groups) - 1)
                for o, other in enumerate(workload.jobs)
            }
            after(first, [ends[name] for name in job.after], "a network that it is after")
            away = workload.in_flight if workload.pipelined else 1
            if 0 < away <= frame:
                before = [
                    Step(o, (frame - away + 1) * other.iterations - 1, len(other.profile.groups) - 1)
                    for o, other in enumerate(workload.jobs)
                ]
                after(first, before, f"{away} frames at once")
    return found


def _label(workload: Workload, step: Step) -> str:
    job = workload.jobs[step.job]
    return f"{job.name}, run {step.run}, {job.profile.groups[step.group].name}"
