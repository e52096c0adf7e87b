"""Judged schedules for tests of what shows and exports them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from multi_dnn.workloads import alone, random_schedule, random_workload
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn.judged import Judged
from onchip.multi_dnn.published import googlenet
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.schedule_json import Claim, Rival
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.workload import Job, Workload


def random_judged(rng: Random, in_flight: int = 0) -> Judged:
    """Any schedule of any small workload, with inserted waits."""
    workload = replace(random_workload(rng), in_flight=in_flight)
    schedule = random_schedule(rng, workload, idle=True)
    return Judged(schedule, simulate(workload, schedule), Claim("best found", contention_set="random"))


def crossing(first: str = "googlenet", second: str = "googlenet #2") -> Judged:
    """GoogleNet twice on Xavier: the first begins on the DLA, the second ends there."""
    soc = load_soc("xavier-agx")
    jobs = (Job(first, googlenet()), Job(second, replace(googlenet(), network=second)))
    workload = Workload(soc, jobs, soc.model("light"))
    units = (((1, 1, *(0,) * 8),), ((*(0,) * 5, *(1,) * 5),))
    order = (
        (*(Step(1, 0, g) for g in range(5)), *(Step(0, 0, g) for g in range(2, 10))),
        (*(Step(0, 0, g) for g in range(2)), *(Step(1, 0, g) for g in range(5, 10))),
    )
    schedule = Schedule(units, order)
    line = simulate(workload, schedule)
    rivals = (
        rival(workload, "gpu alone", alone(workload, [(0,) * 10, (0,) * 10])),
        rival(workload, "one on each", alone(workload, [(0,) * 10, (1,) * 10])),
    )
    claim = Claim("best found", "makespan_ms", 3.2, 0.5, rivals, "light")
    return Judged(
        schedule, line, claim, others=tuple((r.name, simulate(workload, r.schedule)) for r in rivals)
    )


def rival(workload: Workload, name: str, schedule: Schedule, objective: str = "makespan_ms") -> Rival:
    """A schedule to be set beside another, with its true value."""
    value = simulate(workload, schedule).figure(objective)
    assert value is not None
    return Rival(name, schedule, value)
