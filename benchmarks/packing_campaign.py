"""Does the packing search agree with CP-SAT on thousands of small instances? Exits 1 at the first difference.

    python benchmarks/packing_campaign.py [--count 4000] [--first-seed 0]

By turns: plain buffers that nearly fill a capacity, and buffers of which some are aligned, some fixed to an
offset and some have gaps; at the load or just above it. Each instance is decided by CP-SAT and by the search
with all rules, with none, and with one rule alone or left out, by turns; every packing is validated.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from dataclasses import fields, replace

from onchip.planners.packing import Buffer, Rules, fault, max_load, pack
from onchip.planners.packing.cpsat import pack_with_cpsat

NAMES = [f.name for f in fields(Rules)]
NONE = Rules(**dict.fromkeys(NAMES, False))
VARIANTS = [replace(Rules(), **{n: False}) for n in NAMES] + [replace(NONE, **{n: True}) for n in NAMES]

NODES = 100_000
"""Limit of a search with rules left out: it may end undecided."""


def instance(seed: int) -> tuple[str, list[Buffer], int]:
    rnd = random.Random(seed)
    kind = ("plain", "aligned", "fixed", "gaps", "all")[seed % 5]
    steps, capacity = rnd.choice([6, 8, 10, 14]), rnd.randint(6, 16)
    load = [0] * steps
    buffers: list[Buffer] = []
    for _ in range(rnd.randint(6, 16)):
        room = [t for t in range(steps) if load[t] < capacity]
        if not room:
            break
        lower = rnd.choice(room)
        size = min(rnd.randint(1, capacity - load[lower]), rnd.randint(1, capacity))
        upper, grow = lower + 1, rnd.choice([0.5, 0.7, 0.9])
        while lower > 0 and load[lower - 1] + size <= capacity and rnd.random() < grow:
            lower -= 1
        while upper < steps and load[upper] + size <= capacity and rnd.random() < grow:
            upper += 1
        alignment = rnd.choice([1, 1, 2, 3, 4]) if kind in ("aligned", "all") else 1
        offset, gaps = None, ()
        if kind in ("fixed", "all") and rnd.random() < 0.15:
            offset = rnd.randrange(0, capacity - size + 1, alignment)
        if kind in ("gaps", "all") and upper - lower > 2 and rnd.random() < 0.7:
            begin = rnd.randint(lower + 1, upper - 2)
            gaps = ((begin, rnd.randint(begin + 1, upper - 1)),)
        buffers.append(Buffer(lower, upper, size, alignment, offset, gaps))
        for start, end in buffers[-1].live:
            for t in range(start, end):
                load[t] += size
    return kind, buffers, max_load(buffers) + rnd.choice([0, 0, 0, 1, 2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    undecided = 0
    seen: Counter[tuple[str, str]] = Counter()
    for seed in range(options.first_seed, options.first_seed + options.count):
        kind, buffers, capacity = instance(seed)
        status, offsets = pack_with_cpsat(buffers, capacity, workers=1)
        wrong = fault(buffers, offsets, capacity) if status == "packed" else None
        for rules in (Rules(), NONE, VARIANTS[seed % len(VARIANTS)]):
            # `pack` validates what it returns.
            limit = None if rules == Rules() else NODES
            answer = pack(buffers, capacity, rules=rules, engines=("search",), node_limit=limit)
            if answer.status == "unknown" and rules != Rules():
                undecided += 1
            elif answer.status != status or wrong:
                sys.exit(
                    f"seed {seed} ({kind}): CP-SAT {status} ({wrong}), the search {answer.status}: {rules}"
                )
        seen[kind, status] += 1
    print("\n| buffers | packed | infeasible |\n|---|---|---|")
    for kind in dict.fromkeys(kind for kind, _ in seen):
        print(f"| {kind} | {seen[kind, 'packed']} | {seen[kind, 'infeasible']} |")
    print(f"\nnot decided within {NODES:,} nodes with rules left out: {undecided}")


if __name__ == "__main__":
    main()
