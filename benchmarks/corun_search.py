"""Co-run's searches, measured. Prints the tables of docs/corun-search.md.

    python benchmarks/corun_search.py [--socs xavier-agx orin-agx] [--most 10]

Every pair of Table 5's ten networks (a network with itself too), on each SoC, under each of its contention sets:
the exact search beside the baselines, narrow and local search, and the long chain of the paper (985 groups beside
10). Times are CPU time of one process; profiles are synthetic but GoogleNet's on xavier-agx (Table 2).
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from random import Random
from statistics import mean, median

from onchip.corun import published
from onchip.corun.baselines import baselines, best_baseline
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


def table(soc: SoC, most: int) -> None:
    known = profiles(soc, most)
    print(f"\n{soc.name}: {', '.join(f'{p.network} {len(p.groups)}' for p in known)} groups")
    print(
        "set       pairs  proved  gain over best baseline: mean most  over gpu alone: mean most | ms: baselines"
        " search, median most  proof, median most | local search above exact, mean most %, and ms:"
        f" {' '.join(map(str, LOCAL))} tries | dominance above proof, delays below: pairs, most %"
    )
    for contention in soc.contention:
        rows = [figures(workload) for workload in pairs(soc, known, contention)]
        columns = list(zip(*rows, strict=True))
        proved, gain, alone, base, quick, proof, local, dominance, delays = columns
        above = list(zip(*local, strict=True))
        print(
            f"{contention:8} {len(rows):5} {sum(proved):6}"
            f"   {mean(gain):6.1%} {max(gain):6.1%} (least {min(gain):.2%})"
            f"  {mean(alone):6.1%} {max(alone):6.1%}"
            f" | {median(base) * 1e3:6.1f} {median(quick) * 1e3:6.1f} {max(quick) * 1e3:6.1f}"
            f" {median(proof) * 1e3:6.1f} {max(proof) * 1e3:6.1f} | "
            + ", ".join(
                f"{mean(v for v, _ in column):.2%} {max(v for v, _ in column):.2%}"
                f" {median(s for _, s in column) * 1e3:.0f}"
                for column in above
            )
            + f" | {sum(v > 1e-9 for v in dominance)} {max(dominance):.3%}"
            f", {sum(v > 1e-9 for v in delays)} {max(delays):.3%}",
            flush=True,
        )


def figures(workload: Workload) -> tuple[object, ...]:
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
    return (
        exact.claim.proved,
        1 - exact.cost_ms / best,
        1 - exact.cost_ms / gpu,
        base,
        quick,
        proof,
        local,
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
    print("\n985 + 10 groups on xavier-agx (random profile with Inception-ResNet v2's totals)")
    for contention in soc.contention:
        workload = Workload(soc, (Job("deep", deep), Job("short", short)), soc.model(contention))
        for name, options in (
            ("narrow", PairOptions(width=30, prove=False)),
            ("non-delay", PairOptions(any_order=False, prove=False)),
            ("any order", PairOptions(prove=False)),
        ):
            answer, seconds = timed(lambda w=workload, o=options: solve_pair(w, options=o))
            figures = f"{answer.cost_ms:8.4f} ms, bound {answer.lower_bound_ms:8.4f}"
            print(f"{contention:8} {name:10} {figures}, {seconds:6.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--socs", nargs="*", default=["xavier-agx", "orin-agx"])
    parser.add_argument("--most", type=int, default=10, help="groups of a network at most")
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, one process")
    for name in options.socs:
        table(load_soc(name), options.most)
    long_chain(load_soc("xavier-agx"))


if __name__ == "__main__":
    main()
