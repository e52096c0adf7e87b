"""The table of `onchip boards`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from onchip.machines.board import Board
from onchip.report.grid import Grid
from onchip.report.wording import short_size, visible

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["data", "listed"]


def data(board: Board) -> dict[str, Any]:
    """Return the figures of a board, for JSON."""
    found: dict[str, Any] = msgspec.to_builtins(board)
    return found


def listed(found: Sequence[Board], *, whole: bool) -> Group:
    """Return the boards, a line each, with the `whole` description or its first words."""
    from rich.console import Group
    from rich.text import Text

    grid = Grid(
        ("board", False),
        ("core", False),
        ("RAM", True),
        ("flash", True),
        ("MHz", True),
        ("what it is", False),
        whole_names=True,
    )
    for board in found:
        said = board.description if whole else re.split(r" \(|[:,] ", board.description)[0]
        grid.add_row(
            visible(board.name),
            board.core.removeprefix("cortex-").replace("plus", "+").upper(),
            short_size(board.ram_bytes),
            short_size(board.flash_bytes),
            "-" if board.clock_hz is None else f"{board.clock_hz / 1e6:,.4g}",
            visible(said, 200) if said else "-",
        )
    return Group(
        grid,
        Text(),
        Text(
            "RAM: its largest contiguous piece; MHz: the most that its core may run at; -: not stated."
            " onchip mcu MODEL --board NAME plans for one, onchip mcu MODEL --fit says which of them hold a"
            " network."
        ),
    )
