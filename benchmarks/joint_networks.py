"""Joint planning of the zoo's networks on several chips: the table of docs/joint.md.

    .venv/bin/python benchmarks/joint_networks.py [--chips CHIP ...] [--time-limit S] [--only PATTERN]

Batch 1, elements as wide as the chip's. `none`: operators one by one, every tensor through DRAM; `fusion`,
`placement`: either alone, in a part of the same time; `joint`: the plan that `onchip plan --fuse` makes,
proved by the checker; `least`: weights, inputs and outputs once. MB of 10^6 bytes, seconds of CPU.
Exit code 1 where joint moves more than fusion or placement alone, or a plan is illegal.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import platform
import sys
import time

import onchip
from onchip import zoo
from onchip.base.errors import Infeasible
from onchip.check import check
from onchip.machines.chip import load_chip
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.search import Fuser, Space
from onchip.planners.fusion.strategy import Priced, partition
from onchip.planners.joint.planning import solve
from onchip.planners.joint.search import compulsory_bytes
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions

CHIPS = ("optimus-1", "optimus-3", "optimus-6", "exynos-npu", "eyeriss", "shidiannao")


def megabytes(moved: int | None) -> str:
    return "-" if moved is None else f"{moved / 1e6:.3f}"


def fusion(problem: FusionProblem, seconds: float) -> int | None:
    """Return what fusion alone moves, None if some operator fits in no tiling."""
    try:
        found = partition(problem, Priced(problem), Limits(seconds))
    except Infeasible:
        return None
    return sum(group.dram_bytes for group in found.groups)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--chips", nargs="+", default=CHIPS)
    parser.add_argument("--time-limit", type=float, default=60)
    parser.add_argument("--only", default="*", metavar="PATTERN")
    args = parser.parse_args()
    print(f"<!-- {platform.machine()}, {os.cpu_count()} cores; at most {args.time_limit:g} s a plan -->")
    print("| network | chip | none | fusion | placement | joint | least | over least | status | s |")
    print("|---|---|--:|--:|--:|--:|--:|--:|---|--:|")
    worse = 0
    for name in zoo.names():
        if not fnmatch.fnmatch(name, args.only):
            continue
        for at in args.chips:
            chip = load_chip(at)
            network = onchip.load(f"zoo:{name}", dtype=chip.element).network
            budget = chip.require("scratchpad_bytes", "a plan")
            began = time.process_time()
            placing = PlacementOptions(time_limit=args.time_limit)
            try:
                made = solve(network, chip, budget, placing=placing)
            except Infeasible as none:
                print(
                    f"| {name} | {at} | - | - | - | - | - | - | {none.operator} needs {none.needs:,} B | - |"
                )
                continue
            seconds = time.process_time() - began
            result = check(made.plan)
            problem = FusionProblem.of(network, chip, FusionOptions(), budget)
            alone = Fuser(problem, Space(largest=1))
            unfused = None if alone.core.misfits(budget) else alone.best().dram_bytes
            least = compulsory_bytes(problem) + network.weight_bytes
            fused = made.fusion_bytes if made.fusion_bytes is not None else fusion(problem, args.time_limit)
            others = [moved for moved in (fused, made.placement_bytes) if moved is not None]
            bad = result.dram_bytes > min(others, default=result.dram_bytes)
            worse += bad
            bound = result.dram_lower_bound_bytes or 0
            gap = 100 * (result.dram_bytes / max(bound, 1) - 1)
            status = "optimal" if made.plan.result.status == "optimal" else f"gap {gap:.1f} %"
            row = (unfused, fused, made.placement_bytes, result.dram_bytes, least)
            over = f"{100 * (result.dram_bytes / least - 1):.1f} %"
            print(
                f"| {name} | {at} | {' | '.join(map(megabytes, row))} | {over} | {status}"
                f"{' WORSE' if bad else ''} | {seconds:.1f} |",
                flush=True,
            )
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
