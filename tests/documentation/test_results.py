"""The command that prints all results pages again: what it leaves out, and how it holds rows to a page."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

sys.path.insert(0, str(ROOT / "benchmarks"))

import results  # noqa: E402
from results_pages import RESULTS, Result, lacking  # noqa: E402


def test_no_page_comes_from_files_beside_the_checkout() -> None:
    for result in RESULTS:
        for command in (*result.commands, *result.quick):
            assert ".." not in command, f"{result.page}: {command}"
    for script in (ROOT / "benchmarks").rglob("*.py"):
        assert "../shared" not in script.read_text("utf-8"), f"{script.name} reads what no clone has"


def test_a_command_is_left_out_where_what_it_needs_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "KEPT", tmp_path)
    absent = str(tmp_path / "absent")
    result = Result("packing.md", (f"packing_fixtures.py {absent}",), given=(absent,))
    assert lacking(result, result.commands[0]) == [absent]
    assert results.full(result)
    said = capsys.readouterr().err
    assert f"left out, its rows stay: packing_fixtures.py needs {absent}" in said
    assert not lacking(Result("packing.md", (), given=(absent,)), "packing_tilings.py --side 100")
    (tmp_path / "absent").mkdir()
    assert not lacking(result, result.commands[0])


def test_rows_are_held_to_the_page_and_decimals_apart() -> None:
    result = next(r for r in RESULTS if r.page == "joint.md")
    stands = "| vgg16 | 64 KB | 110.20 | 98.49 | 110.20 | 98.49 | 58.35 | 58.35 | 14.89 |"
    changed = stands.replace("58.35", "58.36")
    assert results.missing(result, f"|---|\n{stands}\n{changed}\n", "") == [changed]
    assert results.standing(result, f"{stands}\n{changed}\n") == (
        "1 of 2 rows stand on the page, 2 but for decimals"
    )
    other = stands.replace("vgg16", "vgg17")
    assert results.missing(result, other, results.DECIMAL)
