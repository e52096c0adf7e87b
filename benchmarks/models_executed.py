"""Joint plans of model files, executed: the table of large models in docs/execution.md.

    .venv/bin/python benchmarks/models_executed.py MODEL ... [--budget SIZE ...] [--seconds 60]

Plans each model at 8 bits with `--fuse`, executes the plan in a process of its own, and prints what it moves,
the groups in bands and in nests, the CPU seconds and the peak memory of executing, and the largest difference
from unoptimised onnxruntime. Exit code 1 where one is not executed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from pathlib import Path
from typing import Any

import onchip
from onchip.plans import Nest


def executed(plan: onchip.Plan, answer: Any) -> None:
    """Send CPU seconds, peak memory and the largest difference of an execution, or what is wrong."""
    began = time.process_time()
    try:
        report = plan.run()
    except onchip.OnchipError as problem:
        answer.send(str(problem))
        return
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    answer.send((time.process_time() - began, memory, report.relative_difference))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--budget", nargs="+", default=["256KiB", "1MiB"])
    parser.add_argument("--seconds", type=float, default=60, help="for a plan")
    asked = parser.parse_args()
    print(
        "| model | budget | DRAM bytes | groups | in nests | CPU s | peak memory GiB | largest difference |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    wrong = 0
    for model in asked.models:
        for budget in asked.budget:
            plan = onchip.plan(model, budget=budget, dtype="int8", fuse=True, time_limit=asked.seconds)
            nests = sum(isinstance(group.tiling, Nest) for group in plan.groups)
            answers, answer = multiprocessing.Pipe(duplex=False)
            multiprocessing.get_context("fork").Process(target=executed, args=(plan, answer)).start()
            found = answers.recv()
            wrong += isinstance(found, str)
            cells = found if isinstance(found, str) else "{:.1f} | {:.1f} | {:.1e}".format(*found)
            about = f"{plan.result.dram_bytes:,} | {len(plan.groups)} | {nests}"
            print(f"| {model.name.split('.')[0]} | {budget} | {about} | {cells} |", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
