"""Every schedule of a small workload: each mapping to units, and each order on every unit.

With `switches`, only mappings in which a run changes its unit at most so often are enumerated. The judge
evaluates them, so the result is the best of its space by definition; the other solvers are compared with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from math import inf

from onchip.base.errors import IllegalSchedule, UsageError
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.solution import Claim, Solution
from onchip.multi_dnn.workload import Workload

__all__ = ["best_by_enumeration", "every_mapping", "every_schedule", "mappings_of_run"]

Row = tuple[int, ...]


def mappings_of_run(workload: Workload, job: int, switches: int | None = None) -> Iterator[Row]:
    """Yield every unit of every group of one run of the job, with at most `switches` changes of unit."""
    groups = workload.jobs[job].profile.groups
    units = range(len(workload.soc.units))

    def extend(row: Row, left: int | None) -> Iterator[Row]:
        if len(row) == len(groups):
            yield row
            return
        for unit in units:
            if not groups[len(row)].runs_on(unit):
                continue
            changes = bool(row) and row[-1] != unit
            if changes and left == 0:
                continue
            yield from extend((*row, unit), None if left is None else left - changes)

    return extend((), switches)


def every_mapping(workload: Workload, switches: int | None = None) -> Iterator[tuple[tuple[Row, ...], ...]]:
    """Yield every mapping of every run, in the form of `Schedule.units`."""
    per_job = [
        product(list(mappings_of_run(workload, j, switches)), repeat=workload.runs(j))
        for j in range(len(workload.jobs))
    ]
    return product(*per_job)


def every_schedule(workload: Workload, switches: int | None = None) -> Iterator[Schedule]:
    """Yield every mapping with every order; the judge refuses orders that wait for each other."""
    for units in every_mapping(workload, switches):
        lanes: list[list[tuple[Step, ...]]] = [[] for _ in workload.soc.units]
        for j, rows in enumerate(units):
            for unit, lane in enumerate(lanes):
                lane.append(
                    tuple(
                        Step(j, r, g) for r, row in enumerate(rows) for g, on in enumerate(row) if on == unit
                    )
                )
        for order in product(*(list(_merges(tuple(lane))) for lane in lanes)):
            yield Schedule(units, order)


def best_by_enumeration(
    workload: Workload,
    objective: Objective = Objective.LATENCY,
    *,
    switches: int | None = None,
    most: int = 1_000_000,
) -> Solution:
    """Return the best of every schedule of at most `switches` changes of unit a run, by the judge.

    Raises `UsageError` once there are more than `most` schedules.
    """
    began = time.monotonic()
    best, least = None, inf
    for count, schedule in enumerate(every_schedule(workload, switches)):
        if count >= most:
            raise UsageError(f"there are more than {most:,} schedules to enumerate", where="corun")
        try:
            timeline = simulate(workload, schedule)
        except IllegalSchedule:
            continue  # its units wait for each other
        value = objective.cost_ms(timeline)
        if value < least:
            best, least = (schedule, timeline), value
    if best is None:
        raise UsageError("no mapping has so few switches", where="corun")
    claim = Claim("any order" if switches is None else "few switches", True, switches)
    return Solution(*best, objective, claim, 0.0, time.monotonic() - began, "enumeration")


def _merges(lanes: tuple[tuple[Step, ...], ...]) -> Iterator[tuple[Step, ...]]:
    """Yield every way to merge sequences that keep their own order."""
    if not any(lanes):
        yield ()
        return
    for at, lane in enumerate(lanes):
        if lane:
            rest = (*lanes[:at], lane[1:], *lanes[at + 1 :])
            for tail in _merges(rest):
                yield (lane[0], *tail)
