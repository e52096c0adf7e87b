"""Executed instructions, loads and stores, counted by a plugin of the emulator, compiled where it runs."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

from onchip.base import guard
from onchip.base.errors import BuildFailed
from onchip.base.figures import figure
from onchip.machines.cores import Family
from onchip.microcontroller.emulator.build import Symbol
from onchip.microcontroller.emulator.toolchain import call, find_toolchain

__all__ = ["Counts", "counted", "plugin"]

_MAP, _COUNTS = "counted.map", "counts.txt"


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of executed instructions; loads and stores are 0 unless they were counted."""

    instructions: int = figure(0, key="instructions", heading="instructions", place=1)
    loads: int = figure(0, key="loads", heading="loads", place=3)
    stores: int = figure(0, key="stores", heading="stores", place=4)

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __floordiv__(self, runs: int) -> Counts:
        return Counts(*(getattr(self, f.name) // runs for f in fields(self)))


def plugin(
    folder: Path, functions: Iterable[Symbol], marks: Mapping[int, int], family: Family, *, memory: bool
) -> list[str]:
    """Return the emulator's arguments to count into `folder`; `marks` maps addresses to numbers."""
    rows = [f"f {f.address:x} {i + 1}" for i, f in enumerate(functions)]
    rows += [f"m {address:x} {number + 1}" for address, number in marks.items()]
    (folder / _MAP).write_text("\n".join(rows) + "\n")
    options = f"counts={_COUNTS},map={_MAP},memory={int(memory)}"
    return ["-plugin", f"{_compiled(family)},{options}"]


def counted(
    folder: Path, functions: tuple[Symbol, ...]
) -> tuple[Counts, dict[str, Counts], dict[int, Counts]]:
    """Return the plugin's counts in `folder`: in all, by function, by mark (-1: before the first)."""
    by_function: dict[str, Counts] = {}
    by_mark: dict[int, Counts] = {}
    for line in (folder / _COUNTS).read_text().splitlines():
        kind, index, *numbers = line.split()
        counts, i = Counts(*map(int, numbers)), int(index) - 1
        if kind == "m":
            by_mark[i] = counts
        else:
            name = functions[i].name if i >= 0 else ""
            by_function[name] = by_function.get(name, Counts()) + counts
    return sum(by_mark.values(), Counts()), by_function, by_mark


_folders: list[TemporaryDirectory[str]] = []
"""Removed with the process."""


@cache
def _compiled(family: Family) -> Path:
    """Return the plugin for this machine's emulator of a family, compiled once a process."""
    tools = find_toolchain(family)
    kept = TemporaryDirectory(prefix="onchip-plugin-")
    _folders.append(kept)
    guard.keep(kept.name)
    folder = Path(kept.name)
    source = resources.files("onchip.microcontroller.emulator") / "firmware" / "counting.c"
    (folder / "counting.c").write_text(source.read_text())
    version = subprocess.run([tools.qemu, "--version"], capture_output=True, text=True, check=False).stdout
    major = re.search(r"version (\d+)", version)
    spoken = 1 if major is None or int(major[1]) < 9 else 2
    library = folder / "counting.so"
    done = call(
        [tools.cc, "-O2", "-shared", "-fPIC", f"-DPLUGIN_VERSION={spoken}", "-o", library.name, "counting.c"],
        folder,
    )
    if done.returncode:
        raise BuildFailed(f"the emulator's plugin: {(done.stderr.splitlines() or ['no reason given'])[0]}")
    return library
