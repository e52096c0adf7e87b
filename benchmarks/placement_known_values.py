"""Optimum, states and seconds of placement, network by network: the table in docs/placement-figures.md.

    python benchmarks/placement_known_values.py [FOLDER] [--only PATTERN] [--granularity fused|op] [--plan]
                                                [--time-limit SECONDS]

Takes the built-in zoo, or a FOLDER of `onchip.network/1` files. For each network, with weights streamed and
resident, the capacity-only search at MR, MH and MP; with --plan also the whole plan, addresses included.
Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import onchip
from onchip import zoo
from onchip.machines.chip import load_chip
from onchip.network import Network
from onchip.network.json import read_network
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions, Problem, minimum_peak, minimum_traffic, plan

WEIGHTS: tuple[Literal["streamed", "resident"], ...] = ("streamed", "resident")


def networks(folder: Path | None, only: str, granularity: str) -> Iterator[tuple[str, Network]]:
    """The networks of a folder, or of the zoo."""
    if folder is None:
        for name in fnmatch.filter(zoo.names(), only):
            yield name, onchip.load(f"zoo:{name}", granularity=granularity).network
    else:
        for path in sorted(folder.glob(f"{only}.json")):
            yield path.stem, read_network(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--only", default="*", metavar="PATTERN")
    parser.add_argument(
        "--granularity", choices=("fused", "op"), default="fused", help="of the zoo's networks"
    )
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--time-limit", type=float, default=None)
    args = parser.parse_args()
    generic = load_chip("generic")
    print(
        f"<!-- {platform.machine()}, {os.cpu_count()} cores, one used; Python {platform.python_version()} -->"
    )
    print("| network | weights | at | budget | traffic | states | CPU s | memory MB | search | plan |")
    print("|---|---|---|--:|--:|--:|--:|--:|---|---|")
    for name, network in networks(args.folder, args.only, args.granularity):
        for weights in WEIGHTS:
            seen = network if weights == "streamed" else network.with_resident_weights()
            problem = Problem.of(seen)
            mr, mp = problem.minimum_budget, minimum_peak(problem, limits=Limits(args.time_limit)).value
            for at, budget in (("MR", mr), ("MH", (mr + mp) // 2), ("MP", mp)):
                began = time.process_time()
                found = minimum_traffic(problem, budget, limits=Limits(args.time_limit))
                cpu = time.process_time() - began
                status = "optimal" if found.complete else f"bound {found.bound:,}"
                whole = ""
                if args.plan:
                    began = time.process_time()
                    options = PlacementOptions(weights=weights, time_limit=args.time_limit)
                    result = plan(network, generic, budget, options).result
                    whole = f"{result.status} {result.traffic_bytes:,}, {time.process_time() - began:.2f} s"
                print(
                    f"| {name} | {weights} | {at} | {budget:,} | {found.value:,} | {found.states:,} "
                    f"| {cpu:.3f} | {found.memory / 1e6:.1f} | {status} | {whole} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
