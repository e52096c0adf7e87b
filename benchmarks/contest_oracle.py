"""Does the contest's search agree with brute force on small problems? Exits 1 if a bound or a claim is wrong.

    python benchmarks/contest_oracle.py [--trees 200] [--graphs 200] [--law ruled] [--first-seed 0]
                                        [--page docs/contest.md]

Trees have two to five operators; graphs four to six, and some tensor that several of them read. Brute force
looks at every schedule: connected sets of operators, recomputed or not, with any outputs, any tile, k and
order of at most four tiles (more line by line). The bound must not be above its optimum, and what is said to
be optimal must be equal to it. Where the search is above, its seed follows the table.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from page_marks import write

from onchip.base.errors import NegativeAnswer
from onchip.contest import LAWS, SolveOptions, solve

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from oracles.contest import graph, optimum, tree

KINDS = {"tree": tree, "graph": graph}
SAME = 1 + 1e-9


def compared(kind: str, seeds: range, law: str, above: list[str]) -> Iterator[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        given = KINDS[kind](seed)
        try:
            found = solve(given, SolveOptions(law=law))
        except NegativeAnswer:
            seen["nothing fits"] += 1
            continue
        least = optimum(given, LAWS[law], found.latency * SAME)
        if found.bound > least * SAME or found.latency * SAME < least:
            sys.exit(f"{kind} {seed}: {found.latency} with bound {found.bound}, by brute force {least}")
        if found.optimal and found.latency > least * SAME:
            sys.exit(f"{kind} {seed}: {found.latency} is said to be optimal, by brute force {least}")
        if found.latency > least * SAME:
            above.append(f"{kind} {seed}: {found.latency:,.6g}, by brute force {least:,.6g}")
            print(above[-1], file=sys.stderr, flush=True)
        seen["problems"] += 1
        seen["equal"] += found.latency <= least * SAME
        seen["bound"] += found.bound * SAME >= least
        seen["optimal"] += found.optimal
    counts = [f"{seen[name]:,}" for name in ("problems", "equal", "optimal", "bound", "nothing fits")]
    yield f"| {kind}s | {' | '.join(counts)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--law", choices=LAWS, default="ruled")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()

    def rows() -> Iterator[str]:
        yield "| | problems | search equal to brute force | said to be optimal | bound equal | nothing fits |"
        yield "|---|--:|--:|--:|--:|--:|"
        above: list[str] = []
        for kind, count in (("tree", options.trees), ("graph", options.graphs)):
            seeds = range(options.first_seed, options.first_seed + count)
            yield from compared(kind, seeds, options.law, above)
        for line in above:
            yield f"\n{line}"

    write({"contest-oracle": rows}, options.page)


if __name__ == "__main__":
    main()
