"""Boards: the built-in ones, and what is refused of a user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from onchip.base.errors import ChipError
from onchip.machines.board import builtin_boards, load_board

GOOD = 'name = "mine"\ncore = "cortex-m4"\nram_bytes = 65536\nflash_bytes = 262144\n'


def test_the_papers_boards_are_built_in() -> None:
    assert {(b.name, b.core, b.ram_bytes) for b in builtin_boards()} >= {
        ("nucleo-f411re", "cortex-m4", 128 << 10),
        ("nucleo-f767zi", "cortex-m7", 512 << 10),
    }
    assert all(load_board(board.name) == board for board in builtin_boards())


def test_a_board_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "board.toml"
    path.write_text(GOOD)
    assert load_board(path).ram_bytes == 65536
    path.write_text(GOOD.replace("262144", "16777216"))
    assert load_board(path).flash_bytes == 16 << 20


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("cortex-m4", "cortex-m0"), "core: 'cortex-m0' is not one of cortex-m0plus, cortex-m3, .*, rv32imc"),
        (("65536", "-1"), "ram_bytes"),
        (("65536", "500000000"), "ram_bytes"),
        (("65536", "64.5"), "ram_bytes"),
        (("flash_bytes = 262144", ""), "flash_bytes"),
        (("flash_bytes", "flash"), "flash"),
        (('"mine"', '"../mine"'), "name"),
        (("=", "=="), "TOML"),
    ],
)
def test_a_wrong_board_names_file_and_key(change: tuple[str, str], named: str, tmp_path: Path) -> None:
    path = tmp_path / "board.toml"
    path.write_text(GOOD.replace(*change))
    with pytest.raises(ChipError, match=named) as caught:
        load_board(path)
    assert "board.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_board_names_the_list() -> None:
    with pytest.raises(ChipError, match=r"teapot: no such board; `onchip boards`"):
        load_board("teapot")
    with pytest.raises(ChipError, match=r"did you mean .*nucleo-f411re.*\? `onchip boards`"):
        load_board("Nucleo-F411")
