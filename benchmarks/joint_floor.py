"""What every network of the zoo needs at least to run at all: the table of docs/joint.md.

    .venv/bin/python benchmarks/joint_floor.py [--only PATTERN]

int8 elements, alignment 1. `whole`: the largest operator with all its operands on chip, weights in passing;
`floor`: the least scratchpad in which every operator runs, whole or in some tiling, and whose it is.
Exit code 1 where a network has no plan at its floor, or one below.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys

import onchip
from onchip import zoo
from onchip.machines.chip import Chip
from onchip.network import bits
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.cost import least_scratch
from onchip.planners.fusion.search import Fuser, Space


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="*", metavar="PATTERN")
    args = parser.parse_args()
    print("| network | whole | floor | operator | type |")
    print("|---|--:|--:|---|---|")
    wrong = 0
    for name in zoo.names():
        if not fnmatch.fnmatch(name, args.only):
            continue
        network = onchip.load(f"zoo:{name}", dtype="int8").network
        problem = FusionProblem.of(network, Chip("any", 1), FusionOptions(), 1 << 40)
        whole = max(
            sum(network.tensors[t].bytes for t in bits(network.reads[v] | network.writes[v]))
            for v in network.order
        )
        floor, hardest = max((least_scratch(problem, v), v) for v in network.order)
        core = Fuser(problem, Space(largest=1)).core
        bad = bool(core.misfits(floor)) or not core.misfits(floor - 1)
        wrong += bad
        op = network.operators[hardest]
        print(f"| {name} | {whole:,} | {floor:,} | {op.name} | {op.type} |{' WRONG' if bad else ''}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
