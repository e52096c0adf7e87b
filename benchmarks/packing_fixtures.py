"""Packing, measured: our search beside CP-SAT's NoOverlap2D in one run. Prints the tables of docs/packing.md.

    python benchmarks/packing_fixtures.py [FOLDER] [--seeds N] [--cpsat-seconds S] [--ablation]

FOLDER holds minimalloc CSV files named NAME.CAPACITY.csv (default: ../shared/bench/minimalloc). Seconds are
CPU time of this process, CP-SAT with one worker.
"""

from __future__ import annotations

import argparse
import platform
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from statistics import median

from onchip.packing import ALL_RULES, Buffer, Rules, pack, read_buffers
from onchip.packing.cpsat import pack_with_cpsat

SECONDS = 10.0
"""Time limit of one search."""


def timed(run: Callable[[], str]) -> tuple[str, float]:
    begin = time.process_time()
    status = run()
    return status, time.process_time() - begin


def search(
    buffers: Sequence[Buffer], capacity: int, seed: int, rules: Rules = ALL_RULES
) -> tuple[str, float]:
    return timed(
        lambda: (
            pack(buffers, capacity, seed=seed, rules=rules, engines=("search",), time_limit=SECONDS).status
        )
    )


def cpsat(buffers: Sequence[Buffer], capacity: int, seconds: float) -> tuple[str, float]:
    return timed(lambda: pack_with_cpsat(buffers, capacity, time_limit=seconds, workers=1)[0])


def tiling(n: int, seed: int, side: int = 10_000) -> list[Buffer]:
    """A full rectangle cut into `n` buffers at random: the load is the capacity at every step."""
    rnd = random.Random(seed)
    tiles = [(0, side, 0, side)]
    while len(tiles) < n:
        weights = [(t1 - t0) * (a1 - a0) * rnd.uniform(0.2, 1) for t0, t1, a0, a1 in tiles]
        t0, t1, a0, a1 = tiles.pop(weights.index(max(weights)))
        if rnd.random() < (t1 - t0) / (t1 - t0 + a1 - a0):
            cut = rnd.randint(t0 + 1, t1 - 1)
            tiles += [(t0, cut, a0, a1), (cut, t1, a0, a1)]
        else:
            cut = rnd.randint(a0 + 1, a1 - 1)
            tiles += [(t0, t1, a0, cut), (t0, t1, cut, a1)]
    rnd.shuffle(tiles)
    return [Buffer(t0, t1, a1 - a0) for t0, t1, a0, a1 in tiles]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/bench/minimalloc"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cpsat-seconds", type=float, default=60.0)
    parser.add_argument("--ablation", action="store_true", help="each rule switched off in turn")
    parser.add_argument("--tilings", action="store_true", help="generated exact tilings as well")
    options = parser.parse_args()
    print(f"machine: {platform.machine()}, {platform.python_implementation()} {platform.python_version()}")

    instances: dict[str, tuple[Sequence[Buffer], int]] = {}
    for path in sorted(options.folder.glob("*.csv")):
        name, capacity, _ = path.name.split(".")
        instances[name] = read_buffers(path).buffers, int(capacity)
    if not instances:
        parser.error(f"no NAME.CAPACITY.csv in {options.folder}")

    print("\n| instance | buffers | search, median of seeds | worst | CP-SAT | first fit overflows by |")
    print("|---|---|---|---|---|---|")
    for name, (buffers, capacity) in instances.items():
        times = [search(buffers, capacity, seed) for seed in range(options.seeds)]
        packed = sum(status == "packed" for status, _ in times)
        status, seconds = cpsat(buffers, capacity, options.cpsat_seconds)
        shown = f"{seconds:.2f} s" if status == "packed" else f"no answer in {seconds:.0f} s"
        over = 100 * (overflow(buffers, capacity) / capacity - 1)
        print(
            f"| {name} | {len(buffers)} | {median(s for _, s in times):.3f} s ({packed}/{len(times)} packed) "
            f"| {max(s for _, s in times):.3f} s | {shown} | {over:.1f} % |",
            flush=True,
        )

    if options.tilings:
        print("\n| exact tilings | search packs | CP-SAT packs |\n|---|---|---|")
        for n in (50, 100, 200, 350):
            cases = [tiling(n, seed) for seed in range(4)]
            ours = sum(search(c, 10_000, 0)[0] == "packed" for c in cases)
            theirs = sum(cpsat(c, 10_000, SECONDS)[0] == "packed" for c in cases)
            print(f"| {n} buffers | {ours}/4 | {theirs}/4 |", flush=True)

    if options.ablation:
        print("\n| rule off | seconds in all | packed |\n|---|---|---|")
        for rule in (None, *(f.name for f in fields(Rules))):
            rules = ALL_RULES if rule is None else replace(ALL_RULES, **{rule: False})
            runs = [search(*i, seed, rules) for i in instances.values() for seed in range(options.seeds)]
            packed = sum(status == "packed" for status, _ in runs)
            print(f"| {rule or 'none'} | {sum(s for _, s in runs):.2f} | {packed}/{len(runs)} |", flush=True)


def overflow(buffers: Sequence[Buffer], capacity: int) -> int:
    """The extent of the best of the quick heuristics."""
    from onchip import _core
    from onchip.packing.buffers import columns
    from onchip.packing.pack import core_rules

    return _core.pack_greedy(*columns(buffers), capacity, core_rules(ALL_RULES))[1]


if __name__ == "__main__":
    main()
