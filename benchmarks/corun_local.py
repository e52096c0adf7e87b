"""Schedules run for real on two cores of this machine, beside what the simulator predicts.

    python benchmarks/corun_local.py measure 0     # a pair of networks, some two minutes; 0, 1 or 2
    python benchmarks/corun_local.py frames 0      # a thousand frames of it, every output compared
    python benchmarks/corun_local.py table         # docs/corun-local.md has its output

For each pair of networks: both are measured alone (each engine, and from one to the other), then seven
schedules of one frame are run: all on one engine, one network on each, the best that the planner finds, both
going back and forth at every group, and one at random. Measuring and running take turns, so that all of it
sees the same machine, until the time is up; every time is the least of its rounds. Predictions have no
contention in them; beside each stands how much longer the groups themselves took than alone. Results are
kept in build/corun_local.json (`--results FILE`), a pair at a time.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

from onchip.base.files import write_atomically
from onchip.machines.contention import NO_CONTENTION
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn.dispatch import first_come
from onchip.multi_dnn.local import Runtime, run_schedule
from onchip.multi_dnn.local.execute import INPUT_SETS
from onchip.multi_dnn.local.measuring import Measuring
from onchip.multi_dnn.local.order import violations
from onchip.multi_dnn.local.outputs import Recorder, rows_of
from onchip.multi_dnn.local.runtime import PATIENCE, Round
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.schedule import Schedule
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.solve import solve
from onchip.multi_dnn.workload import Job, Workload
from onchip.readers import load

PAIRS = (("googlenet", "googlenet"), ("googlenet", "resnet18"), ("resnet50", "mobilenet_v2"))
MOST_GROUPS = 8
FIRST, TURN = 0.3, 4
"""The part of the time in which the networks are measured before there is a plan, and rounds of a turn."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("measure", "frames", "table"))
    parser.add_argument("pair", nargs="?", type=int, default=0, choices=range(len(PAIRS)))
    parser.add_argument("--seconds", type=float, default=120.0, help="of measuring at most")
    parser.add_argument("--results", type=Path, default=Path("build/corun_local.json"))
    given = parser.parse_args()
    if given.what == "table":
        print_table(kept(given.results))
        return
    names = PAIRS[given.pair]
    found = measured(names, given.seconds) if given.what == "measure" else thousand(names)
    results = kept(given.results)
    results.setdefault(" beside ".join(names), {})[given.what] = found
    given.results.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(given.results, json.dumps(results, indent=1))
    print(json.dumps(found, indent=1))


def kept(results: Path) -> dict[str, Any]:
    """What earlier calls found, by pair."""
    found: dict[str, Any] = json.loads(results.read_text()) if results.exists() else {}
    return found


def measured(names: tuple[str, str], seconds: float) -> dict[str, Any]:
    """One pair: its profiles, and each schedule's times beside its prediction."""
    begin, soc = perf_counter(), load_soc("local")
    with Runtime(soc.unit_names) as runtime:
        measuring = {name: Measuring(load(f"zoo:{name}"), soc, runtime, most=MOST_GROUPS) for name in names}
        alone = 0
        while not alone or perf_counter() - begin < FIRST * seconds:  # once at least, on a busy machine too
            alone += 1
            for one in measuring.values():
                one.measure(TURN)
        cuts = [measuring[name].cut for name in names]
        inputs = {cut: [cut.draw_inputs(n) for n in range(INPUT_SETS)] for cut in cuts}

        def workload() -> Workload:
            profiles = {name: one.profile() for name, one in measuring.items()}
            jobs = [Job(f"{name} {n + 1}", profiles[name]) for n, name in enumerate(names)]
            return Workload(soc, tuple(jobs), NO_CONTENTION)

        chosen = schedules(workload())
        rounds: dict[str, list[Round]] = {label: [] for label in chosen}
        recorder, wrong, turns = Recorder(), 0, 0
        others = Others([os.getpid(), *runtime.pids])
        while not turns or perf_counter() - begin < seconds:
            turns += 1
            for one in measuring.values():
                one.measure(TURN)
            present = workload()
            for label, schedule in chosen.items():
                rows = rows_of(schedule, runtime.engines)

                def seen(job: int, run: int, which: int, outputs: Any, rows: Any = rows) -> None:
                    recorder.record(cuts[job], rows[job, run], which, outputs, names[job])

                found = runtime.run(present, schedule, cuts, inputs, rounds=TURN, seen=seen)
                wrong += sum(
                    len(violations(present, schedule, found.times(n))) for n in range(len(found.rounds))
                )
                rounds[label] += found.rounds
        present = workload()
        busy = others.share()
    compared = recorder.compare(inputs, PATIENCE)
    return {
        "profiles": {name: facts(one.profile()) for name, one in measuring.items()},
        "schedules": {
            label: {
                **times(rounds[label], simulate(present, schedule).makespan_ms),
                "slower": slower(rounds[label], schedule, [measuring[name] for name in names]),
            }
            for label, schedule in chosen.items()
        },
        "outputs": compared,
        "violations": wrong,
        "rounds": turns * TURN,
        "others": busy,
        "seconds": perf_counter() - begin,
    }


def times(rounds: list[Round], predicted: float) -> dict[str, float]:
    """Least and median makespan in ms."""
    spans = [one.makespan_ms for one in rounds]
    return {
        "predicted_ms": predicted,
        "measured_ms": min(spans),
        "error": min(spans) / predicted - 1,
        "median_ms": median(spans),
        "undisturbed": sum(not any(one.preempted) for one in rounds),
    }


def slower(rounds: list[Round], schedule: Schedule, networks: list[Measuring]) -> float:
    """How much longer the groups took than alone, all of them together, by the least time of each."""
    beside = alone = 0.0
    for unit, order in enumerate(schedule.order):
        for n, (job, _, group) in enumerate(order):
            beside += min(float(one.times[unit][n, 1] - one.times[unit][n, 0]) / 1e6 for one in rounds)
            by_itself = networks[job].alone(networks[job].soc.unit_names[unit])
            alone += min(one[group][1] - one[group][0] for one in by_itself)
    return beside / alone - 1


def facts(profile: Profile) -> dict[str, Any]:
    """What a profile is like."""
    ratios = [b / a for group in profile.groups for a, b in [group.ms] if a and b]
    return {
        "groups": len(profile.groups),
        "total_ms": [profile.total_ms(unit) for unit in range(len(profile.units))],
        "ratio": [min(ratios), max(ratios)],
        "change_ms": max(max(group.out_ms) for group in profile.groups),
    }


class Others:
    """What the machine's processors did meanwhile for anybody else, and for other machines."""

    def __init__(self, ours: list[int]) -> None:
        self._ours = ours
        self._begin = self._used(), perf_counter(), _cpu_seconds(ours)

    def share(self) -> float:
        """Of the processors' time since it was made, that which is not of the processes `ours`."""
        used, at, mine = self._begin
        cores = os.cpu_count() or 1
        spent = self._used() - used - (_cpu_seconds(self._ours) - mine)
        return max(spent, 0.0) / (cores * (perf_counter() - at))

    @staticmethod
    def _used() -> float:
        """Seconds of all processors that were neither idle nor waiting for a disk."""
        figures = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
        return (sum(figures[:8]) - figures[3] - figures[4]) / os.sysconf("SC_CLK_TCK")


def _cpu_seconds(pids: list[int]) -> float:
    rows = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(row[11]) + int(row[12]) for row in rows) / os.sysconf("SC_CLK_TCK")


def schedules(workload: Workload) -> dict[str, Schedule]:
    """What is run, by label."""
    counts = [len(job.profile.groups) for job in workload.jobs]
    first, second = workload.soc.unit_names
    rng = Random(0)

    def mapped(*rows: tuple[int, ...]) -> Schedule:
        return first_come(workload, [[row] for row in rows])

    def whole(*units: int) -> Schedule:
        return mapped(*((unit,) * count for unit, count in zip(units, counts, strict=True)))

    def turns(begin: int) -> tuple[int, ...]:
        return tuple((begin + g) % 2 for g in range(counts[begin]))

    return {
        f"both on {first}": whole(0, 0),
        f"both on {second}": whole(1, 1),
        f"first on {first}, second on {second}": whole(0, 1),
        f"first on {second}, second on {first}": whole(1, 0),
        "the planner's": solve(workload).solution.schedule,
        "both change at every group": mapped(turns(0), turns(1)),
        "random": mapped(*(tuple(rng.randrange(2) for _ in range(count)) for count in counts)),
    }


def thousand(names: tuple[str, str]) -> dict[str, Any]:
    """A thousand frames, a stream of a hundred at a time, every group on a random unit."""
    begin, soc = perf_counter(), load_soc("local")
    with Runtime(soc.unit_names) as runtime:
        measuring = {name: Measuring(load(f"zoo:{name}"), soc, runtime, most=MOST_GROUPS) for name in names}
        for one in measuring.values():
            one.measure(1)
        jobs = tuple(Job(f"{name} {n + 1}", measuring[name].profile()) for n, name in enumerate(names))
        cuts = {job.name: measuring[name].cut for job, name in zip(jobs, names, strict=True)}
        stream = Workload(soc, jobs, NO_CONTENTION, frames=100)
        rng = Random(1)
        rows = [[rng.choices((0, 1), k=len(job.profile.groups)) for _ in range(4)] for job in jobs]
        units = [[rng.choice(of_job) for _ in range(100)] for of_job in rows]
        made = run_schedule(stream, first_come(stream, units), cuts, rounds=10, runtime=runtime)
    return {
        "frames": made.frames * made.rounds,
        "groups": made.steps * made.rounds,
        "violations": made.order_violations,
        "outputs": made.outputs_compared,
        "difference": max(network.difference or 0.0 for network in made.networks),
        "seconds": perf_counter() - begin,
    }


def print_table(results: dict[str, Any]) -> None:
    """The tables of the documentation, from what was kept."""
    print("| pair | schedule | predicted ms | measured ms | error | median ms | groups slower by |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for pair, found in results.items():
        for label, row in found.get("measure", {}).get("schedules", {}).items():
            print(
                f"| {pair.replace(' beside ', ', ')} | {label} | {row['predicted_ms']:.2f} |"
                f" {row['measured_ms']:.2f} | {row['error']:+.1%} | {row['median_ms']:.2f} |"
                f" {row['slower']:+.1%} |"
            )
    tell: list[Callable[[str, dict[str, Any]], None]] = [tell_profiles, tell_frames]
    for one in tell:
        print()
        for pair, found in results.items():
            one(pair, found)


def tell_profiles(pair: str, found: dict[str, Any]) -> None:
    """What the networks are like, and how the measuring went."""
    made = found.get("measure")
    if not made:
        return
    for name, profile in made["profiles"].items():
        ratio, total = profile["ratio"], profile["total_ms"]
        print(
            f"{name}: {profile['groups']} groups, {total[0]:.1f} and {total[1]:.1f} ms; the second engine"
            f" takes {ratio[0]:.2f} to {ratio[1]:.2f} of the first's time by group; a change costs at most"
            f" {profile['change_ms']:.3f} ms"
        )
    print(
        f"{pair}: {made['rounds']} rounds; others had {made['others']:.0%} of the two cores;"
        f" {made['outputs']:,} outputs equal, {made['violations']} steps out of order;"
        f" {made['seconds']:.0f} s"
    )


def tell_frames(pair: str, found: dict[str, Any]) -> None:
    """The thousand frames."""
    made = found.get("frames")
    if made:
        print(
            f"{pair}: {made['frames']:,} frames of {made['groups']:,} groups,"
            f" {made['violations']} out of order; {made['outputs']:,} outputs equal, within"
            f" {made['difference']:.0e} of the whole network"
        )


if __name__ == "__main__":
    main()
