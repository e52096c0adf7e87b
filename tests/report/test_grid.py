"""The one table of the terminal: whatever the width, every figure stands whole in some line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import onchip
from onchip.report.grid import Grid

words = st.text(st.sampled_from("abcdefg._/[] "), max_size=30).map(str.strip)
figures = st.integers(0, 10**12).map(lambda n: f"{n:,}")
columns = st.lists(st.tuples(words, st.booleans()), min_size=1, max_size=9)


def printed(grid: Grid, width: int) -> list[str]:
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(grid)
    return capture.get().splitlines()


@st.composite
def grids(draw: st.DrawFn) -> tuple[Grid, list[list[str]]]:
    heads = draw(columns)
    rows = [
        [draw(figures if figure else words) for _, figure in heads] for _ in range(draw(st.integers(1, 5)))
    ]
    grid = Grid(*heads)
    for row in rows:
        grid.add_row(*row)
    return grid, rows


@pytest.mark.thorough
@settings(max_examples=300, deadline=None)
@given(made=grids(), width=st.integers(40, 130))
def test_no_figure_is_cut_or_left_out_and_no_line_is_too_long(
    made: tuple[Grid, list[list[str]]], width: int
) -> None:
    grid, rows = made
    lines = printed(grid, width)
    assert all(len(line) <= width for line in lines)
    assert not any("…" in line for line in lines)
    found = re.findall(r"\d[\d,]*", "\n".join(lines))
    wanted = [cell for row in rows for cell, figure in zip(row, grid.figures, strict=True) if figure]
    assert sorted(found) == sorted(wanted)
    letters = sorted(re.sub(r"[\s\d,]", "", "".join(lines)))
    for row in rows:
        for cell, figure in zip(row, grid.figures, strict=True):
            assert figure or not set(re.sub(r"\s", "", cell)) - set(letters)


@pytest.mark.thorough
@settings(max_examples=50, deadline=None)
@given(made=grids(), width=st.integers(1, 39))
def test_where_one_figure_is_wider_than_the_terminal_it_folds(
    made: tuple[Grid, list[list[str]]], width: int
) -> None:
    grid, _ = made
    assert not any("…" in line for line in printed(grid, width))


def test_a_figure_wider_than_the_terminal_keeps_its_digits() -> None:
    grid = Grid(("bytes", True))
    grid.add_row("1,234,567,890")
    assert "".join(printed(grid, 5)[1:]).replace(" ", "") == "1,234,567,890"


def test_a_table_that_is_too_wide_goes_on_below_with_the_names_of_its_rows() -> None:
    grid = Grid(("bytes", True), ("name", False), *((f"figure {n}", True) for n in range(6)))
    grid.add_row("123,456", "conv1", *(f"{n}00,000,000" for n in range(1, 7)))
    lines = printed(grid, 40)
    assert sum("conv1" in line for line in lines) > 1
    assert all("conv1" in line for line in lines if re.search(r"\d00,000,000", line))
    assert lines[0].split() == ["bytes", "name", "figure", "0", "figure", "1"] or "name" in lines[1]


def test_where_there_is_room_it_is_one_table_whose_headings_stand_in_one_line() -> None:
    grid = Grid(("name", False), ("read and written", True))
    grid.add_row("sram", "12")
    assert printed(grid, 60) == ["name  read and written", "sram                12"]
    assert printed(grid, 16) == ["         read", "          and", "name  written", "sram       12"]


def test_markup_in_a_name_is_text() -> None:
    grid = Grid(("[/name]", False))
    grid.add_row("[red]x[/red]")
    assert printed(grid, 60) == ["[/name]     ", "[red]x[/red]"]


def test_too_many_cells_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="2 cells"):
        Grid(("name", False)).add_row("a", "b")


def test_bars_give_way_before_a_figure_does() -> None:
    grid = Grid(("bytes", True), ("name", False))
    for share in (123_456, 7):
        grid.add_row(f"{share:,}", "tensor", bar=share)
    for width, drawn in ((40, True), (80, True), (20, False), (16, False)):
        lines = printed(grid, width)
        assert any("123,456" in line for line in lines)
        assert any("█" in line for line in lines) == drawn


@pytest.mark.thorough
def test_every_table_of_the_terminal_is_this_one() -> None:
    """A rich table cuts figures where it is narrow, so that no other file may make one."""
    root = Path(onchip.__file__).parent
    makers = []
    for path in root.rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "rich.table" in text else ():
            if isinstance(node, ast.ImportFrom) and node.module == "rich.table":
                makers.append(str(path.relative_to(root)))
    assert sorted(makers) == ["report/grid.py"]
