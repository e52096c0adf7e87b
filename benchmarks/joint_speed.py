"""How long joint planning takes with nests and without: CPU seconds, and the bytes that plans move.

    .venv/bin/python benchmarks/joint_speed.py [--time-limit S] [--only PATTERN]

Networks of the zoo, int8, and a scratchpad each. `s` are CPU seconds of a plan from the network on; `wall`
is said where it is longer than the time limit.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time

import onchip
from onchip.machines.chip import load_chip
from onchip.planners.joint import JointOptions
from onchip.planners.joint.planning import solve
from onchip.planners.placement import PlacementOptions

KIB = 1024

ROWS = (
    ("squeezenet1_0", 128),
    ("squeezenet1_0", 256),
    ("mobilenet_v1", 128),
    ("mobilenet_v2", 128),
    ("mobilenet_v2", 256),
    ("shufflenet_v2_x1_0", 64),
    ("shufflenet_v2_x1_0", 256),
    ("resnet18", 256),
    ("resnet50", 256),
    ("resnet50", 512),
    ("vgg16", 256),
    ("googlenet", 256),
    ("googlenet", 512),
    ("resnext50_32x4d", 512),
    ("mnasnet1_0", 256),
    ("inception_v3", 512),
    ("densenet121", 256),
    ("densenet121", 512),
)


def main() -> int:
    """Plan and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--time-limit", type=float, default=20)
    parser.add_argument("--only", default="*", metavar="PATTERN")
    args = parser.parse_args()
    chip = load_chip("generic")
    print("| network | KiB | without: bytes | status | s | with: bytes | bound | status | s | times |")
    print("|---|--:|--:|---|--:|--:|--:|---|--:|--:|")
    for name, room in ROWS:
        if not fnmatch.fnmatch(name, args.only):
            continue
        network = onchip.load(f"zoo:{name}").network
        cells, spent = [], []
        for nests in (False, True):
            placing = PlacementOptions(time_limit=args.time_limit)
            wall, cpu = time.perf_counter(), time.process_time()
            made = solve(network, chip, room * KIB, JointOptions(fuse=True, nests=nests), placing).plan.result
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            spent.append(cpu)
            cells.append(f"{made.dram_bytes:,}")
            cells += [f"{made.dram_lower_bound_bytes or 0:,}"] if nests else []
            late = f" (wall {wall:.1f})" if wall > args.time_limit else ""
            cells += [made.status, f"{cpu:.2f}{late}"]
        print(f"| {name} | {room} | {' | '.join(cells)} | {spent[1] / spent[0]:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
