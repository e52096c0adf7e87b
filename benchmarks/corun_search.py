"""Co-run's searches, measured. Prints the tables of docs/corun-search.md.

    python benchmarks/corun_search.py [--only pairs many long planning dynamic]
        [--socs xavier-agx orin-agx] [--most 10]

Every pair of Table 5's ten networks (a network with itself too), on each SoC, under each of its contention
sets: the exact search beside the baselines and local search, and the long chain of the paper (985 groups
beside 10). Times are CPU time of one process, median to most; profiles are synthetic but GoogleNet's on
xavier-agx (Table 2). Stops if anything is worse than a baseline, for any objective. `planning` and `dynamic`
are wall time: what a caller waits for the planner, Z3 beside it on the same cases (extra `corun`), and for
the dynamic scheduler. Each takes about a minute.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from random import Random
from statistics import mean, median

from onchip.machines.contention import NO_CONTENTION
from onchip.machines.soc import SoC
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn import published
from onchip.multi_dnn.baselines import baselines, best_baseline
from onchip.multi_dnn.branch import BranchOptions, solve_branching
from onchip.multi_dnn.dp import PairOptions, solve_pair
from onchip.multi_dnn.dynamic import DynamicScheduler
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.polish import polish
from onchip.multi_dnn.profile import Group, Profile
from onchip.multi_dnn.search import SearchOptions, improve, pattern_of
from onchip.multi_dnn.solution import Solution
from onchip.multi_dnn.solve import SolveOptions, solve
from onchip.multi_dnn.synthetic import synthetic_profile
from onchip.multi_dnn.workload import Job, Workload
from onchip.papers.hax_conn.z3_check import solve_with_z3
from onchip.readers import load

LOCAL = (300, 1000, 5000, 20_000)
"""Schedules that local search plays."""
NODES = 2_000_000
"""States that branch and bound looks at."""
ROUNDS = 3
"""Repetitions of what is measured in wall time, of which the median counts."""
Z3_SECONDS = 10.0
"""What Z3 gets for a case."""


SECTIONS = ("pairs", "many", "long", "planning", "dynamic")


def timed(run: Callable[[], Solution]) -> tuple[Solution, float]:
    began = time.process_time()
    return run(), time.process_time() - began


def profiles(soc: SoC, most: int) -> list[Profile]:
    found = []
    for row in published.table(5):
        name = row["network"]
        if name == "googlenet" and soc.name == "xavier-agx":
            found.append(published.googlenet())
        else:
            found.append(synthetic_profile(load(f"zoo:{name}").network, soc, most=most))
    return found


def pairs(soc: SoC, known: Sequence[Profile], contention: str) -> Iterator[Workload]:
    for a, b in combinations_with_replacement(known, 2):
        yield Workload(soc, (Job("1", a), Job("2", b)), soc.model(contention))


def tables(socs: Sequence[SoC], most: int) -> None:
    found: list[tuple[str, list[Figures]]] = []
    for soc in socs:
        known = profiles(soc, most)
        print(f"{soc.name}: {', '.join(f'{p.network} {len(p.groups)}' for p in known)} groups")
        for contention in soc.contention:
            rows = [figures(workload) for workload in pairs(soc, known, contention)]
            found.append((f"{soc.name}, {contention}", rows))
    print(
        "\n| SoC, set | pairs | proved | less than the best baseline: mean, most"
        " | than the GPU alone: mean, most | dominance loses, pairs | delays gain, pairs: most |"
    )
    print("|---|" + "--:|" * 6)
    for name, rows in found:
        cells = [
            name,
            f"{len(rows)}",
            f"{sum(row.proved for row in rows)}",
            spread([row.gain for row in rows]),
            spread([row.over_gpu for row in rows]),
            f"{sum(row.dominance > 1e-9 for row in rows)}",
            f"{sum(row.delays > 1e-9 for row in rows)}: {max(row.delays for row in rows):.2%}",
        ]
        print(f"| {' | '.join(cells)} |")
    tries = " | ".join(f"local search, {n:,} tries" for n in LOCAL)
    print(f"\n| CPU ms | baselines | exact search | its proof | {tries} |")
    print("|---|" + "--:|" * (3 + len(LOCAL)))
    for name, rows in found:
        local = [[row.local[n] for row in rows] for n in range(len(LOCAL))]
        cells = [
            name,
            times([row.baselines for row in rows]),
            times([row.search for row in rows]),
            times([row.proof for row in rows]),
            *(f"{times([s for _, s in one])} (+{spread([v for v, _ in one])})" for one in local),
        ]
        print(f"| {' | '.join(cells)} |")


def spread(shares: Sequence[float]) -> str:
    return f"{mean(shares):.1%}, {max(shares):.1%}"


def times(seconds: Sequence[float]) -> str:
    return f"{median(seconds) * 1e3:.0f} to {max(seconds) * 1e3:.0f}"


@dataclass(frozen=True)
class Figures:
    """Of one pair: shares of the cost, and seconds."""

    proved: bool
    gain: float
    over_gpu: float
    baselines: float
    search: float
    proof: float
    local: tuple[tuple[float, float], ...]
    dominance: float
    delays: float


def figures(workload: Workload) -> Figures:
    began = time.process_time()
    found = baselines(workload)
    base = time.process_time() - began
    rival = best_baseline(found, Objective.LATENCY)
    gpu = next(one for one in found if one.name == "gpu alone").cost_ms(Objective.LATENCY)
    first, quick = timed(lambda: solve_pair(workload, options=PairOptions(prove=False), known=rival.schedule))
    exact, proof = timed(lambda: solve_pair(workload, known=first.schedule))
    starts = [pattern_of(workload, one.schedule) for one in found if one.name != "contention-blind"]
    local = []
    for tries in LOCAL:
        answer, seconds = timed(
            lambda n=tries: improve(workload, Objective.LATENCY, starts, SearchOptions(n))
        )
        local.append((answer.cost_ms / exact.cost_ms - 1, seconds))
    for objective in Objective:
        result = solve(workload, objective, SolveOptions(prove=False))
        assert result.gain >= -1e-9, (workload.jobs, objective)
    best = rival.cost_ms(Objective.LATENCY)
    return Figures(
        exact.claim.proved,
        1 - exact.cost_ms / best,
        1 - exact.cost_ms / gpu,
        base,
        quick,
        proof,
        tuple(local),
        first.cost_ms / exact.cost_ms - 1,
        1 - polish(exact).cost_ms / exact.cost_ms,
    )


def deep_network(count: int = 985) -> Profile:
    """That many layers, each a group of its own, with Inception-ResNet v2's total."""
    rng = Random(0)
    shares = [rng.expovariate(1.0) + 0.1 for _ in range(count)]
    groups = []
    for n, share in enumerate(shares):
        gpu = 15.12 * share / sum(shares)
        dla, gb = gpu * rng.uniform(1.1, 1.4), rng.uniform(0.35, 0.8) * 136.5
        moves = rng.uniform(0.005, 0.08), rng.uniform(0.03, 0.15)
        groups.append(Group(f"{n}", (gpu, dla), (gb, gb * gpu / dla), moves, (0.0, 0.0)))
    short = published.googlenet()
    return replace(short, network=f"{count} layers", groups=tuple(groups), source="random", synthetic=True)


def long_chain(soc: SoC) -> None:
    """The deep network and GoogleNet's 10 groups, either of them first."""
    deep, short = Job("deep", deep_network()), Job("short", published.googlenet())
    columns = (
        "narrow|non-delay|any order|any order, and a try to prove it|rates, and their proof|all of `solve`"
    )
    print(f"\n| 985 + 10 groups, ms and CPU s | {' | '.join(columns.split('|'))} | bound, ms |")
    print("|---|" + "--:|" * 7)
    for contention in soc.contention:
        for jobs in ((deep, short), (short, deep)):
            workload = Workload(soc, jobs, soc.model(contention))
            tries: list[Callable[[Workload], Solution]] = [
                lambda w: solve_pair(w, options=PairOptions(width=30, prove=False)),
                lambda w: solve_pair(w, options=PairOptions(any_order=False, prove=False)),
                lambda w: solve_pair(w, options=PairOptions(prove=False)),
                lambda w: solve_pair(w),
                lambda w: solve_pair(w, Objective.RATES),
                lambda w: solve(w).solution,
            ]
            cells = [f"{contention}, {jobs[0].name} first"]
            for one in tries:
                answer, seconds = timed(lambda w=workload, f=one: f(w))
                proved = ", proved" if answer.claim.proved else ""
                cells.append(f"{answer.cost_ms:.3f} in {seconds:.2f}{proved}")
            print(f"| {' | '.join(cells)} | {answer.lower_bound_ms:.3f} |")


def waited(run: Callable[[], object]) -> float:
    """ms of wall time, the median of a few runs."""
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        run()
        found.append(1000 * (time.perf_counter() - began))
    return median(found)


def planning(socs: Sequence[SoC], most: int) -> None:
    """What a caller waits for, and Z3 on the same cases."""
    print(
        "\n| case | groups | exact search, ms | and its proof, ms | all of `solve`, ms"
        " | Z3, no contention | Z3, true overlaps |"
    )
    print("|---|--:|" + "--:|" * 5)
    soc = load_soc("xavier-agx")
    for size in (1, 2, 3, 4, 6, 10):
        profile = replace(published.googlenet(), groups=published.googlenet().groups[:size])
        jobs = (Job("1", profile), Job("2", profile))
        pair = Workload(soc, jobs, soc.model("light"))
        z3 = [beside_z3(Workload(soc, jobs, NO_CONTENTION)), beside_z3(pair)]
        print(f"| GoogleNet twice, light | {size} + {size} | {waits(pair)} | {' | '.join(z3)} |")
    for soc in socs:
        known = profiles(soc, most)
        for contention in soc.contention:
            rows = [
                (
                    waited(lambda w=w: solve_pair(w, options=PairOptions(prove=False))),
                    waited(lambda w=w: solve_pair(w)),
                    waited(lambda w=w: solve(w)),
                )
                for w in pairs(soc, known, contention)
            ]
            cells = " | ".join(
                f"{median(column):.1f} to {max(column):.1f}" for column in zip(*rows, strict=True)
            )
            print(
                f"| 55 pairs, {soc.name}, {contention}: median to most | to {most} + {most} | {cells} | | |"
            )
    soc = load_soc("xavier-agx")
    for contention in soc.contention:
        jobs = (Job("deep", deep_network()), Job("short", published.googlenet()))
        print(
            f"| random, {contention} | 985 + 10 | {waits(Workload(soc, jobs, soc.model(contention)))} | | |"
        )


def waits(workload: Workload) -> str:
    """Table cells: exact search, with its proof, all of `solve`."""
    found = (
        waited(lambda: solve_pair(workload, options=PairOptions(prove=False))),
        waited(lambda: solve_pair(workload)),
        waited(lambda: solve(workload)),
    )
    return " | ".join(f"{ms:.1f}" for ms in found)


def beside_z3(workload: Workload) -> str:
    """What Z3 does in its time: a proof, which must be ours, or none."""
    answer = solve_with_z3(workload, time_limit=Z3_SECONDS)
    if not answer.proved or answer.makespan_ms is None:
        best = "nothing" if answer.makespan_ms is None else f"{answer.makespan_ms:.3f} ms"
        return f"no proof in {Z3_SECONDS:g} s ({best})"
    assert abs(answer.makespan_ms - solve_pair(workload).cost_ms) < 1e-6
    return f"{answer.seconds:.2f} s"


def dynamic(socs: Sequence[SoC], most: int) -> None:
    """A change to each pair, new to the scheduler: until `change` returns, a close answer, the proof."""
    columns = ("`change` returned", "within 2 % of the last", "proved")
    print("\n| wall ms since a change | " + " | ".join(f"{name}: median to most" for name in columns) + " |")
    print("|---|" + "--:|" * len(columns))
    for soc in socs:
        known = profiles(soc, most)
        for contention in soc.contention:
            sets = list(pairs(soc, known, contention))
            runs = []
            for _ in range(ROUNDS):
                with DynamicScheduler() as scheduler:
                    runs.append([moments(scheduler, w) for w in sets])
            rows = [[median(times) for times in zip(*one, strict=True)] for one in zip(*runs, strict=True)]
            cells = [f"{median(times):.2f} to {max(times):.2f}" for times in zip(*rows, strict=True)]
            print(f"| {soc.name}, {contention} | {' | '.join(cells)} |")


def moments(scheduler: DynamicScheduler, workload: Workload) -> tuple[float, float, float]:
    seen = len(scheduler.history)
    began = time.perf_counter()
    scheduler.change(workload)
    returned = time.perf_counter() - began
    scheduler.settle()
    answers = scheduler.history[seen:]
    last = answers[-1].cost_ms()
    close = next(a.seconds for a in answers if a.cost_ms() <= 1.02 * last)
    proof = next(a.seconds for a in answers if a.proved)
    return 1000 * returned, 1000 * close, 1000 * proof


def many(soc: SoC) -> None:
    """Three and four copies of GoogleNet: local search, then branch and bound."""
    print(
        "\n| GoogleNet | best baseline, ms | local search, ms | CPU ms | branch and bound, ms"
        " | states | CPU s | bound, ms |"
    )
    print("|---|" + "--:|" * 7)
    for copies in (3, 4):
        for contention in soc.contention:
            jobs = tuple(Job(f"{n}", published.googlenet()) for n in range(copies))
            workload = Workload(soc, jobs, soc.model(contention))
            found = baselines(workload)
            rival = best_baseline(found, Objective.LATENCY).cost_ms(Objective.LATENCY)
            starts = [pattern_of(workload, one.schedule) for one in found]
            local, quick = timed(lambda w=workload, p=starts: improve(w, Objective.LATENCY, p))
            deep, slow = timed(
                lambda w=workload, s=local.schedule: solve_branching(
                    w, options=BranchOptions(nodes=NODES), known=s
                )
            )
            print(
                f"| x{copies}, {contention} | {rival:.3f} | {local.cost_ms:.3f} | {quick * 1e3:.0f} |"
                f" {deep.cost_ms:.3f}{'' if deep.claim.proved else ', not proved'} | {NODES:,} | {slow:.1f} |"
                f" {deep.lower_bound_ms:.3f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--socs", nargs="*", default=["xavier-agx", "orin-agx"])
    parser.add_argument("--most", type=int, default=10, help="groups of a network at most")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, one process")
    socs = [load_soc(name) for name in options.socs]
    xavier = load_soc("xavier-agx")
    run: dict[str, Callable[[], None]] = {
        "pairs": lambda: tables(socs, options.most),
        "many": lambda: many(xavier),
        "long": lambda: long_chain(xavier),
        "planning": lambda: planning(socs, options.most),
        "dynamic": lambda: dynamic(socs, options.most),
    }
    for name in options.only:
        run[name]()


if __name__ == "__main__":
    main()
