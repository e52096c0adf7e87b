"""What dividing costs: traffic of `dnc`, `beam` and `greedy` against the exact optimum on the NAS networks.

    python benchmarks/divided_networks.py FOLDER [--only PATTERN] [--time-limit SECONDS] [--beam-width N]

FOLDER holds `onchip.network/1` files. Addresses are left aside: what is compared is the searches. A gap is
(traffic - optimum) / optimum. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import platform
import time
from pathlib import Path

from onchip.network.json import read_network
from onchip.planners.limits import Limits
from onchip.planners.placement import Problem, minimum_peak, minimum_traffic
from onchip.planners.placement.dnc import divide
from onchip.planners.placement.greedy import evictions, list_order, topological

NAS = ("pnasnet5large", "nasnetalarge", "amoebanet_d", "darts")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*.fused", metavar="PATTERN")
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--beam-width", type=int, default=100)
    args = parser.parse_args()
    print(
        f"<!-- {platform.machine()}, {os.cpu_count()} cores, one used; Python {platform.python_version()} -->"
    )
    print("| network | at | exact | CPU s | dnc | gap | its bound | CPU s | beam | gap | greedy | gap |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for path in sorted(args.folder.glob("*.json")):
        name = path.stem
        if not fnmatch.fnmatch(name, args.only) or not name.startswith(NAS):
            continue
        problem = Problem.of(read_network(path))
        mr, mp = problem.minimum_budget, minimum_peak(problem).value
        for at, budget in (("MR", mr), ("MH", (mr + mp) // 2), ("MP", mp)):
            began = time.process_time()
            exact = minimum_traffic(problem, budget, limits=Limits(args.time_limit))
            between = time.process_time()
            divided = divide(problem, budget, Limits(args.time_limit)).found
            end = time.process_time()
            beam = minimum_traffic(
                problem, budget, limits=Limits(args.time_limit), beam_width=args.beam_width
            ).value
            greedy = min(
                evictions(problem, o, budget)[1] for o in (list_order(problem), topological(problem))
            )

            def gap(value: int, least: int = exact.value) -> str:
                return f"{(value - least) / least:.1%}" if least else ("0.0%" if not value else "-")

            proof = "" if exact.complete else " (no proof)"
            print(
                f"| {name} | {at} | {exact.value:,}{proof} | {between - began:.2f} "
                f"| {divided.value:,} | {gap(divided.value)} | {divided.bound:,} | {end - between:.2f} "
                f"| {beam:,} | {gap(beam)} | {greedy:,} | {gap(greedy)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
