"""What joint plans of transformers move, with the checker's figures: the tables of docs/joint.md.

    .venv/bin/python benchmarks/joint_transformers.py FILE[,KIB...] ... [--seconds N]

int8 elements. Every plan is checked. *Rows* are the bytes of operators that look rows of a table up, an
embedding: their weights, with those of what is added to the rows. *Activations* are inputs, outputs and what
is spilled and reloaded, *weights* all others. *Bound* is proved for all plans of the search's space, *least*
is every input, output and weight once. *By hand* are schedules that were worked out beside the tool, for the
layers alone, in MB. CPU seconds are those of the whole planning, reading apart.
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
BY_HAND = {
    "bert512": {"256": "260", "1024": "85.8", "2048": "85.8", "4096": "85.8"},
    "llama_prefill512": {"256": "320", "1024": "192", "4096": "160.5"},
    "whisper_enc": {"256": "65", "1024": "23", "2048": "9.0", "4096": "9.0"},
}
"""By file and KiB. Llama's seem to count the whole table of its embedding, 32.8 MB, of which 0.5 are looked
up: at 4 MiB they lie by that above the least. Whisper's are of the layers behind two convolutions."""

LOOKS_UP = {"Gather", "GatherElements", "GatherND"}


def rows_of(network: onchip.Network) -> int:
    """Return the bytes fetched by operators that look rows up in a table."""
    gathers = (op for op in network.operators if LOOKS_UP.intersection(op.type.split("+")))
    return sum(op.weight_bytes for op in gathers)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("networks", nargs="+", metavar="FILE[,KIB...]")
    parser.add_argument("--seconds", type=float, default=120.0)
    args = parser.parse_args()
    print("| network | KiB | bytes | rows | activations | weights", end="")
    print(" | bound | least | by hand | status | CPU s |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|---|--:|")
    for asked in args.networks:
        name, *sizes = asked.split(",")
        network = onchip.load(name, dtype="int8").network
        rows = rows_of(network)
        for size in sizes or SIZES:
            began, limits = time.process_time(), Limits(time_limit=args.seconds)
            made = solve(
                network, load_chip("generic"), int(size) * 1024, JointOptions(fuse=True), limits=limits
            )
            seconds, result = time.process_time() - began, check(made.plan)
            figures = (
                result.dram_bytes,
                rows,
                result.compulsory_bytes + result.traffic_bytes,
                result.weight_bytes - rows,
                result.dram_lower_bound_bytes,
                result.compulsory_bytes + network.weight_bytes,
            )
            hand = BY_HAND.get(network.name.split(".")[0], {}).get(size, "")
            print(
                f"| {network.name} | {size} | {' | '.join(f'{n:,}' for n in figures)} | {hand} |"
                f" {made.plan.result.status} | {seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
