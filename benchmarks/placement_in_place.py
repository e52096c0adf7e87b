"""What `--in-place` saves, network by network: the table in docs/placement-figures.md.

    python benchmarks/placement_in_place.py [FOLDER] [--only PATTERN] [--granularity fused|op]
        [--time-limit SECONDS]

Takes the built-in zoo, or a FOLDER of `onchip.network/1` files. For each network, weights streamed: MR and MP
with every tensor apart and with outputs written over inputs; the traffic of whole plans, addresses included,
at the larger MR both ways and at the smaller one in place; outputs written over inputs there, and the seconds
that plan took. Exits 1 if in place is ever worse. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from onchip import zoo
from onchip.machines.chip import load_chip
from onchip.network import Network
from onchip.network.json import read_network
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions, budgets, plan
from onchip.plans import Alloc, Plan
from onchip.readers import ReadOptions, load


def networks(folder: Path | None, only: str, granularity: str) -> Iterator[tuple[str, Network]]:
    """The networks of a folder, or of the zoo."""
    if folder is None:
        for name in fnmatch.filter(zoo.names(), only):
            options = ReadOptions(granularity=granularity)  # type: ignore[arg-type]
            yield name, load(f"zoo:{name}", options).network
    else:
        for path in sorted(folder.glob(f"{only}.json")):
            yield path.stem, read_network(path)


def told(made: Plan) -> str:
    """Traffic, with its bound when it is not proved to be the least."""
    result = made.result
    gap = "" if result.status == "optimal" else f" (bound {result.lower_bound_bytes:,})"
    return f"{result.traffic_bytes:,}{gap}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--only", default="*", metavar="PATTERN")
    parser.add_argument("--granularity", choices=("fused", "op"), default="fused")
    parser.add_argument("--time-limit", type=float, default=None)
    args = parser.parse_args()
    chip, worse = load_chip("generic"), 0
    cores = os.cpu_count()
    print(f"<!-- {platform.machine()}, {cores} cores, one used; Python {platform.python_version()} -->")
    print(
        "| network | MR | MR in place | MP | MP in place | traffic at MR | in place | at MR in place"
        " | written over | s |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, network in networks(args.folder, args.only, args.granularity):
        apart = budgets(network, chip, Limits(args.time_limit))
        shared = budgets(network, chip, Limits(args.time_limit), in_place=True)
        options = PlacementOptions(time_limit=args.time_limit)
        over = PlacementOptions(time_limit=args.time_limit, in_place=True)
        at_mr = plan(network, chip, apart.mr, options), plan(network, chip, apart.mr, over)
        began = time.process_time()
        least = plan(network, chip, shared.mr, over)
        seconds = time.process_time() - began
        written = sum(isinstance(i, Alloc) and i.over is not None for i in least.program)
        worse += shared.mr > apart.mr or shared.mp > apart.mp
        worse += at_mr[1].result.traffic_bytes > at_mr[0].result.traffic_bytes
        print(
            f"| {name} | {apart.mr:,} | {shared.mr:,} | {apart.mp:,} | {shared.mp:,} | {told(at_mr[0])}"
            f" | {told(at_mr[1])} | {told(least)} | {written} | {seconds:.1f} |",
            flush=True,
        )
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
