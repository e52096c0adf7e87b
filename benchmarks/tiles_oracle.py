"""Joint plans against elementary moves and all tilings that the checker accepts, on odd geometry.

    .venv/bin/python benchmarks/tiles_oracle.py [--first SEED] [--count N] [--most N] [--most-states N]

Tiny networks with padding to 3, dilation, strides above kernels, groups, maps of one row, pads that cut rows
off, broadcasts and workspaces, with one to three images, at random budgets. Exit code 1 where the least bytes
differ, or where one says that nothing fits and the other finds a plan.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import Random

from onchip.machines.chip import load_chip
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.cost import least_scratch
from onchip.planners.joint.search import JointSearch
from onchip.planners.placement.overwriting import overwritable

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from oracles.joint import TooManyStates
from oracles.joint_claims import difference
from oracles.odd_networks import odd_network


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--most", type=int, default=3, help="operators")
    parser.add_argument("--largest", type=int, default=6, help="rows and columns of the input")
    parser.add_argument("--most-states", type=int, default=20_000)
    args = parser.parse_args()
    compared = infeasible = left_out = 0
    wrong = []
    began = time.process_time()
    for seed in range(args.first, args.first + args.count):
        rng = Random(seed)
        network = odd_network(rng, args.most, largest=args.largest)
        total = sum(t.bytes for t in network.tensors)
        budget = max(1, int(total * rng.choice((0.1, 0.2, 0.3, 0.45, 0.6, 0.8))))
        options = FusionOptions(channel_tile=rng.choice((1, 2, 3)), batch_weights="held")
        chip = replace(load_chip("generic"), alignment_bytes=rng.choice((1, 1, 1, 4)))
        problem = FusionProblem.of(network, chip, options, budget)
        problem = replace(problem, least_rows=rng.choice((1, 1, 1, 2)))
        over = overwritable(network) if seed % 2 else ()
        search = JointSearch(problem, over)
        try:
            found, wrongly = difference(problem, over, search, args.most_states)
        except TooManyStates:
            left_out += 1
            continue
        compared += 1
        infeasible += found is None
        if wrongly:
            wrong.append(seed)
            print(f"seed {seed}: {wrongly} in {budget}", flush=True)
        if seed % 250 == 249:
            print(f"{compared} compared, {len(wrong)} differences", flush=True)
        for v in search.misfits:
            if least_scratch(problem, v) <= budget:
                wrong.append(seed)
                print(f"seed {seed}: operator {v} does not fit, and is said to need no more", flush=True)
    print(
        f"{compared} networks compared ({infeasible} fit in nothing), {len(wrong)} differences,"
        f" {left_out} left out, {time.process_time() - began:.0f} CPU s"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
