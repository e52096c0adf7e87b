"""The command that prints all results pages again: what it leaves out, and how it holds rows to a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

sys.path.insert(0, str(ROOT / "benchmarks"))

import results  # noqa: E402
from page_marks import tables_into, write  # noqa: E402
from results_pages import RESULTS, Quick, Result, lacking  # noqa: E402


def test_no_page_comes_from_files_beside_the_checkout() -> None:
    for result in RESULTS:
        for command in (*result.commands, *(one.command for one in result.quick)):
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
    assert not lacking(Result("packing.md", (), given=(absent,)), "packing_tilings.py --side 1000")
    (tmp_path / "absent").mkdir()
    assert not lacking(result, result.commands[0])


def test_a_command_is_left_out_where_a_module_is_not_installed() -> None:
    result = Result("sizes.md", ("site_packages.py",), installed=(("site_", "no_such_module"), ("x", "y")))
    assert lacking(result, result.commands[0]) == ["no_such_module"]
    assert not lacking(
        Result("sizes.md", (), installed=(("site_", "json"), ("site_", "sh"))), "site_packages.py"
    )


def test_a_page_of_times_waits_for_idle_cores(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = Result("corun-local.md", ("no_such_script.py",), idle=2)
    monkeypatch.setattr(results, "idle_cores", lambda: 0.4)
    assert results.full(result)
    assert "left out, its rows stay: needs 2 idle cores, 0.4 are" in capsys.readouterr().err
    monkeypatch.setattr(results, "idle_cores", lambda: 1.9)
    assert results.disturbed(result) == ""
    assert results.disturbed(Result("sizes.md", ())) == ""


def test_idle_cores_are_counted_from_ticks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import results_pages

    stat = tmp_path / "stat"
    stat.write_text("cpu 100 0 0 500 100 0 0 0 0 0\ncpu0 1\n")
    monkeypatch.setattr(results_pages, "STAT", stat)
    monkeypatch.setattr(results_pages.os, "cpu_count", lambda: 2)
    later = "cpu 150 0 0 630 120 0 0 0 0 0\n"  # 50 used, 150 idle or waiting
    monkeypatch.setattr(results_pages.time, "sleep", lambda _: stat.write_text(later))
    assert results_pages.idle_cores() == pytest.approx(1.5)


@pytest.mark.parametrize(
    "page", ["peers.md", "executorch.md", "mcu-files.md", "mcu-cores.md", "kernels.md", "packing.md"]
)
def test_what_others_publish_is_left_out_of_a_clean_clone(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only commands that need nothing of it are run: a clean clone does not end at the others."""
    import results_pages

    monkeypatch.setattr(results_pages, "KEPT", Path("/nowhere"))
    monkeypatch.setattr(results_pages, "find_spec", lambda _: None)
    result = next(r for r in RESULTS if r.page == page)
    run = [command for command in result.commands if not lacking(result, command)]
    tilings = "packing_tilings.py --sides 10000,1000,200 --into docs/packing.md"
    assert run == ([tilings] if page == "packing.md" else [])


def test_no_command_has_a_name_to_be_filled_in() -> None:
    """Every word that begins with a capital is a value or a folder of `kept`: FILES is neither."""
    values = {"MR", "scip", "EDGE", "SERVER"}
    for result in RESULTS:
        for command in result.commands:
            words = set(command.split()) - values
            assert not [word for word in words if word.isupper() and word.isalpha()], command


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


def test_a_quick_command_is_left_out_without_its_programs(capsys: pytest.CaptureFixture[str]) -> None:
    one = Quick("paper/vmcu.py --only window", programs=("no-such-compiler",))
    assert results.quick(Result("vmcu.md", (), quick=(one,)))
    assert "vmcu.md: left out: paper/vmcu.py --only window needs no-such-compiler" in capsys.readouterr().err


def test_new_rows_of_a_page_are_counted_with_and_without_decimals() -> None:
    before = "| a | 1.50 | 3 |\n| b | 2.00 | 4 |\n"
    after = "| a | 1.75 | 3 |\n| b | 2.00 | 5 |\n"
    assert results.changed(before, before) == "0 of 2 rows are new, 0 of them but for decimals"
    assert results.changed(before, after) == "2 of 2 rows are new, 1 of them but for decimals"


def test_what_a_clock_ended_is_passed_over_as_decimals_are() -> None:
    ilp = next(r for r in RESULTS if r.page == "placement-ilp.md")
    cosma = next(r for r in RESULTS if r.page == "cosma.md")
    before = "| a | no proof in 20 s: 16,605,120, bound 0 | 8,623,584 \\* | 401,408 |\n"
    after = before.replace("16,605,120", "15,480,864")
    said = "but for decimals and what a clock ended"
    assert results.changed(before, after, ilp.clock) == f"1 of 1 rows are new, 0 of them {said}"
    assert results.changed(before, after.replace("8,623,584", "8"), cosma.clock).startswith("1 of 1")
    joint = next(r for r in RESULTS if r.page == "joint.md")
    gap = "| darts | optimus-1 | 72.435 | 25.129 | - | 18.657 | 9.813 | 90.1 % | gap 35.4 % | 34.8 |\n"
    assert (
        results.changed(gap, gap.replace("18.657", "-"), joint.clock)
        == f"1 of 1 rows are new, 0 of them {said}"
    )
    proved = gap.replace("gap 35.4 %", "optimal")
    assert results.changed(proved, proved.replace("| - |", "| 7 |"), joint.clock).endswith(
        f"1 of them {said}"
    )
    assert results.changed(before, before.replace("401,408", "0"), cosma.clock).endswith(f"1 of them {said}")


def test_a_page_says_what_it_took_where_that_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "measured", lambda: {"vmcu.md": {"full": 90}, "corun.md": {"quick": 6}})
    pages = [Result("vmcu.md", ()), Result("corun.md", ())]
    assert results.expected(pages, "full") == (
        "2 pages; 1.5 minutes of CPU for the 1 that were measured; not measured: corun.md"
    )
    rows = results.table().splitlines()
    assert next(row for row in rows if "(vmcu.md)" in row).split(" | ")[2] == "1.5"
    assert next(row for row in rows if "(corun.md)" in row).split(" | ")[3] == "0.1"


def test_a_run_with_kept_data_is_not_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import results_pages

    for module in (results, results_pages):
        monkeypatch.setattr(module, "KEPT", tmp_path)
    monkeypatch.setattr(results, "CPU", tmp_path / "cpu")
    one = Result("optimus.md", ("paper/optimus.py --data {kept}/optimus.json",))
    assert results.unused(one)
    (tmp_path / "optimus.json").write_text("{}")
    assert results.noted("full", lambda _: True, one)
    assert results.measured() == {}


def test_printed_tables_go_where_the_page_has_one_of_the_same_heading() -> None:
    twice = "| c |\n|---|\n| 5 |\n\n| c |\n|---|\n| 6 |\n"  # which one is meant, nobody says
    page = f"# A\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n| 3 | 4 |\n\ntext\n\n{twice}"
    printed = "| a | b |\n|---|--:|\n| 7 | 8 |\n\n| c |\n|---|\n| 9 |\n"
    made = tables_into(page, printed)
    assert made == page.replace(
        "| 1 | 2 |\n| 3 | 4 |", "| 7 | 8 |"
    )  # two tables of c: which one, nobody says
    assert tables_into(made, printed) == made


def test_a_page_waits_for_all_sections_of_one_measurement(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    before = "".join(f"<!-- {name}: begin -->\nold\n<!-- {name}: end -->\n" for name in ("chip", "networks"))
    page.write_text(before)

    def failing() -> Iterator[str]:
        yield "a row"
        raise SystemExit("a network is wrong")

    with pytest.raises(SystemExit):
        write({"chip": lambda: iter(["new"]), "networks": failing}, page, at_once=True)
    assert page.read_text() == before
    write({"chip": lambda: iter(["new"]), "networks": lambda: iter(["rows"])}, page, at_once=True)
    assert page.read_text() == before.replace("old", "new", 1).replace("old", "rows")
