"""Plan and execute every built-in network: the table in docs/execution.md.

    python benchmarks/execute_zoo.py [--only PATTERN] [--budget MR]

Each network in a process of its own, through the command line, so that seconds and peak memory are those a
user sees. Prints a Markdown table; exits 1 when a network's tensors were not bit for bit onnxruntime's.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from onchip import zoo


def measured(*args: str) -> tuple[dict[str, object], float, int]:
    """What `onchip ARGS --json` printed, its CPU seconds and its peak memory in bytes."""
    command = [sys.executable, "-m", "onchip.cli", *args, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        printed = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(args)} exited {child.returncode}")
    return json.loads(printed), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="*", metavar="PATTERN")
    parser.add_argument("--budget", default="MR")
    args = parser.parse_args()
    print(f"<!-- {platform.machine()}, {os.cpu_count()} cores; Python {platform.python_version()} -->")
    print("| network | budget | traffic, counted | tensors | bit for bit | CPU s | peak memory GB |")
    print("|---|--:|--:|--:|---|--:|--:|")
    different = False
    with tempfile.TemporaryDirectory() as folder:
        for name in fnmatch.filter(zoo.names(), args.only):
            plan = Path(folder) / "plan.json"
            measured("plan", f"zoo:{name}", "--no-fuse", "--budget", args.budget, "-o", str(plan))
            report, seconds, memory = measured("run", str(plan))
            moved = report["moved"]
            assert isinstance(moved, dict)
            exact = "yes" if report["bit_exact"] else "NO"
            different = different or exact == "NO"
            traffic = moved["reload"] + moved["spill"]
            print(
                f"| {name} | {report['budget_bytes']:,} | {traffic:,} | {report['tensors']:,}"
                f" | {exact} | {seconds:.1f} | {memory / 1e9:.2f} |",
                flush=True,
            )
    sys.exit(different)


if __name__ == "__main__":
    main()
