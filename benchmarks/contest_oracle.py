"""Does the contest's search agree with brute force on small problems? Exits 1 if a bound or a claim is wrong.

    python benchmarks/contest_oracle.py [--kind tree|graph] [--law ruled] [--count 200] [--first-seed 0]

Brute force looks at every schedule: connected sets of operators, recomputed or not, with any outputs, any
tile, k and order of at most four tiles. The bound must not be above its optimum, and what is said to be
optimal must be equal to it. Where the search is above (its space has subgraphs of one output, line by line)
the seed is printed and counted.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from onchip.base.errors import NegativeAnswer
from onchip.contest import LAWS, SolveOptions, solve

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from oracles.contest import graph, optimum, tree

KINDS = {"tree": tree, "graph": graph}
SAME = 1 + 1e-9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, default="tree")
    parser.add_argument("--law", choices=LAWS, default="ruled")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    seen: Counter[str] = Counter()
    for seed in range(options.first_seed, options.first_seed + options.count):
        given = KINDS[options.kind](seed)
        least = optimum(given, LAWS[options.law])
        try:
            found = solve(given, SolveOptions(law=options.law))
        except NegativeAnswer:
            seen["nothing fits"] += 1
            continue
        seen["problems"] += 1
        if found.bound > least * SAME or found.latency * SAME < least:
            sys.exit(f"seed {seed}: {found.latency} with bound {found.bound}, by brute force {least}")
        if found.optimal and found.latency > least * SAME:
            sys.exit(f"seed {seed}: {found.latency} is said to be optimal, by brute force {least}")
        if found.latency > least * SAME:
            print(f"seed {seed}: {found.latency:,.6g}, by brute force {least:,.6g}", flush=True)
        seen["search equal"] += found.latency <= least * SAME
        seen["bound equal"] += found.bound * SAME >= least
    print(", ".join(f"{name} {count}" for name, count in seen.items()))


if __name__ == "__main__":
    main()
