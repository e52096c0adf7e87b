"""One command in a child: under limits, in a folder of its own, with everything it left behind found."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from hostile.case import Case, lay

__all__ = ["Ended", "run"]

ADDRESSES = 6_000_000_000
"""Bytes of addresses that a child may take."""

MOST_CPU, MOST_ELAPSED = 24.0, 300.0
"""Processor seconds of the whole family after which it is ended, and seconds whatever it does."""

START = "from onchip_command import main; main()"


@dataclass(frozen=True)
class Ended:
    """How a command ended: None as `code` is one that had to be ended.

    `elapsed` are seconds without those in which the process waited for a core, `cpu` processor seconds of the
    process and its children, `resident` the bytes of the largest of them.
    """

    code: int | None
    out: str
    err: str
    cpu: float
    elapsed: float
    resident: int
    markers: tuple[str, ...]
    left: tuple[str, ...]
    pages: tuple[str, ...]
    tables: tuple[str, ...]


def run(case: Case, folder: Path) -> Ended:
    """Try a case in an empty folder."""
    files, out, marker, home, temporary = (
        folder / name for name in ("files", "out", "marker", "home", "temporary")
    )
    for made in (files, out, marker, home, temporary):
        made.mkdir()
    lay(files, case.files())
    before = _tree(files)
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("ONCHIP_", "COV_", "COVERAGE_"))},
        "ONCHIP_MARKER": str(marker),
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
    }
    argv = [part.replace("OUT/", f"{out}/") for part in case.argv]
    with open(folder / "stdout", "wb") as stdout, open(folder / "stderr", "wb") as stderr:
        child = subprocess.Popen(
            [sys.executable, "-P", "-c", START, *argv],
            cwd=files / case.cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            preexec_fn=_limit,
        )
    began = time.monotonic()
    ended, spent, look = True, 0.0, began
    while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() >= look:
            spent, look = sum(_cpu(pid) for pid in _family(marker)), time.monotonic() + 0.5
        if spent > MOST_CPU or time.monotonic() - began > MOST_ELAPSED:
            ended = False
            for pid in _family(marker):
                _kill(pid)
        time.sleep(0.02)
    elapsed = time.monotonic() - began - _waited(child.pid)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)  # reaped here, for what it used
    orphans = [pid for pid in _family(marker) if not _gone(pid)]
    for pid in orphans:
        _kill(pid)
    return Ended(
        code=child.returncode if ended else None,
        out=_text(folder / "stdout"),
        err=_text(folder / "stderr"),
        cpu=used.ru_utime + used.ru_stime,
        elapsed=elapsed,
        resident=used.ru_maxrss * 1024,
        markers=tuple(sorted(_tree(marker))),
        left=(
            *(f"process {pid}" for pid in orphans),
            *sorted(f"home/{name}" for name in _tree(home)),
            *sorted(f"temporary/{name}" for name in _tree(temporary)),
            *sorted(_tree(files) - before),
            *sorted(name for name in _tree(out) if Path(name).name.startswith(".") or name.endswith(".tmp")),
        ),
        pages=tuple(_text(out / name) for name in case.pages if (out / name).exists()),
        tables=tuple(_text(out / name) for name in case.tables if (out / name).exists()),
    )


def _limit() -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def _tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def _family(marker: Path) -> list[int]:
    """The processes that were started with this marker."""
    wanted = b"ONCHIP_MARKER=" + os.fsencode(marker)
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if wanted in Path(entry.path, "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def _cpu(pid: int) -> float:
    """Processor seconds of a process and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _waited(pid: int) -> float:
    """Seconds in which a process that could run had no core."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def _gone(pid: int) -> bool:
    """Whether a process ends of itself within a moment: a child may outlive its parent by so much."""
    for _ in range(50):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
