"""The example notebooks run from the first cell to the last, and are committed without what they print."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
NotebookClient = pytest.importorskip("nbclient").NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_it_is_committed_without_outputs(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        assert cell.cell_type == "markdown" or (cell.outputs == [] and cell.execution_count is None)


@pytest.mark.thorough
@pytest.mark.filterwarnings("default")  # those of Jupyter's own libraries
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_it_runs(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("ipykernel")
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    pages = [output.data.get("text/html", "") for output in outputs if output.output_type == "execute_result"]
    assert any("<svg" in page for page in pages)
    assert any("srcdoc=" in page for page in pages)
    assert list(tmp_path.glob("*.html"))


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS
