"""The baselines of a schedule, HaX-CoNN's (its section 5), each judged by the same simulator.

A baseline decides a mapping of every network; no order is enforced then, so each unit takes the step that is
ready first. Only the contention-blind optimum has an order of its own. Mensa, Herald and H2H are
reimplemented from the paper's description of them, not from their code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf

from onchip import _core
from onchip.base.errors import UsageError
from onchip.machines.contention import NO_CONTENTION
from onchip.multi_dnn.dispatch import first_come
from onchip.multi_dnn.dp import PairOptions, pairable, solve_pair
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.schedule import Schedule
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.tasks import one_frame, tasks_of
from onchip.multi_dnn.timeline import Timeline
from onchip.multi_dnn.workload import Workload

__all__ = [
    "Baseline",
    "Rows",
    "baselines",
    "best_baseline",
    "blind_optimum",
    "collect",
    "h2h",
    "herald",
    "mensa",
]

Rows = tuple[tuple[int, ...], ...]
"""The unit of every group of every network; all of its runs are mapped alike."""

MAPPINGS = 256
"""The most assignments of whole networks to units that are all tried."""
REMAPS = 400
"""The most single changes of a mapping that the H2H-like baseline tries."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A schedule by a simpler rule, and the judge's timeline of it."""

    name: str
    schedule: Schedule
    timeline: Timeline

    def cost_ms(self, objective: Objective) -> float:
        """Return the objective as a time in ms; less is better."""
        return objective.cost_ms(self.timeline)


def baselines(workload: Workload, objective: Objective = Objective.LATENCY) -> tuple[Baseline, ...]:
    """Return every baseline that the workload allows.

    They are each unit alone (where it supports everything), whole networks on different units (the best such
    mapping), Mensa-, Herald- and H2H-like, and the best schedule for a memory without contention.
    """
    found: list[Baseline] = []
    collect(found, workload, objective)
    return tuple(found)


def collect(
    found: list[Baseline],
    workload: Workload,
    objective: Objective,
    over: Callable[[], bool] = lambda: False,
) -> bool:
    """Append every baseline to `found` as it is made, and return whether all were.

    Once `over` returns true no other is begun, but the first is always made: for a long stream each takes a
    while.
    """
    for judge in _rules(workload):
        if found and over():
            return False
        least: Baseline | None = None
        for one in judge():
            if least is None or one.cost_ms(objective) < least.cost_ms(objective):
                least = one
            if over():
                break
        if least is not None:
            found.append(least)
    return True


def _rules(workload: Workload) -> Iterator[Callable[[], Iterator[Baseline]]]:
    """Yield for each baseline the function that makes the schedules of which it is the best."""
    jobs, units = workload.jobs, workload.soc.units

    def mapped(name: str, rows: Callable[[], Iterable[Rows]]) -> Callable[[], Iterator[Baseline]]:
        return lambda: (_judged(workload, name, row) for row in rows())

    def blind() -> Iterator[Baseline]:
        found = blind_optimum(workload)
        if found is not None:
            yield found

    for u, unit in enumerate(units):
        if all(group.runs_on(u) for job in jobs for group in job.profile.groups):
            alone = _whole(workload, [u] * len(jobs))
            yield mapped(f"{unit.name} alone", lambda alone=alone: [alone])  # type: ignore[misc]
    if len(jobs) > 1 and len(units) > 1:
        yield mapped("whole networks", lambda: (_whole(workload, where) for where in _apart(workload)))
    yield mapped("Mensa-like", lambda: [tuple(mensa(job.profile) for job in jobs)])
    yield mapped("Herald-like", lambda: [herald(workload)])
    yield mapped("H2H-like", lambda: [h2h(workload)])
    yield blind


def best_baseline(found: Sequence[Baseline], objective: Objective) -> Baseline:
    """Return the baseline that costs least."""
    return min(found, key=lambda one: one.cost_ms(objective))


def mensa(profile: Profile) -> tuple[int, ...]:
    """Return the Mensa-like mapping: group by group, the fastest unit with the transition into it; greedy."""
    row: list[int] = []
    for g, group in enumerate(profile.groups):

        def cost(u: int, g: int = g, times: tuple[float | None, ...] = group.ms) -> float:
            ms = times[u]
            if ms is None:
                return inf
            return ms + (profile.transition_ms(g - 1, row[-1], u) if row else 0.0)

        row.append(min(range(len(profile.units)), key=cost))
    return tuple(row)


def herald(workload: Workload) -> Rows:
    """Return the Herald-like mapping: lists balance the units' load, without transitions and contention."""
    return _listed(workload, lambda profile, g, u, v: 0.0)


def h2h(workload: Workload) -> Rows:
    """Return the H2H-like mapping: Herald's lists with transitions, then changes of a group's unit while they
    pay without contention."""
    rows = [list(row) for row in _listed(workload, lambda profile, g, u, v: profile.transition_ms(g, u, v))]
    frame = one_frame(workload)
    tasks = tasks_of(frame)
    dispatcher = _core.Dispatcher(tasks=tasks.core, slowdown=NO_CONTENTION.slowdown)
    rank = list(range(len(tasks.steps)))

    def makespan() -> float:
        mapping = [rows[j][g] for j, _, g in tasks.steps]
        _, ends = dispatcher.first_ready(unit=mapping, rank=rank)
        return max(ends)

    least, left = makespan(), REMAPS
    total = sum(map(len, rows))
    stretch = max(1, 2 * total // REMAPS)
    again = True
    while again and left > 0:
        again = False
        for j, g, u in _changes(frame, rows, stretch):
            if left <= 0:
                break
            before = list(rows[j])
            rows[j][g : g + stretch] = [
                u if group.runs_on(u) else on
                for group, on in zip(frame.jobs[j].profile.groups[g:], before[g : g + stretch], strict=False)
            ]
            if rows[j] == before:
                continue
            left -= 1
            value = makespan()
            if value < least * (1 - 1e-9):
                least, again = value, True
            else:
                rows[j] = before
    return tuple(map(tuple, rows))


def blind_optimum(workload: Workload) -> Baseline | None:
    """Return the best schedule for a memory without contention, judged with it.

    None where the exact search does not apply, or was interrupted before it found any. Its order is enforced,
    or left to first come, first served, whichever is better.
    """
    frame = replace(one_frame(workload), model=NO_CONTENTION)
    if not pairable(frame, Objective.LATENCY):
        return None
    try:
        blind = solve_pair(frame, options=PairOptions(prove=False)).schedule
    except UsageError:
        return None
    free = _judged(workload, "contention-blind", blind.units)
    if workload.frames > 1:
        return free
    timeline = simulate(workload, blind)
    return min(Baseline("contention-blind", blind, timeline), free, key=lambda one: one.timeline.makespan_ms)


def _judged(
    workload: Workload, name: str, rows: Sequence[Sequence[int]] | Sequence[Sequence[Sequence[int]]]
) -> Baseline:
    """Dispatch the mapping (of every group, or of every run of one frame) first come, first served."""
    units = []
    for j, row in enumerate(rows):
        runs = [row] if isinstance(row[0], int) else row
        units.append([runs[r % len(runs)] for r in range(workload.runs(j))])
    schedule = first_come(workload, units)  # type: ignore[arg-type]
    return Baseline(name, schedule, simulate(workload, schedule))


def _whole(workload: Workload, where: Sequence[int]) -> Rows:
    return tuple((u,) * len(job.profile.groups) for u, job in zip(where, workload.jobs, strict=True))


def _apart(workload: Workload) -> Iterator[Sequence[int]]:
    """Yield units for whole networks, at least two of them used; all ways if few, else one by load."""
    jobs = [job.profile for job in workload.jobs]
    able = [
        [u for u in range(len(workload.soc.units)) if all(group.runs_on(u) for group in profile.groups)]
        for profile in jobs
    ]
    ways = 1
    for choices in able:
        ways *= len(choices)
    if ways <= MAPPINGS:
        for where in product(*able):
            if len(set(where)) > 1:
                yield where
        return
    load = [0.0] * len(workload.soc.units)
    chosen = [0] * len(jobs)
    for j in sorted(range(len(jobs)), key=lambda j: -min(jobs[j].total_ms(u) or inf for u in able[j])):
        chosen[j] = min(able[j], key=lambda u: load[u] + (jobs[j].total_ms(u) or inf))
        load[chosen[j]] += jobs[j].total_ms(chosen[j]) or 0.0
    if len(set(chosen)) > 1:
        yield chosen


def _listed(workload: Workload, move: Callable[[Profile, int, int, int], float]) -> Rows:
    """Return the list schedule of one run of each: the network that is ready first takes the unit that ends
    it first."""
    profiles = [job.profile for job in workload.jobs]
    ready = [0.0] * len(profiles)
    free = [0.0] * len(workload.soc.units)
    rows: list[list[int]] = [[] for _ in profiles]
    while True:
        open_jobs = [j for j, row in enumerate(rows) if len(row) < len(profiles[j].groups)]
        if not open_jobs:
            return tuple(map(tuple, rows))
        j = min(open_jobs, key=lambda j: (ready[j], j))
        g = len(rows[j])
        ends = []
        for u, ms in enumerate(profiles[j].groups[g].ms):
            if ms is None:
                ends.append(inf)
                continue
            delay = move(profiles[j], g - 1, rows[j][-1], u) if g else 0.0
            ends.append(max(ready[j] + delay, free[u]) + ms)
        unit = min(range(len(ends)), key=ends.__getitem__)
        rows[j].append(unit)
        ready[j] = free[unit] = ends[unit]


def _changes(
    workload: Workload, rows: Sequence[Sequence[int]], stretch: int
) -> Iterator[tuple[int, int, int]]:
    for j, row in enumerate(rows):
        for g in range(0, len(row), stretch):
            for u in range(len(workload.soc.units)):
                yield j, g, u
