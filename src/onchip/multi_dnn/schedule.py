"""Schedules: the unit of each group of every run, and the order of the steps on each unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from onchip.base.errors import IllegalSchedule
from onchip.multi_dnn.workload import Workload

__all__ = ["Schedule", "Step", "check_schedule"]


class Step(NamedTuple):
    """One group of one run: positions of the job in the workload and of the group in its profile."""

    job: int
    run: int
    group: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """`units[job][run][group]` is the unit of a group; `order[unit]` are the steps it runs, first to last.

    The runtime enforces the order: a unit waits for the next step in its order even if another is ready.
    `idle_ms` are inserted waits: a step begins that long after it could.
    """

    units: tuple[tuple[tuple[int, ...], ...], ...]
    order: tuple[tuple[Step, ...], ...]
    idle_ms: tuple[tuple[Step, float], ...] = field(default=())


def check_schedule(workload: Workload, schedule: Schedule) -> None:
    """Raise `IllegalSchedule` unless every step is placed once, on a unit that supports it."""
    jobs = workload.jobs

    def label(step: Sequence[int]) -> str:
        job, run, group = step
        return f"network {jobs[job].name}, run {run}, group {jobs[job].profile.groups[group].name}"

    if len(schedule.units) != len(jobs):
        raise IllegalSchedule(
            "networks", f"maps {len(schedule.units)} networks, the workload has {len(jobs)}"
        )
    if len(schedule.order) != len(workload.soc.units):
        raise IllegalSchedule(
            "units", f"orders {len(schedule.order)} units, {workload.soc.name} has {len(workload.soc.units)}"
        )
    for j, job in enumerate(jobs):
        if len(schedule.units[j]) != workload.runs(j):
            raise IllegalSchedule(
                "runs", f"network {job.name} has {len(schedule.units[j])} runs, not {workload.runs(j)}"
            )
        for r, row in enumerate(schedule.units[j]):
            if len(row) != len(job.profile.groups):
                raise IllegalSchedule(
                    "groups",
                    f"network {job.name}, run {r} maps {len(row)} groups of {len(job.profile.groups)}",
                )
            for g, unit in enumerate(row):
                if not 0 <= unit < len(workload.soc.units):
                    raise IllegalSchedule("unit", f"{label((j, r, g))} is on unit {unit}, which there is not")
                if not job.profile.groups[g].runs_on(unit):
                    name = workload.soc.units[unit].name
                    raise IllegalSchedule("support", f"{label((j, r, g))} does not run on {name}")
    seen: set[Step] = set()
    for unit, steps in enumerate(schedule.order):
        for step in steps:
            j, r, g = step
            if not (
                0 <= j < len(jobs) and 0 <= r < workload.runs(j) and 0 <= g < len(jobs[j].profile.groups)
            ):
                raise IllegalSchedule("order", f"step {tuple(step)} is not in the workload")
            if schedule.units[j][r][g] != unit:
                raise IllegalSchedule(
                    "order", f"{label(step)} is in the order of a unit that it does not run on"
                )
            if step in seen:
                raise IllegalSchedule("order", f"{label(step)} is ordered twice")
            seen.add(step)
    for j, job in enumerate(jobs):
        for r in range(workload.runs(j)):
            for g in range(len(job.profile.groups)):
                if Step(j, r, g) not in seen:
                    raise IllegalSchedule("order", f"{label((j, r, g))} is in no unit's order")
    for step, wait in schedule.idle_ms:
        if step not in seen or not 0 <= wait <= 1e9:
            raise IllegalSchedule("idle", f"an idle time of {wait} ms before step {tuple(step)}")
    if len(dict(schedule.idle_ms)) < len(schedule.idle_ms):
        raise IllegalSchedule("idle", "a step has two idle times")
