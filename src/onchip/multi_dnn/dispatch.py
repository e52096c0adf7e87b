"""Mappings become schedules: each unit next runs the step that became ready for it first."""

from __future__ import annotations

from collections.abc import Sequence

from onchip import _core
from onchip.machines.contention import ContentionModel
from onchip.multi_dnn.schedule import Schedule
from onchip.multi_dnn.tasks import tasks_of
from onchip.multi_dnn.workload import Workload

__all__ = ["first_come"]


def first_come(
    workload: Workload, units: Sequence[Sequence[Sequence[int]]], model: ContentionModel | None = None
) -> Schedule:
    """Return the schedule of a mapping (`Schedule.units`) in which units take the step that is ready first.

    This is the behaviour where no order is enforced. Ties go to the network named first. With `model` the
    order is that under another contention model than the workload's.
    """
    tasks = tasks_of(workload)
    dispatcher = _core.Dispatcher(tasks=tasks.core, slowdown=(model or workload.model).slowdown)
    starts, _ = dispatcher.first_ready(
        unit=[units[j][r][g] for j, r, g in tasks.steps],
        rank=list(range(len(tasks.steps))),
    )
    order: list[list[int]] = [[] for _ in workload.soc.units]
    for task in starts:
        j, r, g = tasks.steps[task]
        order[units[j][r][g]].append(task)
    return Schedule(
        tuple(tuple(tuple(row) for row in rows) for rows in units),
        tuple(tuple(tasks.steps[t] for t in lane) for lane in order),
    )
