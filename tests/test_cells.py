"""Names in CSV files: no spreadsheet runs them, and they come back as they were."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onchip.base.cells import neutral, original
from onchip.planners.packing import read_buffers, write_buffers
from onchip.planners.packing.buffers import Buffer
from onchip.sweeps.table import to_csv

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12) | st.builds(
    "".join, st.lists(st.sampled_from(["'", "=", "+", "-", "@", "\t", "\r", "\n", " ", '"', ",", "a", "1"]))
)


def runs(cell: str) -> bool:
    """Whether a spreadsheet takes it for a formula; it trims blanks, and some trim quotes."""
    return cell.lstrip(' "\u00a0').startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


@given(NAMES)
def test_a_neutral_cell_is_no_formula_and_comes_back(name: str) -> None:
    assert not runs(neutral(name))
    assert original(neutral(name)) == name


@pytest.mark.parametrize("name", ["a", "conv1/weight", "'quoted'x"[1:], "a=b", "x-1", ""])
def test_plain_names_stay_as_they_are(name: str) -> None:
    assert neutral(name) == name
    assert original(f"'{name}") == f"'{name}"


@pytest.mark.thorough
@given(st.lists(NAMES, unique=True, min_size=1, max_size=5))
def test_pack_reads_back_the_names_that_it_wrote(names: list[str]) -> None:
    import tempfile

    buffers = [Buffer(i, i + 1, 4, 1, None, ()) for i in range(len(names))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "b.csv")
        write_buffers(path, buffers, names, [0] * len(names))
        assert read_buffers(path).ids == tuple(names)
        cells = [row[0] for row in csv.reader(io.StringIO(path.read_bytes().decode(), newline=""))]
    assert not any(map(runs, cells))


@given(NAMES)
def test_tables_of_sweeps_hold_no_formulas(name: str) -> None:
    text = to_csv([{"network": name, name or "x": 1.5, "gap": -2}], ["network", name or "x", "gap"])
    assert not any(
        runs(cell) for row in csv.reader(io.StringIO(text, newline="")) for cell in row if cell != "-2"
    )
