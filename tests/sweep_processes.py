"""Sweeps as processes of their own: started, watched, killed, and what they leave."""

from __future__ import annotations

import csv
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

SPEC = """
networks = ["zoo:squeezenet1_0", "zoo:resnet18"]
chips = ["optimus"]
planners = ["fuse"]
budgets = [{ from = "16KiB", to = "8MiB", steps = 60 }]
"""


def start(spec: Path, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "onchip.cli", "sweep", str(spec), "-o", str(folder), *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> int:
    process.communicate()
    return process.returncode


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def until(what: Callable[[], object], seconds: float = 60) -> None:
    """Wait for something that happens as soon as the machine gets to it."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def answers(folder: Path) -> dict[str, str]:
    base = sqlite3.connect(folder / "journal.sqlite", timeout=10)
    try:
        return dict(base.execute("SELECT key, figures FROM answers"))
    finally:
        base.close()


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "table.csv").open(newline="") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


def log_bytes(folder: Path) -> int:
    """How much has been written to the journal's log: it grows with every batch of answers."""
    path = folder / "journal.sqlite-wal"
    return path.stat().st_size if path.exists() else 0
