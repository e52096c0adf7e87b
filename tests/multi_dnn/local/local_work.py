"""Workloads over real networks, for tests of execution on this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from onchip.machines.contention import NO_CONTENTION
from onchip.machines.soc import SoC, Unit
from onchip.multi_dnn.local.pieces import Cut, cut
from onchip.multi_dnn.profile import Group, Profile
from onchip.multi_dnn.workload import Job, Workload
from onchip.readers.source import Source

UNITS = ("onnxruntime", "onnxruntime-plain")

two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")


def in_groups(source: Source, groups: int, seed: int = 0) -> Cut:
    """The network's operators in about equal groups."""
    count = len(source.network.operators)
    groups = min(groups, count)
    bounds = [count * n // groups for n in range(groups + 1)]
    return cut(source, [range(a, b) for a, b in pairwise(bounds)], seed)


def profile_of(cut: Cut, units: Sequence[str] = UNITS) -> Profile:
    """A time of 1 ms for every group, wherever."""
    zero = (0.0,) * len(units)
    groups = tuple(Group(f"g{n}", (1.0,) * len(units), zero, zero, zero) for n in range(len(cut.groups)))
    return Profile(cut.network.name, "local", tuple(units), groups)


def workload_of(
    *jobs: tuple[Cut, int, tuple[str, ...]],
    frames: int = 1,
    pipelined: bool = True,
    units: Sequence[str] = UNITS,
) -> Workload:
    """Jobs n0, n1, ... from (network, iterations, after)."""
    made = tuple(
        Job(f"n{n}", profile_of(cut, units), iterations, after)
        for n, (cut, iterations, after) in enumerate(jobs)
    )
    return Workload(SoC("local", tuple(map(Unit, units)), 1.0, 1.0), made, NO_CONTENTION, frames, pipelined)


def shared_memory() -> set[str]:
    """The segments in the machine's named shared memory; folders there belong to other tests."""
    folder = Path("/dev/shm")
    return {entry.name for entry in folder.iterdir() if entry.is_file()} if folder.is_dir() else set()


def is_gone(pid: int) -> bool:
    """Whether a process has ended (a corpse that nobody has taken away yet counts)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except FileNotFoundError:
        return True
