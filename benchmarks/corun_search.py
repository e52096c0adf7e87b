"""Co-run's searches, measured. Prints the tables of docs/corun-search.md.

    python benchmarks/corun_search.py [--socs xavier-agx orin-agx] [--most 10]

Every pair of Table 5's ten networks (a network with itself too), on each SoC, under each of its contention
sets: the exact search beside the baselines and local search, and the long chain of the paper (985 groups
beside 10). Times are CPU time of one process, median to most; profiles are synthetic but GoogleNet's on
xavier-agx (Table 2). Stops if anything is worse than a baseline, for any objective.
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

from onchip.corun import published
from onchip.corun.baselines import baselines, best_baseline
from onchip.corun.branch import BranchOptions, solve_branching
from onchip.corun.dp import PairOptions, solve_pair
from onchip.corun.polish import polish
from onchip.corun.profile import Group, Profile
from onchip.corun.search import SearchOptions, improve, pattern_of
from onchip.corun.soc import SoC
from onchip.corun.soc_file import load_soc
from onchip.corun.solution import OBJECTIVES, Solution
from onchip.corun.solve import SolveOptions, solve
from onchip.corun.synthetic import synthetic_profile
from onchip.corun.workload import Job, Workload
from onchip.readers import load

LOCAL = (300, 1000, 5000, 20_000)
"""Schedules that local search plays."""
NODES = 2_000_000
"""States that branch and bound looks at."""


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
    rival = best_baseline(found, "latency")
    gpu = next(one for one in found if one.name == "gpu alone").cost_ms("latency")
    first, quick = timed(lambda: solve_pair(workload, options=PairOptions(prove=False), known=rival.schedule))
    exact, proof = timed(lambda: solve_pair(workload, known=first.schedule))
    starts = [pattern_of(workload, one.schedule) for one in found if one.name != "contention-blind"]
    local = []
    for tries in LOCAL:
        answer, seconds = timed(lambda n=tries: improve(workload, "latency", starts, SearchOptions(n)))
        local.append((answer.cost_ms / exact.cost_ms - 1, seconds))
    for objective in OBJECTIVES:
        result = solve(workload, objective, SolveOptions(prove=False))
        assert result.gain >= -1e-9, (workload.jobs, objective)
    best = rival.cost_ms("latency")
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


def long_chain(soc: SoC) -> None:
    """985 layers, each a group of its own, with Inception-ResNet v2's total, beside GoogleNet's 10 groups."""
    rng = Random(0)
    short = published.googlenet()
    shares = [rng.expovariate(1.0) + 0.1 for _ in range(985)]
    groups = []
    for n, share in enumerate(shares):
        gpu = 15.12 * share / sum(shares)
        dla, gb = gpu * rng.uniform(1.1, 1.4), rng.uniform(0.35, 0.8) * 136.5
        moves = rng.uniform(0.005, 0.08), rng.uniform(0.03, 0.15)
        groups.append(Group(f"{n}", (gpu, dla), (gb, gb * gpu / dla), moves, (0.0, 0.0)))
    deep = replace(short, network="985 layers", groups=tuple(groups), source="random", synthetic=True)
    print(
        "\n| 985 + 10 groups | narrow, ms | CPU s | non-delay, ms | CPU s | any order, ms | CPU s"
        " | bound, ms |"
    )
    print("|---|" + "--:|" * 7)
    for contention in soc.contention:
        workload = Workload(soc, (Job("deep", deep), Job("short", short)), soc.model(contention))
        cells = [contention]
        for options in (
            PairOptions(width=30, prove=False),
            PairOptions(any_order=False, prove=False),
            PairOptions(prove=False),
        ):
            answer, seconds = timed(lambda w=workload, o=options: solve_pair(w, options=o))
            cells += [f"{answer.cost_ms:.3f}", f"{seconds:.2f}"]
        print(f"| {' | '.join(cells)} | {answer.lower_bound_ms:.3f} |")


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
            rival = best_baseline(found, "latency").cost_ms("latency")
            starts = [pattern_of(workload, one.schedule) for one in found]
            local, quick = timed(lambda w=workload, p=starts: improve(w, "latency", p))
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
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, one process")
    tables([load_soc(name) for name in options.socs], options.most)
    many(load_soc("xavier-agx"))
    long_chain(load_soc("xavier-agx"))


if __name__ == "__main__":
    main()
