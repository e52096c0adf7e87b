"""The joint search against elementary moves, on random networks of three to six operators.

    .venv/bin/python benchmarks/joint_oracle.py [--first SEED] [--count N] [--most-states N] [--nests]
        [--joins]

With `--nests` the networks have two to four operators of any ranks, many of them with windows, which may also
run in nests. With `--joins` many operators are concats, which may be joined in DRAM; most of the cases in
which that moves no less are passed over. Every other case lets
outputs lie over dying inputs; halo is charged in all. A case with more states than `--most-states` is left
out and counted. Exit code 1 where the two differ.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from random import Random

from onchip.machines.chip import load_chip
from onchip.network import Network
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.joint.joins import joinable
from onchip.planners.joint.nests import nests_of
from onchip.planners.joint.search import JointSearch
from onchip.planners.placement.overwriting import overwritable

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from oracles.fusion_cases import random_maps
from oracles.joining import joining_maps
from oracles.joint import TooManyStates
from oracles.joint_claims import difference
from oracles.nest_cases import groups_network
from oracles.nest_windows import sliding_network
from oracles.residuals import residual_network

LOOKS = 10_000_000
"""No search for a nest is cut off: elementary moves know no such limit."""

RARELY = 20
"""Of networks in which a joined concat moves no less, every such one is compared."""

THE_OTHERS = "both groups alone and operators alone"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--most-states", type=int, default=60_000)
    parser.add_argument("--nests", action="store_true")
    parser.add_argument("--joins", action="store_true")
    args = parser.parse_args()
    compared = infeasible = left_out = better = under = joined = 0
    wrong = []
    for seed in range(args.first, args.first + args.count):
        rng = Random(seed)
        if args.joins:
            network = joining_maps(rng, 4 if args.nests else 6)
        else:
            network = _groups(rng) if args.nests else random_maps(rng, 6, 1)
        total = sum(t.bytes for t in network.tensors)
        budget = int(total * rng.choice((0.15, 0.25, 0.4, 0.6, 0.8)))
        if network.name == "residual":  # from one to four of its streams
            budget = int(max(t.bytes for t in network.tensors) * rng.uniform(1, 4))
        options = FusionOptions(channel_tile=rng.choice((1, 2, 4)))
        problem = FusionProblem.of(network, load_chip("generic"), options, budget)
        over = overwritable(network) if seed % 2 else ()
        nests = nests_of(problem, LOOKS, overlap=bool(seed % 2)) if args.nests else None
        joins = joinable(network) if args.joins else ()
        if args.joins and not joins:
            continue
        search = JointSearch(problem, over, joins=joins, nests=nests)
        if joins and seed % RARELY and not search.misfits:
            without = JointSearch(problem, over, nests=nests)
            if not without.misfits and without.best().dram_bytes == search.best().dram_bytes:
                continue
        try:
            found, wrongly = difference(
                problem, over, search, args.most_states, nests=args.nests, joins=joins
            )
        except TooManyStates:
            left_out += 1
            continue
        compared += 1
        infeasible += found is None
        if (args.nests or joins) and found is not None:
            steps = search.best().steps
            joined += any(step.joined for step in steps)
            under += any(step.over is not None and step.way is not None for step in steps)
        if wrongly:
            wrong.append(seed)
            print(f"seed {seed}: {wrongly} in {budget}", flush=True)
        elif args.nests:
            better += found is not None and found < (
                JointSearch(problem, over, joins=joins).best().dram_bytes or found + 1
            )
        elif found is not None and search.groups:
            alone = JointSearch(problem, over, largest=1)
            streamed = search.fuser.best().dram_bytes if not search.fuser.core.misfits(budget) else found + 1
            better += found < min(streamed, alone.best().dram_bytes or found)
        if seed % 50 == 49:
            print(f"{compared} compared, {len(wrong)} differences", flush=True)
    print(
        f"{compared} networks compared ({infeasible} fit in nothing), {len(wrong)} differences, {left_out}"
        f" left out; {better} where joint is below {'plans without nests' if args.nests else THE_OTHERS},"
        f" {under} with an output of a nest over an input, {joined} with a concat joined in DRAM"
    )
    return 1 if wrong else 0


def _groups(rng: Random) -> Network:
    """Return two to four operators of any ranks: without windows, with some, with windows above all, or in
    streams of one size."""
    kind = rng.randrange(4)
    if kind == 3:
        return residual_network(rng, rng.choice((2, 3, 4)))
    if kind == 2:
        return sliding_network(rng, rng.choice((2, 3, 4)))
    return groups_network(rng, rng.choice((2, 3, 4)), windows=kind == 1)


if __name__ == "__main__":
    sys.exit(main())
