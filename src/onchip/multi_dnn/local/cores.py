"""The cores of this machine, one for each unit."""

from __future__ import annotations

import os
from pathlib import Path

from onchip.base.errors import UsageError

__all__ = ["pick_cores"]


def pick_cores(units: int) -> tuple[int, ...]:
    """Return a distinct core for each unit; no two threads of one physical core while there are enough.

    Raises `UsageError` in one line where processes cannot be pinned or fewer CPUs than that (or than two) may
    be used.
    """
    if not hasattr(os, "sched_setaffinity") or not hasattr(os, "memfd_create"):
        raise UsageError("needs Linux: processes are pinned to cores", item="local")
    mine = sorted(os.sched_getaffinity(0))
    needed = max(units, 2)
    if len(mine) < needed:
        count = "1 CPU" if len(mine) == 1 else f"{len(mine)} CPUs"
        raise UsageError(
            f"needs {needed} CPUs, one for each unit; this process may use {count}", item="local"
        )
    seen: set[str] = set()
    firsts: list[int] = []
    others: list[int] = []
    for core in mine:
        siblings = _siblings(core)
        (others if siblings in seen else firsts).append(core)
        seen.add(siblings)
    return tuple((firsts + others)[:units])


def _siblings(core: int) -> str:
    """Return the threads of the core's physical core; the core itself where they are not known."""
    path = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
    try:
        return path.read_text().strip()
    except OSError:
        return str(core)
