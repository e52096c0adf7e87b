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

__all__ = ["Toolchain", "call", "find_toolchain"]

PREFIX = "arm-none-eabi-"
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


@cache
def find_toolchain() -> Toolchain:
    """Return every tool that building and emulating needs; raises `MissingTool` naming the first missing."""
    return Toolchain(
        gcc=_find(f"{PREFIX}gcc", "gcc-arm-none-eabi libnewlib-arm-none-eabi"),
        nm=_find(f"{PREFIX}nm", "binutils-arm-none-eabi"),
        size=_find(f"{PREFIX}size", "binutils-arm-none-eabi"),
        qemu=_find("qemu-system-arm", "qemu-system-arm"),
        cc=_find("cc", "gcc"),
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
