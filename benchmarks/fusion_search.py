"""How much the exact fuser looks at, and how long it takes, beside Table 5 of the Optimus paper.

    .venv/bin/python benchmarks/fusion_search.py [--repeat N] [NAME ...]

Networks are those of `fusion_graphs.py`, from the zoo, at batch 4 on chip `optimus` (128 KB, int16).
`prepare` builds the fuser's tables from the network, `search` is everything else: candidates, costs and the
partition. Both in one thread, best of N, in CPU time, so that others on the machine count less. `on line`
plans with the paper's rules (section 6) in a fuser that is prepared already. The paper's own times are of its
C++ program on an i7-6700.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onchip.machines.chip import load_chip
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.online import OnlineFuser
from onchip.planners.fusion.search import Fuser
from onchip.planners.limits import Limits

sys.path.append(str(Path(__file__).parent))
from fusion_graphs import NAMES, papers_network

BUDGET = 128 * 1024

OPTIONS = {
    "paper": FusionOptions("shared", "paper", "paper", "all", "fallback", False),
    "default": FusionOptions(),
}

PAPER = {  # sets, off-line bottom-up ms, on-line bottom-up ms (Table 5)
    "vgg16": ("171", "0.48", "0.11"),
    "squeezenet1_0": ("1057", "2.19", "0.24"),
    "googlenet": ("50436", "27.89", "0.64"),
    "resnet50": ("3510", "2.73", "0.29"),
    "resnet152": ("24250", "5.01", "0.23"),
    "resnet1202": ("-", "383.95", "5.26"),
    "nasnetalarge": ("2.9e7", "8713.16", "274.10"),
}


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    done = work()
    return time.process_time() - began, done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*NAMES, "resnet1202"])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--time-limit", type=float, default=60)
    args = parser.parse_args()
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    head = ("network", "options", "ops", "sets", "paper", "candidates", "evaluated", "states", "groups")
    times = ("Mwords", "proved", "prepare ms", "search ms", "paper ms", "on line ms", "paper ms")
    print(" | ".join(head + times))
    for name in args.names:
        network = papers_network(name, 4)
        sets, paper, paper_online = PAPER.get(name, ("-", "-", "-"))
        for label, options in OPTIONS.items():
            problem = FusionProblem.of(network, load_chip("optimus"), options, BUDGET)
            prepared, fuser = seconds(lambda: Fuser(problem))  # noqa: B023
            search, found = seconds(lambda: fuser.best(limits=Limits(args.time_limit)))  # noqa: B023
            online = OnlineFuser.of(problem)
            planned = seconds(lambda: online.plan(BUDGET))[0]  # noqa: B023
            for _ in range(args.repeat - 1 if found.complete else 0):
                fresh = Fuser(problem)
                search = min(search, seconds(fresh.best)[0])
                planned = min(planned, seconds(lambda: online.plan(BUDGET))[0])  # noqa: B023
            counted = fuser.count_convex()
            row = [name, label, len(network.operators), counted or "> 2^63", sets, found.figures.candidates]
            row += [found.figures.evaluated, found.figures.states, len(found.groups)]
            row += [f"{found.dram_bytes / 2e6:.2f}", found.complete, f"{1e3 * prepared:.2f}"]
            row += [f"{1e3 * search:.2f}", paper, f"{1e3 * planned:.2f}", paper_online]
            print(" | ".join(map(str, row)), flush=True)


if __name__ == "__main__":
    main()
