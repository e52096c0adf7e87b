"""How time, memory and the gap grow with the number of operators: the tables of docs/scale.md.

    python benchmarks/scale.py [--operators 100,300,1000,3000,10000] [--networks transformer,nas,llm]
                               [--strategies greedy,beam,dnc,exact] [--budget MH] [--time-limit 40]

Every row is one `onchip plan FILE.json -o PLAN.json` in a process of its own, reading, checking and writing
included: its wall clock, its CPU seconds and its largest resident memory. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from generators import GENERATORS


def measured(command: list[str]) -> tuple[float, float, float]:
    """Wall-clock seconds, CPU seconds and MB of a command's process."""
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    kilobytes = used.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, kilobytes / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--operators", default="100,300,1000,3000,10000")
    parser.add_argument("--networks", default=",".join(GENERATORS))
    parser.add_argument("--strategies", default="greedy,beam,dnc,exact")
    parser.add_argument("--budget", default="MR")
    parser.add_argument("--time-limit", type=float, default=40.0)
    args = parser.parse_args()
    print(
        f"<!-- {platform.machine()}, {os.cpu_count()} cores shared; Python {platform.python_version()};",
        end=" ",
    )
    print(f"--budget {args.budget} --time-limit {args.time_limit:g} -->")
    print("| network | operators | strategy | status | traffic | bound | gap | wall s | CPU s | MB |")
    print("|---|--:|---|---|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for kind in args.networks.split(","):
            for count in map(int, args.operators.split(",")):
                model, out = Path(folder) / f"{kind}-{count}.json", Path(folder) / "plan.json"
                # In a process of its own: a child's memory is never counted below its parent's.
                maker = Path(__file__).with_name("generators.py")
                measured([sys.executable, str(maker), kind, str(count), "-o", str(model)])
                for strategy in args.strategies.split(","):
                    command = [sys.executable, "-m", "onchip.cli", "plan", str(model), "-o", str(out)]
                    command += ["--no-fuse", "--budget", args.budget, "--time-limit", str(args.time_limit)]
                    wall, cpu, memory = measured([*command, "--strategy", strategy])
                    plan = json.loads(out.read_text())
                    result, operators = plan["result"], len(plan["network"]["operators"])
                    del plan
                    traffic, bound = result["traffic_bytes"], result["lower_bound_bytes"]
                    gap = f"{(traffic - bound) / traffic:.1%}" if traffic else "0.0%"
                    print(
                        f"| {kind} | {operators:,} | {strategy} | {result['status']} "
                        f"| {traffic:,} | {bound:,} | {gap} | {wall:.1f} | {cpu:.1f} | {memory:.0f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
