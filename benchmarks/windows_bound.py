"""How the windows' lower bound grows with the windows, and with it the time: figures of docs/scale.md.

    python benchmarks/windows_bound.py [--network nas] [--operators 10000] [--windows 24,48,96,192]

At MR, windows cut from the network's own order. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import time

from generators import GENERATORS

from onchip.planners.limits import Limits
from onchip.planners.placement import Problem
from onchip.planners.placement.cuts import topological
from onchip.planners.placement.partition import windows_bound


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--network", default="nas", choices=GENERATORS)
    parser.add_argument("--operators", type=int, default=10_000)
    parser.add_argument("--windows", default="24,48,96,192")
    args = parser.parse_args()
    problem = Problem.of(GENERATORS[args.network](args.operators))
    order, budget = topological(problem), problem.minimum_budget
    print("| operators in a window | bound | different windows | CPU s |")
    print("|--:|--:|--:|--:|")
    for every in map(int, args.windows.split(",")):
        known: dict[Problem, int] = {}
        began = time.process_time()
        bound = windows_bound(problem, order, budget, every, Limits(), known)
        print(f"| {every} | {bound:,} | {len(known)} | {time.process_time() - began:.2f} |", flush=True)


if __name__ == "__main__":
    main()
