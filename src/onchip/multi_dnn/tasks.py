"""A workload as plain rows of numbers, for the searches of the compiled core that play schedules.

A task is one group of one run. Over frames a schedule repeats: a token is a group of one frame,
which stands for one task in every frame. In a stream, a network that waits for others works on an earlier
frame than they do; `lag` is the number of frames that it is behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from onchip import _core
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.workload import Workload

__all__ = ["Tasks", "one_frame", "tasks_of"]


@dataclass(frozen=True, slots=True)
class Tasks:
    """The workload's tasks, in the order of `steps`, and its tokens, in that of `tokens`."""

    workload: Workload
    core: _core.CorunTasks
    steps: tuple[Step, ...]
    ids: dict[Step, int]
    tokens: tuple[Step, ...]
    """The steps of the first frame."""
    token_tasks: list[list[int]]
    lag: list[int]
    last: list[list[int]]
    """For each network and frame, the task that ends it."""
    firsts: list[list[int]]
    """For each network, those by whose end a frame is taken in."""

    def schedule(self, units: Sequence[int], order: Sequence[Sequence[int]]) -> Schedule:
        """Return the schedule of a unit for every token and an order of tasks on every unit."""
        unit_of = dict(zip(self.tokens, units, strict=True))
        jobs = self.workload.jobs
        rows = tuple(
            tuple(
                tuple(unit_of[Step(j, r % job.iterations, g)] for g in range(len(job.profile.groups)))
                for r in range(self.workload.runs(j))
            )
            for j, job in enumerate(jobs)
        )
        return Schedule(rows, tuple(tuple(self.steps[t] for t in lane) for lane in order))


def tasks_of(workload: Workload) -> Tasks:
    """Return the rows of a workload."""
    jobs, units = workload.jobs, range(len(workload.soc.units))
    work: list[float] = []
    gb: list[float] = []
    move: list[float] = []
    base: list[int] = []
    for job in jobs:
        base.append(len(work) // len(units))
        for g, group in enumerate(job.profile.groups):
            work += [inf if ms is None else ms for ms in group.ms]
            gb += group.gb_per_second
            last = g + 1 == len(job.profile.groups)
            move += [0.0 if last else job.profile.transition_ms(g, u, v) for u in units for v in units]
    steps = tuple(
        Step(j, run, g)
        for j, job in enumerate(jobs)
        for run in range(workload.runs(j))
        for g in range(len(job.profile.groups))
    )
    ids = {step: n for n, step in enumerate(steps)}
    ends = [
        [
            ids[Step(j, (frame + 1) * job.iterations - 1, len(job.profile.groups) - 1)]
            for frame in range(workload.frames)
        ]
        for j, job in enumerate(jobs)
    ]
    before = [ids[step._replace(group=step.group - 1)] if step.group else None for step in steps]
    gates = [_gates(workload, ids, ends, step) for step in steps]
    core = _core.CorunTasks(
        units=len(units),
        work=work,
        gb=gb,
        move=move,
        row=[base[s.job] + s.group for s in steps],
        before=before,
        gates=gates,
    )
    depth: dict[int, int] = {}

    def depth_of(job: int) -> int:
        if job not in depth:
            depth[job] = max((depth_of(p) + 1 for p in workload.waits_for[job]), default=0)
        return depth[job]

    def firsts_of(job: int) -> set[int]:
        before = workload.waits_for[job]
        return {first for p in before for first in firsts_of(p)} if before else {job}

    streamed = workload.frames > 1 and frames_overlap(workload)
    tokens = tuple(step for step in steps if step.run < jobs[step.job].iterations)
    return Tasks(
        workload,
        core,
        steps,
        ids,
        tokens,
        [[ids[Step(j, r + f * jobs[j].iterations, g)] for f in range(workload.frames)] for j, r, g in tokens],
        [depth_of(step.job) if streamed else 0 for step in tokens],
        ends,
        [sorted(firsts_of(j)) for j in range(len(jobs))],
    )


def _gates(workload: Workload, ids: dict[Step, int], ends: list[list[int]], step: Step) -> list[int]:
    """Return the tasks besides the group before that must have ended before a step may begin."""
    job, run, group = step
    if group:
        return []
    frame, iteration = divmod(run, workload.jobs[job].iterations)
    groups = len(workload.jobs[job].profile.groups)
    gates = [ids[Step(job, run - 1, groups - 1)]] if run else []
    if not iteration:
        gates += [ends[other][frame] for other in workload.waits_for[job]]
        most = workload.frames_at_once
        if most and frame >= most:
            gates += [row[frame - most] for row in ends]
    return sorted(set(gates))


def frames_overlap(workload: Workload) -> bool:
    """Return whether every network in a series may work on a frame of its own."""

    def depth(job: int) -> int:
        return 1 + max(map(depth, workload.waits_for[job]), default=0)

    most = workload.frames_at_once
    return not most or most >= max(map(depth, range(len(workload.jobs))))


def one_frame(workload: Workload) -> Workload:
    """Return one period of the workload: in a stream, networks in series work on different frames."""
    if workload.frames == 1:
        return workload
    if not workload.pipelined or not frames_overlap(workload):
        return replace(workload, frames=1)
    return replace(workload, frames=1, jobs=tuple(replace(job, after=()) for job in workload.jobs))
