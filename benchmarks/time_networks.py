"""Whole networks planned for the shortest time, beside the plan of fewest bytes with its best copies.

    .venv/bin/python benchmarks/time_networks.py [NETWORK ...] [--chips EDGE ...] [--budgets 256KiB ...]

NETWORK is what `onchip plan` takes: a file, or `zoo:NAME`. Each is planned for the fewest bytes, with tensors
apart, as the search for time begins with; every run of that plan becomes its own nest with the best one or
two copies of every buffer (*fewest bytes*). Beside it stands the plan that `--objective latency` makes. The
checker prices both. The chips are below: those of `time_known_values.py`, and three made of `EDGE`. *Bound*
is that of every plan of nests. CPU seconds are of both plans together. Exit code 1 where a plan for time is
slower.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Collection
from dataclasses import replace

from time_known_values import EDGE, SERVER

from onchip.base.errors import NegativeAnswer
from onchip.base.units import parse_bytes
from onchip.check import check
from onchip.machines.chip import Chip
from onchip.machines.tile_rates import ArraySide, Channel
from onchip.planners.fusion import FusionProblem
from onchip.planners.fusion.least import least_bytes
from onchip.planners.joint.options import JointOptions, fusion_options
from onchip.planners.joint.planning import solve
from onchip.planners.joint.timed.answer import quickest
from onchip.planners.joint.timed.bound import least_picoseconds
from onchip.planners.joint.timed.hasten import Fastest, hastened
from onchip.planners.joint.timed.nests_for import NestsFor
from onchip.planners.joint.timed.pricing import Priced
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions
from onchip.plans import Nest, Plan
from onchip.readers import ReadOptions, load

CHIPS = {
    "EDGE": EDGE,
    "SERVER": SERVER,
    "TWO": replace(  # one channel each way
        EDGE,
        channels=(replace(EDGE.channels[0], stores=False), replace(EDGE.channels[0], loads=False)),
    ),
    "SLOW": replace(EDGE, channels=(Channel(8 * 10**8, 500_000, 40_000, 32),)),
    "SMALL": replace(EDGE, sides=(ArraySide("out", 8), ArraySide("sum", 8))),
}


class BestCopies(Fastest):
    """Every run in its own nest, or that of fewest bytes, with its best copies: nothing is searched."""

    def search(
        self,
        operators: tuple[int, ...],
        streamed: Collection[int],
        room: int,
        own: Nest | None,
        effort: int,
        seed: int = 0,
    ) -> Priced | None:
        group = self.group(operators, streamed)
        nest = own or NestsFor(self.problem, group, self.limits).fewest_bytes(room)
        return None if nest is None else self.priced(group, nest, room)


def fewest_bytes_picoseconds(plan: Plan, problem: FusionProblem) -> int:
    """The time of the plan of fewest bytes with its best copies; its groups run one after the other."""
    made = hastened(plan, BestCopies(problem, plan, Limits(), 0))
    return sum(one.time for one in made.chosen)


def row(name: str, chip_name: str, size: str, seconds: float) -> bool:
    """Print the row of one network; return whether the plan for time is no slower."""
    began = time.process_time()
    source = load(name, ReadOptions(dtype="int8"))
    network = source.network
    chip = Chip(chip_name, 64, "int8", tiles=CHIPS[chip_name])
    budget = parse_bytes(size)
    apart = JointOptions(fuse=True, overlap=False, concat_views=False)
    placing = PlacementOptions(time_limit=seconds)
    limits = Limits.of(placing)
    least = solve(network, chip, budget, apart, placing, limits.until(0.4)).plan
    problem = FusionProblem.of(network, chip, fusion_options(apart), budget)
    bound = least_picoseconds(network, CHIPS[chip_name], least_bytes(problem))
    called = name.removeprefix("zoo:").rpartition("/")[2]
    title = f"| {called} | {chip_name} | {size} | {len(network.operators)}"
    try:
        plain = fewest_bytes_picoseconds(least, problem)
    except NegativeAnswer as no:
        print(f"{title} | fewest bytes: {no}", flush=True)
        return True
    made = quickest(least, problem, time.perf_counter(), limits)
    check(made)
    fast = made.result.latency_picoseconds
    assert fast is not None
    print(
        f"{title} | {len(made.groups)} | {plain * 1e-9:,.3f} | {fast * 1e-9:,.3f} | {1 - fast / plain:.1%}"
        f" | {bound * 1e-9:,.3f} | {fast / bound - 1:.1%} | {least.result.dram_bytes:,}"
        f" | {made.result.dram_bytes:,} | {time.process_time() - began:.0f} |",
        flush=True,
    )
    return fast <= plain


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", default=["zoo:squeezenet1_0", "zoo:mobilenet_v2"])
    parser.add_argument("--chips", nargs="+", default=["EDGE"], choices=CHIPS)
    parser.add_argument("--budgets", nargs="+", default=["256KiB"])
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds for each plan")
    asked = parser.parse_args()
    print(
        "| network | chip | scratchpad | operators | groups | fewest bytes, ms | for time, ms | faster"
        " | bound, ms | above it | its bytes | bytes for time | CPU s |"
    )
    print("|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    fine = True
    for name in asked.networks:
        for chip in asked.chips:
            for size in asked.budgets:
                fine &= row(name, chip, size, asked.time_limit)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
