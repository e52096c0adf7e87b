"""The command that follows what `onchip mcu` has printed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from onchip.microcontroller.result.board_fits import BoardFit
from onchip.microcontroller.result.microcontroller import Microcontroller
from onchip.microcontroller.result.microcontroller_several import SeveralNetworks

__all__ = ["after_fit", "after_plan", "after_several"]


def after_fit(model: str, rows: Sequence[BoardFit]) -> str:
    """Return the command after the table of boards: the page of the smallest that holds the network."""
    fitting = [row.board for row in rows if row.fits]
    if not fitting:
        return f"Next: {_command(model, '--front')} shows all plans with less RAM and more work."
    board = min(fitting, key=lambda one: (one.ram_bytes + one.flash_bytes, one.name))
    page = _command(model, "--board", board.name, "--report", "report.html")
    return f"Next: {page} shows what takes the room on the smallest of them."


def after_plan(model: str, board: str, made: Microcontroller, project: str | None) -> str:
    """Return the command after one board's figures."""
    if made.lacks("RAM"):
        return f"Next: {_command(model, '--front')} shows all plans with less RAM and more work."
    if made.short:
        return f"Next: {_command(model, '--fit')} shows which boards have the flash."
    if made.run is None:
        run = _command(model, "--board", board, "--run", "-o", "project")
        return f"Next: {run} builds it, runs it on the emulated core and compares every byte."
    if project is None:
        return f"Next: {_command(model, '--board', board, '-o', 'project')} writes its C."
    return _library(project)


def after_several(models: Sequence[str], board: str, made: SeveralNetworks, project: str | None) -> str:
    """Return the command after the figures of several networks."""
    model, *others = models
    if made.short:
        return f"Next: {_command(model, '--fit')} shows which boards have more room, for each network alone."
    if made.run is None:
        run = _command(model, *others, "--board", board, "--run", "-o", "project")
        return f"Next: {run} builds them, runs them in turns on the emulated core and compares every byte."
    if project is None:
        return f"Next: {_command(model, *others, '--board', board, '-o', 'project')} writes their C."
    return _library(project)


def _library(project: str) -> str:
    make = f"make -C {shlex.quote(project)}"
    return f"Next: {make} builds the library for your firmware; {project}/README.md says how to call it."


def _command(model: str, *more: str) -> str:
    return shlex.join(["onchip", "mcu", model, *more])
