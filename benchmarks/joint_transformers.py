"""What joint plans of transformers move, with the checker's figure: the table of docs/joint.md.

    .venv/bin/python benchmarks/joint_transformers.py FILE[,KIB...] ... [--seconds N]

int8 elements. Every plan is checked. CPU seconds are those of the whole planning, reading apart.
"""

from __future__ import annotations

import argparse
import time

import onchip
from onchip.check import check
from onchip.machines.chip import load_chip
from onchip.planners.joint.options import JointOptions
from onchip.planners.joint.planning import solve
from onchip.planners.limits import Limits

SIZES = ("256", "1024", "2048", "4096")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("networks", nargs="+", metavar="FILE[,KIB...]")
    parser.add_argument("--seconds", type=float, default=120.0)
    args = parser.parse_args()
    print("| network | KiB | bytes | bound | status | CPU s |")
    print("|---|--:|--:|--:|---|--:|")
    for asked in args.networks:
        name, *sizes = asked.split(",")
        network = onchip.load(name, dtype="int8").network
        for size in sizes or SIZES:
            began, limits = time.process_time(), Limits(time_limit=args.seconds)
            made = solve(
                network, load_chip("generic"), int(size) * 1024, JointOptions(fuse=True), limits=limits
            )
            seconds, result = time.process_time() - began, check(made.plan)
            print(
                f"| {network.name} | {size} | {result.dram_bytes:,} | {result.dram_lower_bound_bytes:,} |"
                f" {made.plan.result.status} | {seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
