"""Whole schedules in compact form: for every unit the stretches that it runs without a break, in order.

A stretch is `[network, run, first group, last group]`. A group's unit is that of its stretch, so this is
a whole schedule except for inserted waits. Schedules that stand beside another one in its file
(its baselines) are written in this form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.stretches import stretches
from onchip.multi_dnn.workload import Workload

__all__ = ["Row", "compact_rows", "schedule_of_rows"]

Row = tuple[str, int, str, str]
"""Network, run, first and last group of a stretch."""


def compact_rows(workload: Workload, schedule: Schedule) -> dict[str, list[Row]]:
    """Return the stretches of every unit by its name; inserted waits are left out."""

    def row(job: int, run: int, first: int, last: int) -> Row:
        groups = workload.jobs[job].profile.groups
        return workload.jobs[job].name, run, groups[first].name, groups[last].name

    found = stretches(replace(schedule, idle_ms=()))
    return {
        name: [row(one.job, one.run, one.first, one.last) for one in mine]
        for name, mine in zip(workload.soc.unit_names, found, strict=True)
    }


def schedule_of_rows(
    workload: Workload, rows: Mapping[str, Sequence[Row]], refuse: Callable[[str], Exception]
) -> Schedule:
    """Return the schedule with these stretches; where there is none, raise `refuse(reason)`."""
    unit_id = {name: u for u, name in enumerate(workload.soc.unit_names)}
    job_id = {job.name: j for j, job in enumerate(workload.jobs)}
    group_id = [{group.name: g for g, group in enumerate(job.profile.groups)} for job in workload.jobs]
    units = [
        [[-1] * len(job.profile.groups) for _ in range(workload.runs(j))]
        for j, job in enumerate(workload.jobs)
    ]
    order: list[list[Step]] = [[] for _ in unit_id]
    for name, stretched in rows.items():
        if name not in unit_id:
            raise refuse(f"names an unknown unit {name!r}")
        for network, run, first, last in stretched:
            if network not in job_id:
                raise refuse(f"names an unknown network {network!r}")
            j = job_id[network]
            for group in (first, last):
                if group not in group_id[j]:
                    raise refuse(f"names an unknown group {group!r} of network {network}")
            if run >= workload.runs(j):
                raise refuse(f"is about run {run} of network {network}, which has {workload.runs(j)}")
            begin, end = group_id[j][first], group_id[j][last]
            if end < begin:
                raise refuse(f"has groups {first} to {last} of network {network}, which go backwards")
            for g in range(begin, end + 1):
                if units[j][run][g] >= 0:
                    group = workload.jobs[j].profile.groups[g].name
                    raise refuse(f"runs group {group} of network {network}, run {run} twice")
                units[j][run][g] = unit_id[name]
                order[unit_id[name]].append(Step(j, run, g))
    left = sum(unit < 0 for runs in units for row in runs for unit in row)
    if left:
        raise refuse(f"leaves {left:,} groups out")
    return Schedule(tuple(tuple(map(tuple, runs)) for runs in units), tuple(map(tuple, order)))
