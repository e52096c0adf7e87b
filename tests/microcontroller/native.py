"""A network's project built with this machine's compiler, every fault of C an abort, and run."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from onchip.machines.board import load_board
from onchip.microcontroller.emulator.verify import inputs_of
from onchip.microcontroller.int8.model import Int8, Int8Model
from onchip.microcontroller.int8.reference import run as reference_run
from onchip.microcontroller.project import sources_of
from onchip.microcontroller.project.write import project_files, write_project
from onchip.plans import Plan

needs_compiler = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("make") is None, reason="needs gcc and make"
)

WARNINGS = "-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Werror"
SANITIZED = "-g -fsanitize=address,undefined -fno-sanitize-recover=all"


def outputs_of(plan: Plan, model: Int8Model, folder: Path, *, inputs: int = 2) -> tuple[bytes, bytes]:
    """What the project makes of random inputs, and what the reference makes of them."""
    given = inputs_of(model, inputs)
    made = made_of(plan, model, folder, given)
    return made, b"".join(reference_run(model, [x])[0].tobytes() for x in given)


def made_of(
    plan: Plan, model: Int8Model, folder: Path, inputs: Sequence[Int8], *, flags: str = SANITIZED
) -> bytes:
    """The outputs of the plan's project for these inputs, one behind the other; it has no warning."""
    sources = sources_of(plan, model)
    write_project(project_files(sources, model, load_board("nucleo-f411re")), folder)
    made = subprocess.run(
        ["make", "-s", "CC=gcc", "OPTIMISE=-O0", f"CFLAGS={WARNINGS} {flags}", "example"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr[:2000]
    ran = subprocess.run(
        ["./example"],
        cwd=folder,
        input=b"".join(x.tobytes() for x in inputs),
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[:2000]
    return ran.stdout


def differences(made: bytes, wanted: bytes) -> int:
    """Bytes that differ; outputs are of one size."""
    assert len(made) == len(wanted)
    return int(np.count_nonzero(np.frombuffer(made, np.int8) != np.frombuffer(wanted, np.int8)))
