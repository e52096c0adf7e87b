"""The programs that build and run firmware: their paths, or the line that installs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from onchip.base.errors import BuildFailed, MissingTool
from onchip.base.guard import dies_with_us
from onchip.machines.cores import Family

__all__ = ["Toolchain", "call", "failure_of", "find_toolchain"]

SECONDS = 600.0
"""The time limit of a tool in seconds: more than any compilation takes, even on a busy machine."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Paths of the cross compiler, its tools, the emulator, and the host's compiler."""

    gcc: str
    nm: str
    size: str
    qemu: str
    cc: str
    libraries: str = ""
    """The option that names the C library for the linker."""


@dataclass(frozen=True, slots=True)
class _Programs:
    """The names of a family's programs, the packages that have them, and how programs are linked."""

    prefix: str
    compiler: str
    binutils: str
    emulator: str
    emulators: str
    libraries: str


_PROGRAMS: dict[Family, _Programs] = {
    "arm": _Programs(
        "arm-none-eabi-",
        "gcc-arm-none-eabi libnewlib-arm-none-eabi",
        "binutils-arm-none-eabi",
        "qemu-system-arm",
        "qemu-system-arm",
        "--specs=nano.specs",
    ),
    "riscv": _Programs(
        "riscv64-unknown-elf-",
        "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf",
        "binutils-riscv64-unknown-elf",
        "qemu-system-riscv32",
        "qemu-system-misc",
        "--specs=picolibc.specs",
    ),
}


@cache
def find_toolchain(family: Family = "arm") -> Toolchain:
    """Return every tool that building and emulating needs; raises `MissingTool` naming the first missing."""
    names = _PROGRAMS[family]
    return Toolchain(
        gcc=_find(f"{names.prefix}gcc", names.compiler),
        nm=_find(f"{names.prefix}nm", names.binutils),
        size=_find(f"{names.prefix}size", names.binutils),
        qemu=_find(names.emulator, names.emulators),
        cc=_find("cc", "gcc"),
        libraries=names.libraries,
    )


def _find(program: str, packages: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise MissingTool(program, packages)
    return found


def call(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a tool in `folder` and return what it printed; the caller judges a nonzero exit status.

    Its temporary files lie there too, because a killed compiler leaves them.
    Raises `BuildFailed` for one that does not end.
    """
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "TMPDIR": str(folder.resolve())},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
            preexec_fn=dies_with_us(),
        )
    except subprocess.TimeoutExpired:
        raise BuildFailed(f"{Path(command[0]).name} did not end within {SECONDS:g} s") from None


def failure_of(printed: str) -> BuildFailed:
    """Return the first error of the compiler or linker."""
    lines = [line for line in printed.splitlines() if "error" in line or "undefined reference" in line]
    lines += [line for line in printed.splitlines() if "overflowed by" in line]
    return BuildFailed((lines or printed.splitlines() or ["no reason given"])[0])
