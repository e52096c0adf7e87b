"""The C of networks with every kind of layer, in the form of every core: C99 and C++17 without a warning."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from microcontroller.sixteen_networks import Net, everything
from microcontroller.wide_networks import WIDE
from onchip.machines.board import load_board
from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.made.wide import WideBuilder
from onchip.microcontroller.network import network_of, states_of
from onchip.microcontroller.project import sources_of
from onchip.microcontroller.project.write import project_files, write_project
from onchip.microcontroller.result.microcontroller_plan import planned_for
from onchip.microcontroller.segments import SegmentOptions
from onchip.plans import Plan

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
LANGUAGES = {
    "gcc": ("-std=c99", "-O1", "-S", "-o", "/dev/null"),
    "g++": ("-std=c++17", "-xc++", "-fsyntax-only"),
}
"""What the optimiser warns of is the same in both languages: it works once."""


@cache
def network(name: str) -> tuple[Int8Model, Plan]:
    if name == "16 bits":
        n = Net(1)
        model = model_of(n.file(*everything(n)), name=name, where=name)
    else:
        b = WideBuilder(3)
        model = model_of(b.file(*WIDE[name](b)), name=name, where=name)
    return model, planned_for(network_of(model), 1 << 22, SegmentOptions(), states_of(model)).plan


@pytest.mark.thorough
@pytest.mark.parametrize("forms", get_args(Forms))
@pytest.mark.parametrize("name", [*WIDE, "16 bits"])
def test_it_compiles_without_a_warning(name: str, forms: Forms, tmp_path: Path) -> None:
    model, plan = network(name)
    sources = sources_of(plan, model, forms=forms)
    write_project(project_files(sources, model, load_board("nucleo-f411re")), tmp_path / "p")
    for compiler, language in LANGUAGES.items():
        if shutil.which(compiler) is None:
            pytest.skip(f"needs {compiler}")
        command = [compiler, *language, *WARNINGS, "-I."]
        for file in ("model.c", "kernels.c", "weights.c"):
            done = subprocess.run(
                [*command, file], cwd=tmp_path / "p", capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr[:2000]
