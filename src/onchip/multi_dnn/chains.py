"""A workload as two chains of groups, where it is one: the input of the exact search.

Runs that follow each other (iterations, networks in series) form one chain; a network hands nothing over
between two runs, so changing the unit there costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from onchip.machines.contention import ContentionModel
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.workload import Workload

__all__ = ["Chain", "chains_of", "contention_table", "schedule_of"]


@dataclass(frozen=True, slots=True)
class Chain:
    """Steps that run in sequence.

    `work[place]` is ms alone (inf: not supported) and `gb_per_second[place]` the bandwidth then, at place =
    position * units + unit; `move` is the delay of a change of unit after a position, at place * units +
    unit.
    """

    steps: tuple[Step, ...]
    work: tuple[float, ...]
    gb_per_second: tuple[float, ...]
    move: tuple[float, ...]


def chains_of(workload: Workload) -> tuple[Chain, ...] | None:
    """Return the chains that the workload falls into, or None when it does not.

    It does when there is one frame and every network is after at most one other and before at most one other.
    """
    jobs = workload.jobs
    before = [len(waits) for waits in workload.waits_for]
    after = [sum(j in waits for waits in workload.waits_for) for j in range(len(jobs))]
    if workload.frames > 1 or max(before) > 1 or max(after) > 1:
        return None
    follower = {waits[0]: j for j, waits in enumerate(workload.waits_for) if waits}
    chains = []
    for first in (j for j in range(len(jobs)) if not before[j]):
        steps, job = [], first
        while True:
            steps += [
                Step(job, run, group)
                for run in range(workload.runs(job))
                for group in range(len(jobs[job].profile.groups))
            ]
            if job not in follower:
                break
            job = follower[job]
        chains.append(_chain(workload, steps))
    return tuple(chains)


def _chain(workload: Workload, steps: Sequence[Step]) -> Chain:
    units = range(len(workload.soc.units))
    work: list[float] = []
    bandwidth: list[float] = []
    move: list[float] = []
    for step, after in zip(steps, (*steps[1:], None), strict=True):
        profile = workload.jobs[step.job].profile
        group = profile.groups[step.group]
        work += [inf if ms is None else ms for ms in group.ms]
        bandwidth += group.gb_per_second
        if after is not None and after[:2] == step[:2]:
            move += [profile.transition_ms(step.group, u, v) for u in units for v in units]
        else:
            move += [0.0] * len(units) ** 2
    return Chain(tuple(steps), tuple(work), tuple(bandwidth), tuple(move))


def contention_table(
    model: ContentionModel, first: Chain, second: Chain, units: int
) -> tuple[list[float], list[float]]:
    """Return slowdowns of every place of `first` beside every one of `second`, and of `second` beside
    `first`.

    Both are rows by place of `first`; where the units are the same, or one is not supported, 1.
    """
    known: dict[tuple[int, float, float], float] = {}

    def slowdown(unit: int, requested: float, external: float) -> float:
        if not external:
            return 1.0
        key = (unit, requested, external)
        if key not in known:
            known[key] = model.slowdown(unit, requested, external)
        return known[key]

    one: list[float] = []
    other: list[float] = []
    columns = [
        (place % units, gb, work < inf)
        for place, (gb, work) in enumerate(zip(second.gb_per_second, second.work, strict=True))
    ]
    for place, (x, work) in enumerate(zip(first.gb_per_second, first.work, strict=True)):
        u = place % units
        for v, y, supported in columns:
            if u == v or work == inf or not supported:
                one.append(1.0)
                other.append(1.0)
            else:
                one.append(slowdown(u, x, y))
                other.append(slowdown(v, y, x))
    return one, other


def schedule_of(workload: Workload, starts: Iterable[tuple[Step, int]]) -> Schedule:
    """Return the schedule in which every step begins on its unit in the given order."""
    units = [
        [[0] * len(job.profile.groups) for _ in range(workload.runs(j))]
        for j, job in enumerate(workload.jobs)
    ]
    order: list[list[Step]] = [[] for _ in workload.soc.units]
    for step, unit in starts:
        units[step.job][step.run][step.group] = unit
        order[unit].append(step)
    return Schedule(tuple(tuple(map(tuple, rows)) for rows in units), tuple(map(tuple, order)))
