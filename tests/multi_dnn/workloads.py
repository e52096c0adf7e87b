"""Small workloads and schedules for tests: by hand and at random."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from onchip.machines.contention import Contention, ContentionModel, ThreeRegions
from onchip.machines.soc import SoC, Unit
from onchip.multi_dnn.profile import Group, Profile
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.workload import Job, Workload


class Fixed:
    """Whoever shares the memory is slowed down by a fixed factor, per unit."""

    def __init__(self, *factors: float) -> None:
        self.factors = factors

    def slowdown(self, unit: int, requested: float, external: float) -> float:
        return self.factors[unit] if external else 1.0


def soc_of(units: int = 2) -> SoC:
    """Units a, b, c, ... and nothing else."""
    return SoC("small", tuple(Unit("abcdefgh"[n]) for n in range(units)), 100.0, 100.0)


def profile_of(
    name: str, rows: Sequence[Sequence[float | None]], *, transition: float = 0.0, gb: float = 10.0
) -> Profile:
    """Groups with a time on each unit, one bandwidth everywhere, and one cost of leaving any unit."""
    units = len(rows[0])
    groups = tuple(
        Group(f"g{n}", tuple(row), (gb,) * units, (transition,) * units, (0.0,) * units)
        for n, row in enumerate(rows)
    )
    return Profile(name, "small", soc_of(units).unit_names, groups)


def workload_of(model: ContentionModel, *jobs: Job, frames: int = 1, pipelined: bool = True) -> Workload:
    return Workload(soc_of(len(jobs[0].profile.units)), jobs, model, frames, pipelined)


def random_workload(rng: Random, *, least: float = 0.2) -> Workload:
    """One to three jobs of up to four groups on two or three units, some serial, some for several frames."""
    units = rng.choice((2, 2, 3))
    jobs = []
    for n in range(rng.choice((1, 2, 2, 3))):
        groups = tuple(
            Group(
                f"g{g}",
                _somewhere(rng, units, least),
                tuple(rng.uniform(0, 60) for _ in range(units)),
                tuple(rng.choice((0.0, rng.uniform(0.05, 1))) for _ in range(units)),
                tuple(rng.choice((0.0, rng.uniform(0.05, 1))) for _ in range(units)),
            )
            for g in range(rng.randint(1, 4))
        )
        profile = Profile(f"n{n}", "small", soc_of(units).unit_names, groups)
        after = tuple(f"n{m}" for m in range(n) if rng.random() < 0.25)
        jobs.append(Job(f"n{n}", profile, rng.choice((1, 1, 2)), after))
    constants = tuple(
        Contention(
            rng.uniform(0, 30), rng.uniform(30, 60), rng.uniform(0, 8), rng.uniform(20, 90),
            rng.uniform(20, 60), rng.uniform(0, 1.2),
        )
        for _ in range(units)
    )  # fmt: skip
    model = ThreeRegions(constants, 100.0)
    frames, pipelined = rng.choice((1, 1, 2, 3)), rng.random() < 0.7
    return Workload(soc_of(units), tuple(jobs), model, frames, pipelined, rng.choice((0, 0, 1, 2)))


def _somewhere(rng: Random, units: int, least: float) -> tuple[float | None, ...]:
    row: list[float | None] = [rng.uniform(least, 3) for _ in range(units)]
    if rng.random() < 0.2:
        row[rng.randrange(units)] = None
    return tuple(row)


def random_schedule(rng: Random, workload: Workload, *, idle: bool = False) -> Schedule:
    """Random units, and orders cut from one random legal sequence of all steps: none waits forever."""
    units = tuple(
        tuple(
            tuple(
                rng.choice([u for u in range(len(workload.soc.units)) if group.runs_on(u)])
                for group in job.profile.groups
            )
            for _ in range(workload.runs(j))
        )
        for j, job in enumerate(workload.jobs)
    )
    order: list[list[Step]] = [[] for _ in workload.soc.units]
    done, inside = [0] * len(workload.jobs), [0] * len(workload.jobs)
    steps: list[Step] = []
    while True:
        ready = [
            j for j in range(len(done)) if done[j] < workload.runs(j) and _open(workload, j, done, inside)
        ]
        if not ready:
            break
        job = rng.choice(ready)
        step = Step(job, done[job], inside[job])
        order[units[job][done[job]][inside[job]]].append(step)
        steps.append(step)
        inside[job] += 1
        if inside[job] == len(workload.jobs[job].profile.groups):
            inside[job], done[job] = 0, done[job] + 1
    waits = tuple((step, rng.uniform(0, 0.5)) for step in steps if idle and rng.random() < 0.2)
    return Schedule(units, tuple(map(tuple, order)), waits)


def _open(workload: Workload, job: int, done: Sequence[int], inside: Sequence[int]) -> bool:
    frame, iteration = divmod(done[job], workload.jobs[job].iterations)
    if inside[job] or iteration:
        return True
    if any(done[p] < (frame + 1) * workload.jobs[p].iterations for p in workload.waits_for[job]):
        return False
    most = workload.in_flight if workload.pipelined else 1
    return not most or all(
        done[j] >= (frame - most + 1) * other.iterations for j, other in enumerate(workload.jobs)
    )


def alone(workload: Workload, units: Sequence[Sequence[int]]) -> Schedule:
    """Single runs mapped as given, each unit taking its groups job after job."""
    order: list[list[Step]] = [[] for _ in workload.soc.units]
    for j, row in enumerate(units):
        for g, unit in enumerate(row):
            order[unit].append(Step(j, 0, g))
    return Schedule(tuple((tuple(row),) for row in units), tuple(map(tuple, order)))
