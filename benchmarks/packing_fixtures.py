"""Packing, measured: our search beside CP-SAT's NoOverlap2D in one run. Prints the tables of docs/packing.md.

    python benchmarks/packing_fixtures.py FOLDER [--seeds N] [--cpsat-seconds S] [--smallest S] [--ablation]

FOLDER holds minimalloc CSV files named NAME.CAPACITY.csv, as minimalloc publishes them. Seconds are
CPU time of this process, CP-SAT with one worker.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from statistics import median

from onchip.planners.packing import ALL_RULES, Buffer, Rules, max_load, minimise, pack, read_buffers
from onchip.planners.packing.cpsat import pack_with_cpsat

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cpsat-seconds", type=float, default=60.0)
    parser.add_argument("--ablation", action="store_true", help="each rule switched off in turn")
    parser.add_argument("--smallest", type=float, metavar="S", help="look S seconds for smallest capacities")
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

    if options.smallest:
        print("\n| instance | maximum load | smallest capacity | CPU seconds | first and best fit |")
        print("|---|---|---|---|---|")
        for name, (buffers, capacity) in instances.items():
            begin = time.process_time()
            least = minimise(buffers, time_limit=options.smallest)
            seconds = time.process_time() - begin
            shown = f"{least.bytes:,}" if least.optimal else f"{least.lower_bound:,} to {least.bytes:,}"
            load, quick = max_load(buffers), overflow(buffers, capacity)
            print(f"| {name} | {load:,} | {shown} | {seconds:.2f} | {quick:,} |", flush=True)

    if options.ablation:
        print("\n| rule off | seconds in all | packed |\n|---|---|---|")
        for rule in (None, *(f.name for f in fields(Rules))):
            rules = ALL_RULES if rule is None else replace(ALL_RULES, **{rule: False})
            runs = [search(*i, seed, rules) for i in instances.values() for seed in range(options.seeds)]
            packed = sum(status == "packed" for status, _ in runs)
            print(f"| {rule or 'none'} | {sum(s for _, s in runs):.2f} | {packed}/{len(runs)} |", flush=True)


def overflow(buffers: Sequence[Buffer], capacity: int) -> int:
    """The extent of the best of the quick heuristics."""
    from onchip.planners.packing.pack import greedily

    return greedily(buffers, capacity)[1]


if __name__ == "__main__":
    main()
