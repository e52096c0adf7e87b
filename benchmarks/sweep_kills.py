"""Kill a sweep's coordinator and its workers with SIGKILL, again and again, and see whether anything is lost.

    python benchmarks/sweep_kills.py [--points 2000] [--rounds 10] [--seed 0]

An undisturbed sweep first. Then the same one in another folder: in every round a worker is killed at a random
moment, and at a later one the coordinator; then the sweep is started again. After every kill the journal is
read: what was answered must stay as it was, to the byte (its `seconds` too, so it was not computed again). At
the end the tables must be the same but for `seconds`. Needs Linux (/proc).
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SPEC = """
title = "kills"
networks = ["zoo:squeezenet1_0", "zoo:resnet18", "zoo:mobilenet_v1", "zoo:alexnet", "zoo:caffenet"]
chips = ["optimus"]
planners = ["plan", "fuse"]
budgets = [{{ from = "16KiB", to = "8MiB", steps = {steps} }}]
[chip]
array = ["8x8", "16x16"]
"""


def start(spec: Path, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "onchip.cli", "sweep", str(spec), "-o", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def workers(process: subprocess.Popen[bytes]) -> list[int]:
    try:
        return [
            int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        ]
    except OSError:
        return []


def kill(pid: int) -> bool:
    try:
        # SIGKILL cannot be caught: the process stops where it is.
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def answers(folder: Path) -> dict[str, str]:
    path = folder / "journal.sqlite"
    if not path.exists():
        return {}
    base = sqlite3.connect(path, timeout=10)
    try:
        return dict(base.execute("SELECT key, figures FROM answers"))
    except sqlite3.OperationalError:  # killed before the tables were made
        return {}
    finally:
        base.close()


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "table.csv").open(newline="") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--points", type=int, default=2_000, help="a multiple of 20")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        spec = home / "spec.toml"
        spec.write_text(SPEC.format(steps=given.points // 20))
        began = time.monotonic()
        assert start(spec, home / "calm").wait() == 0
        calm = time.monotonic() - began
        began = time.monotonic()
        assert start(spec, home / "calm").wait() == 0
        idle = time.monotonic() - began
        print(
            f"undisturbed: {len(table(home / 'calm')):,} points in {calm:.1f} s ({idle:.1f} s with all there)"
        )

        folder, known = home / "killed", dict[str, str]()
        killed = [0, 0]
        while killed[1] < given.rounds:
            process = start(spec, folder)
            # After the start, a random part of what is left of the work, so that the rounds share it.
            left = (calm - idle) * (1 - len(known) / given.points)
            wait = 0.7 * idle + chance.uniform(0, 2 * left / (given.rounds - killed[1] + 1))
            first = chance.uniform(0.3, 0.95) * wait
            time.sleep(first)
            while not (hit := workers(process)) and process.poll() is None:
                time.sleep(0.01)  # it has none yet
            killed[0] += bool(hit) and kill(chance.choice(hit))
            time.sleep(wait - first)
            if process.poll() is not None:
                assert process.returncode == 0
                raise SystemExit("the sweep was over before all kills: give another seed, or more points")
            process.kill()
            process.wait()
            killed[1] += 1
            now = answers(folder)
            assert known.items() <= now.items(), "an answer was lost, or computed again"
            print(
                f"round {killed[1]}: killed after {wait:.1f} s, {len(now):,} answers,"
                f" {len(now) - len(known):,} of them new"
            )
            known = now
        assert start(spec, folder).wait() == 0
        assert known.items() <= answers(folder).items(), "an answer was lost, or computed again"
        same = table(home / "calm") == table(folder)
        failed = sum(row["status"] == "failed" for row in table(folder))
        print(f"{killed[1]} coordinators and {killed[0]} workers killed; {failed} points failed")
        print(f"the same table: {'yes' if same else 'NO'}")
        sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
