"""Points per second and core of a sweep of 10,000 points.

    python benchmarks/sweep_rate.py [--points 10000] [--jobs 1]

Prints wall-clock figures, and the same by CPU time of all processes together, which a busy machine
blurs less.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SPEC = """
networks = ["zoo:squeezenet1_0", "zoo:resnet18", "zoo:resnet50", "zoo:mobilenet_v2", "zoo:vgg16"]
chips = ["optimus"]
planners = ["plan", "fuse"]
budgets = [{{ from = "64KiB", to = "16MiB", steps = {steps} }}]
[plan]
strategy = "greedy"
[chip]
array = ["8x8", "16x16"]
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--points", type=int, default=10_000, help="a multiple of 20")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        spec = Path(name) / "spec.toml"
        spec.write_text(SPEC.format(steps=given.points // 20))
        command = [sys.executable, "-m", "onchip.cli", "sweep", str(spec), "--jobs", str(given.jobs)]
        for what in ("computed", "all there already"):
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(
                f"{what}: {given.points:,} points, {given.jobs} workers:"
                f" {wall:.1f} s of wall, {cpu:.1f} s of CPU"
            )
            print(f"  {given.points / wall / given.jobs:,.0f} points a second and core by the wall clock")
            print(f"  {given.points / cpu:,.0f} points a second of CPU time")


if __name__ == "__main__":
    main()
