"""Schedules run for real on two cores of this machine, beside what the simulator predicts.

    python benchmarks/corun_local.py               # docs/corun-local.md has its output; a few minutes
    python benchmarks/corun_local.py 1             # the second pair only

For each pair of networks: both are measured alone (each engine, and from one to the other), then seven
schedules of one frame are run many times: all on one engine, one network on each, the best that the planner
finds, both going back and forth at every group, and one at random. Times are minima over the rounds.
Predictions have no contention in them. Then a thousand frames of random schedules, for the order.
"""

from __future__ import annotations

import os
import sys
from random import Random
from time import perf_counter

from onchip.corun.contention import NO_CONTENTION
from onchip.corun.dispatch import first_come
from onchip.corun.schedule import Schedule
from onchip.corun.soc_file import load_soc
from onchip.corun.solve import solve
from onchip.corun.workload import Job, Workload
from onchip.readers import load
from onchip.run.local import Cut, LocalReport, Runtime, run_schedule
from onchip.run.local.measuring import measure
from onchip.run.local.scheduled import cut_as_profiled

PAIRS = (("googlenet", "googlenet"), ("googlenet", "resnet18"), ("resnet50", "mobilenet_v2"))
MOST_GROUPS = 8
MEASURED, ROUNDS = 25, 30


def main() -> None:
    chosen = [PAIRS[int(number)] for number in sys.argv[1:]] or PAIRS
    print(f"load average at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    for names in chosen:
        pair(names)


def pair(names: tuple[str, str]) -> None:
    """One pair: its profiles, its table, its thousand frames."""
    begin, soc = perf_counter(), load_soc("local")
    sources = {name: load(f"zoo:{name}") for name in names}
    profiles = {name: measure(sources[name], soc, most=MOST_GROUPS, rounds=MEASURED) for name in sources}
    cuts = {name: cut_as_profiled(sources[name], profiles[name]) for name in sources}
    jobs = tuple(Job(f"{name} {n + 1}", profiles[name]) for n, name in enumerate(names))
    workload = Workload(soc, jobs, NO_CONTENTION)
    of_job = {job.name: cuts[name] for job, name in zip(jobs, names, strict=True)}
    print(f"\n{names[0]} beside {names[1]}")
    for name, profile in profiles.items():
        ratios = [b / a for group in profile.groups for a, b in [group.ms] if a and b]
        totals = ", ".join(f"{profile.total_ms(u):.1f} ms on {unit}" for u, unit in enumerate(profile.units))
        out = max(max(group.out_ms) for group in profile.groups)
        print(
            f"{name}: {len(profile.groups)} groups, {totals}; {profile.units[1]} takes {min(ratios):.2f} to"
            f" {max(ratios):.2f} of the time by group; a change costs at most {out:.3f} ms"
        )
    print("\n| schedule | predicted ms | measured ms | error | median ms | outputs | out of order |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with Runtime(soc.unit_names) as runtime:
        reports = []
        for label, schedule in schedules(workload):
            made = run_schedule(workload, schedule, of_job, rounds=ROUNDS, runtime=runtime)
            reports.append(made)
            print(
                f"| {label} | {made.predicted_ms:.2f} | {made.measured_ms:.2f} | {made.error:+.1%} |"
                f" {made.median_ms:.2f} | {made.outputs_compared} | {made.order_violations} |",
                flush=True,
            )
        many = thousand(workload, of_job, runtime)
    print(
        f"\n{many.frames * many.rounds:,} frames of a random schedule: {many.steps * many.rounds:,} groups,"
        f" {many.order_violations} out of order, {many.outputs_compared:,} outputs equal;"
        f" furthest from the whole network {max(n.difference or 0 for r in reports for n in r.networks):.1e};"
        f" {perf_counter() - begin:.0f} s"
    )


def schedules(workload: Workload) -> list[tuple[str, Schedule]]:
    """What is run: label and schedule."""
    counts = [len(job.profile.groups) for job in workload.jobs]
    first, second = workload.soc.unit_names
    rng = Random(0)

    def mapped(*rows: tuple[int, ...]) -> Schedule:
        return first_come(workload, [[row] for row in rows])

    def whole(*units: int) -> Schedule:
        return mapped(*((unit,) * count for unit, count in zip(units, counts, strict=True)))

    def turns(begin: int) -> tuple[int, ...]:
        return tuple((begin + g) % 2 for g in range(counts[begin]))

    return [
        (f"both on {first}", whole(0, 0)),
        (f"both on {second}", whole(1, 1)),
        (f"first on {first}, second on {second}", whole(0, 1)),
        (f"first on {second}, second on {first}", whole(1, 0)),
        ("the planner's", solve(workload).solution.schedule),
        ("both change at every group", mapped(turns(0), turns(1))),
        ("random", mapped(*(tuple(rng.randrange(2) for _ in range(count)) for count in counts))),
    ]


def thousand(workload: Workload, cuts: dict[str, Cut], runtime: Runtime) -> LocalReport:
    """A thousand frames, a stream of a hundred at a time, every group on a random unit."""
    stream = Workload(workload.soc, workload.jobs, workload.model, frames=100)
    rng = Random(1)
    rows = [[[rng.randrange(2) for _ in job.profile.groups] for _ in range(100)] for job in workload.jobs]
    return run_schedule(stream, first_come(stream, rows), cuts, rounds=10, runtime=runtime)


if __name__ == "__main__":
    main()
