"""Compare the planner with the slow references on any number of random networks, and count what was compared.

    .venv/bin/python benchmarks/oracle_campaign.py --cases 100000 --seed 1

The tests run the same comparisons on fewer cases. Each kind takes its own share of `--cases`:

    states     capacity-only traffic (free and given order) and peak against exact states, up to 8 operators,
               under all pruning rules, under none and under a random combination of them
    ilp        traffic against an integer program in CP-SAT, 9 to 16 operators          (1 case in 100)
    addresses  whole plans against exhaustive placement, up to 5 operators              (1 case in 20)
    plans      status and figures of whole plans against exact states and the checker   (1 case in 50)

With --in-place element-wise operators are many and may write over their inputs (all kinds but ilp).

Prints a line for each difference (its kind and seed are enough to repeat it) and exits 1 if there was one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from oracles import addresses, compare, ilp
from strategies import SMALL_SIZES, random_case, random_tight_case

SHARE = {"states": 1, "ilp": 100, "addresses": 20, "plans": 50}


def run(kind: str, seed: int, in_place: bool) -> str:
    """Compare one case; says what it was: free of traffic, with traffic, moved, or skipped as too large."""
    rng = Random(f"{kind} {seed}")
    if kind == "states":
        case = random_case(rng, 8, min_operators=rng.choice((1, 5, 8)), in_place=in_place)
        return "with traffic" if compare.traffic_against_states(case, compare.some_rules(rng, 1)) else "free"
    if kind == "ilp":
        case = random_case(rng, 16, min_operators=9)
        return "with traffic" if compare.traffic_against_ilp(case) else "free"
    if kind == "plans":
        if rng.random() < 0.3:
            case = random_tight_case(rng, 7, in_place=in_place)
        else:
            case = random_case(rng, 9, in_place=in_place)
        return "dearer than capacity" if compare.plan_against_states(case) else "as capacity"
    if rng.random() < 0.5:
        case = random_tight_case(rng, in_place=in_place)
    else:
        case = random_case(rng, 5, sizes=SMALL_SIZES, in_place=in_place)
    if case.budget > 14 * case.alignment:
        return "skipped"
    least, joint = compare.plan_against_addresses(case)
    return "moved" if joint > least else "with traffic" if joint else "free"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000, help="networks compared with exact states")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--in-place", action="store_true", help="outputs may be written over inputs")
    parser.add_argument("--only", choices=SHARE, help="one kind of comparison")
    options = parser.parse_args()
    differences = 0
    for kind, share in SHARE.items():
        if options.only not in (None, kind) or (kind == "ilp" and options.in_place):
            continue
        began = time.process_time()
        count: Counter[str] = Counter()
        seeds = range(options.seed, options.seed + -(-options.cases // share))
        for seed in seeds:
            try:
                count[run(kind, seed, options.in_place)] += 1
            except (addresses.Undecided, ilp.Undecided):
                count["undecided"] += 1
            except AssertionError as problem:
                count["DIFFERENT"] += 1
                print(f"{kind}: seed {seed} differs: {str(problem).splitlines()[:1]}", flush=True)
            if seed == seeds[-1] or not (seed - options.seed + 1) % 5000:
                found = ", ".join(f"{n:,} {what}" for what, n in sorted(count.items()))
                print(f"{kind}: {sum(count.values()):,} cases: {found}", end="")
                print(f"; {time.process_time() - began:.0f} s CPU", flush=True)
        differences += count["DIFFERENT"]
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
