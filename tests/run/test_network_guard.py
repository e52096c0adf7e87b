"""A network whose C is linked with a word too little of RAM does not run to its end on the emulated core."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from onchip.base.errors import EmulationFailed
from onchip.machines.board import Board, load_board
from onchip.microcontroller.emulator import verify as verifying
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.load import int8_model
from onchip.microcontroller.network import network_of
from onchip.microcontroller.project import Sources, sources_of
from onchip.microcontroller.segments import plan

pytestmark = pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("arm-none-eabi-gcc", "qemu-system-arm", "cc")),
    reason="needs gcc-arm-none-eabi and qemu-system-arm",
)

BOARDS = [load_board("nucleo-f411re"), load_board("nucleo-f767zi")]


@pytest.fixture(scope="module")
def made() -> tuple[Int8Model, Sources]:
    model = int8_model("made:kws")
    return model, sources_of(plan(network_of(model), 1 << 20), model)


@pytest.mark.thorough
@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.core)
def test_an_arena_of_a_word_less_than_the_plan_faults(
    board: Board, made: tuple[Int8Model, Sources], tmp_path: Path
) -> None:
    model, sources = made
    assert verifying.verify(sources, model, board, tmp_path, runs=1).match
    has, less = (
        f"static int8_t arena[{n}]" for n in (sources.arena_bytes, (sources.arena_bytes - 1) // 4 * 4)
    )
    assert sources.files["model.c"].count(has) == 1
    files = {**sources.files, "model.c": sources.files["model.c"].replace(has, less)}
    with pytest.raises(EmulationFailed, match="which is not the program's"):
        verifying.verify(replace(sources, files=files), model, board, tmp_path, runs=1)


@pytest.mark.thorough
@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.core)
def test_a_stack_of_a_word_less_than_it_takes_faults(
    board: Board, made: tuple[Int8Model, Sources], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "STACK_MARGIN", -8)  # stacks are of whole double words
    with pytest.raises(EmulationFailed, match="overflowed its stack"):
        verifying.verify(made[1], made[0], board, tmp_path, runs=1)
