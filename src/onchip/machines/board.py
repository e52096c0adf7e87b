"""Boards: microcontrollers as programs see them. TOML files with the unit in every key's name."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated

import msgspec

from onchip.base.close_names import did_you_mean
from onchip.base.errors import ChipError
from onchip.base.files import read_bytes
from onchip.base.toml_file import parse_toml
from onchip.machines.cores import CORES, Core, CoreType, core_names

__all__ = ["MOST_BYTES", "Board", "Core", "builtin_boards", "load_board", "parse_board"]

MOST_BYTES = 256 << 20
"""The limit of a memory's size; more than any board has."""

_Bytes = Annotated[int, msgspec.Meta(ge=1024, le=MOST_BYTES)]
_Hertz = Annotated[int, msgspec.Meta(ge=1_000, le=10_000_000_000)]
_Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


@dataclass(frozen=True, slots=True)
class Board:
    """A microcontroller: its core, and the bytes of RAM and flash that a program may use.

    `ram_bytes` is the largest piece of RAM that is contiguous: pools and stacks are not split. Floating point
    is not used. `clock_hz` is the most that its core may run at, if stated.
    """

    name: str
    core: Core
    ram_bytes: int
    flash_bytes: int
    description: str = ""
    clock_hz: int | None = None

    @property
    def core_type(self) -> CoreType:
        """The facts about its core."""
        return CORES[self.core]


class _Board(msgspec.Struct, forbid_unknown_fields=True):
    name: _Name
    core: Core
    ram_bytes: _Bytes
    flash_bytes: _Bytes
    description: str = ""
    clock_hz: _Hertz | None = None


def builtin_boards() -> tuple[Board, ...]:
    """Return the boards that come with onchip, by name."""
    folder = resources.files("onchip.machines") / "boards"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    return tuple(parse_board(file.read_bytes(), file.name) for file in files)


def load_board(name_or_path: str | Path) -> Board:
    """Return a built-in board by name, or a user's own by the path of its TOML file.

    Raises `ChipError` naming the file and key for anything missing, unknown, of the wrong type or out of
    range.
    """
    text = str(name_or_path)
    if text.endswith(".toml") or "/" in text:
        return parse_board(read_bytes(Path(text), error=ChipError), text)
    known = builtin_boards()
    for board in known:
        if board.name == text:
            return board
    hint = did_you_mean(text, (board.name for board in known))
    raise ChipError(
        f"no such board; {hint and hint + '? '}`onchip boards` lists those built in;"
        " or give the path of a .toml file",
        where=text,
    )


def parse_board(content: bytes, where: str) -> Board:
    """Return the board in a TOML file's bytes; `where` names the file in errors."""
    table = parse_toml(content, what="a board", where=where, error=ChipError)
    try:
        wire = msgspec.convert(table, _Board)
    except (msgspec.ValidationError, OverflowError) as problem:
        reason, _, at = str(problem).partition(" - at `$")
        if reason.startswith("Invalid enum value"):
            reason = f"{reason.removeprefix('Invalid enum value ')} is not one of {', '.join(core_names())}"
        raise ChipError(reason, where=where, item=at.rstrip("`").lstrip(".") or None) from None
    return Board(**msgspec.structs.asdict(wire))
