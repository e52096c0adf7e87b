"""Joint plans, executed: the table in docs/joint.md.

    .venv/bin/python benchmarks/joint_executed.py [--networks NAME|FILE ...] [--budget SIZE ...]
        [--seconds N]

Everything through the command line, each step in a process of its own: `onchip plan --fuse` plans, and
`onchip run` executes the plan byte by byte and compares every tensor with unoptimised onnxruntime. Where
all runs whole they are the same bit for bit; else within 1e-4. A NAME is one of the zoo, a FILE is read with
elements of 8 bits. Exit code 1 where the outputs differ more, or other bytes moved than planned.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

NETWORKS = ("vgg16", "mobilenet_v1", "squeezenet1_0", "resnet18", "resnet50", "googlenet")


def printed(*args: str) -> dict[str, Any]:
    """What `onchip ARGS --json` printed."""
    done = subprocess.run(
        [sys.executable, "-m", "onchip.cli", *args, "--json"], stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(args)} exited {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--networks", nargs="+", default=NETWORKS, metavar="NAME|FILE")
    parser.add_argument("--budget", nargs="+", default=("512KiB",))
    parser.add_argument("--seconds", type=float, help="the time limit of every plan")
    args = parser.parse_args()
    print(
        "| network | budget | status | DRAM bytes planned | copied | groups | operators whole"
        " | largest difference |"
    )
    print("|---|---|---|--:|--:|--:|--:|--:|")
    limit = () if args.seconds is None else ("--time-limit", str(args.seconds))
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        for name, budget in product(args.networks, args.budget):
            source = (name, "--dtype", "int8") if Path(name).suffix else (f"zoo:{name}",)
            printed("plan", *source, "--fuse", "--budget", budget, *limit, "-o", str(path))
            plan = json.loads(path.read_text())
            report = printed("run", str(path))
            grouped = sum(len(group["operators"]) for group in plan["groups"])
            whole = len(plan["network"]["operators"]) - grouped
            keys = ("compulsory", "spill", "reload", "weights")
            copied = sum(report["moved"][key] for key in keys)
            difference = report["relative_difference"]
            fine = copied == plan["result"]["dram_bytes"] and difference <= (1e-4 if plan["groups"] else 0)
            wrong += not fine
            print(
                f"| {Path(name).name} | {budget} | {plan['result']['status']}"
                f" | {plan['result']['dram_bytes']:,} | {copied:,} | {len(plan['groups'])}"
                f" | {whole} | {difference:.1e} |{'' if fine else ' WRONG'}",
                flush=True,
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
