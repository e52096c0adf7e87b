"""A slow judge of schedules: time advances in equal small steps, and every rule is asked again at each.

Nothing of the event-driven simulator is used. What it finds is off by less than a few steps per group.
"""

from __future__ import annotations

from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.workload import Workload


def stepped(workload: Workload, schedule: Schedule, dt: float, epsilon: float = 0.0) -> dict[Step, float]:
    """When each step ends, in ms, give or take the steps of `dt`."""
    jobs, idle = workload.jobs, dict(schedule.idle_ms)
    left = {
        Step(j, r, g): float(jobs[j].profile.groups[g].ms[unit] or 0)
        for j, rows in enumerate(schedule.units)
        for r, row in enumerate(rows)
        for g, unit in enumerate(row)
    }
    place = {step: (unit, n) for unit, order in enumerate(schedule.order) for n, step in enumerate(order)}
    ends: dict[Step, float] = {}
    begun: set[Step] = set()
    allowed: dict[Step, float] = {}  # since when nothing but its idle time holds a step back
    tick = 0
    while len(ends) < len(left):
        now = tick * dt
        for step in sorted(left.keys() - begun):
            if _may_begin(workload, schedule, step, place, ends, begun, left, now, epsilon):
                allowed.setdefault(step, now)
                if now >= allowed[step] + idle.get(step, 0.0) - dt / 2:
                    begun.add(step)
        at_work = sorted(begun - ends.keys())
        assert at_work or tick < 10**7
        gb = {s: jobs[s.job].profile.groups[s.group].gb_per_second[place[s][0]] for s in at_work}
        for s in at_work:
            others = sum(gb.values()) - gb[s]
            left[s] -= dt / (
                workload.model.slowdown(place[s][0], gb[s], others)
                if len(at_work) > 1 and others > 1e-12
                else 1.0
            )
        for s in at_work:
            if left[s] <= dt / 2:
                ends[s] = now + dt
        tick += 1
    return ends


def _may_begin(
    workload: Workload,
    schedule: Schedule,
    step: Step,
    place: dict[Step, tuple[int, int]],
    ends: dict[Step, float],
    begun: set[Step],
    left: dict[Step, float],
    now: float,
    epsilon: float,
) -> bool:
    unit, position = place[step]
    before = schedule.order[unit][:position]
    if any(s not in ends for s in before[:-1]):
        return False
    if before and before[-1] not in ends and (before[-1] not in begun or left[before[-1]] > epsilon):
        return False
    job, run, group = step
    mine = workload.jobs[job]
    if group:
        last = Step(job, run, group - 1)
        leaves = schedule.units[job][run][group - 1]
        away = 0.0
        if leaves != unit:
            away = mine.profile.groups[group - 1].out_ms[leaves] + mine.profile.groups[group].in_ms[unit]
        return last in ends and now >= ends[last] + away - 1e-9

    def done(other: int, runs: int) -> bool:
        return runs == 0 or Step(other, runs - 1, len(workload.jobs[other].profile.groups) - 1) in ends

    if not done(job, run):
        return False
    frame = run // mine.iterations
    if run % mine.iterations:
        return True
    for name in mine.after:
        other = next(n for n, j in enumerate(workload.jobs) if j.name == name)
        if not done(other, (frame + 1) * workload.jobs[other].iterations):
            return False
    most = workload.in_flight if workload.pipelined else 1
    return not most or all(
        done(n, max(0, frame - most + 1) * j.iterations) for n, j in enumerate(workload.jobs)
    )
