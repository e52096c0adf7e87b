"""A network's C built for a board, where there is a compiler, and run, where that is asked for."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from onchip.errors import DoesNotFitBoard, MissingTool
from onchip.microcontroller import Microcontroller
from onchip.run.mcu.toolchain import find_toolchain
from onchip.run.mcu.verify import link, verify

if TYPE_CHECKING:
    from onchip.board import Board
    from onchip.mcu.model import Int8Model
    from onchip.mcu.project import Sources
    from onchip.planned import Plan

__all__ = ["built"]


def built(model: Int8Model, board: Board, plan: Plan, sources: Sources, *, runs: int) -> Microcontroller:
    """The network on the board, run on `runs` inputs; 0 only links it, where there is a compiler.

    Raises `MissingTool` if it is to run and cannot, `EmulationFailed`.
    """
    short = _constants_beyond(board, sources)
    if not runs:
        try:
            find_toolchain()
        except MissingTool:
            return Microcontroller(model, board, plan, sources, None, short, None)
    with tempfile.TemporaryDirectory(prefix="onchip-") as name:
        try:
            if not runs:
                image = link(sources, model, board, Path(name))
                return Microcontroller(model, board, plan, sources, image, (), None)
            run = verify(sources, model, board, Path(name), runs=runs)
            return Microcontroller(model, board, plan, sources, run.image, (), run)
        except DoesNotFitBoard as problem:
            return Microcontroller(model, board, plan, sources, None, problem.short, None)


def _constants_beyond(board: Board, sources: Sources) -> tuple[tuple[str, int, int], ...]:
    """What is certain to be missing before anything is compiled."""
    constants = sum(sources.constant_bytes.values())
    needs = (("RAM", sources.arena_bytes, board.ram_bytes), ("flash", constants, board.flash_bytes))
    return tuple(row for row in needs if row[1] > row[2])
