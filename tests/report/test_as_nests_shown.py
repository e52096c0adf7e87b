"""What `check` and `report` say of groups in tiles as nests: both figures, the reasons, whether they fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from onchip import api
from onchip.check.as_nests import DIFFERENCES, plan_as_nests
from onchip.cli import main
from onchip.plans import Plan
from onchip.report import data, html, summary
from onchip.report.as_nests import MOST_ROWS, as_nests_data, as_nests_sentence, as_nests_table, why_lines
from onchip.report.grid import printed
from sliced_plan import sliced_plan, split_plan


def told(plan: Plan) -> tuple[str, str]:
    found = plan_as_nests(plan)
    assert found is not None
    table = as_nests_table(found)
    return as_nests_sentence(plan, found), "" if table is None else printed(table)


def test_a_group_that_takes_more_stands_in_the_table_with_the_reason() -> None:
    sentence, table = told(sliced_plan(18))
    assert sentence == (
        "As nests of loops, for the groups in tiles (1 in bands): as many bytes cross, and 22 B of 18 are"
        " taken at most: it does not fit."
    )
    assert table.splitlines()[1].split() == ["g", "bands", "18", "22", "260", "same", "constants"]
    assert told(sliced_plan(22))[0].endswith("22 B of 22 are taken at most: it fits in place.")


def test_reasons_are_said_once_each() -> None:
    found = plan_as_nests(sliced_plan(18))
    assert found is not None
    assert why_lines(found) == [f"constants: {DIFFERENCES['constants']}"]


def test_a_group_without_a_nest_says_so() -> None:
    """A leaf writes one tensor, and a split several."""
    sentence, table = told(split_plan())
    assert "no nest" in sentence
    assert "none" in table
    assert "no-axes" in table


def test_the_data_has_both_figures_of_every_group() -> None:
    plan = sliced_plan(18)
    found = plan_as_nests(plan)
    assert found is not None
    said = as_nests_data(found)
    assert said == data(plan)["as_nests"]
    assert (said["fits"], said["peak_bytes"], said["dram_bytes"]) == ("no", 22, 260)
    assert said["groups"] == [
        {
            "group": "g",
            "runs_in": "bands",
            "scratch_bytes": 18,
            "dram_bytes": 260,
            "nest_scratch_bytes": 22,
            "nest_dram_bytes": 260,
            "why": ["constants"],
        }
    ]


def test_the_terminal_and_the_page_say_it() -> None:
    plan = sliced_plan(18)
    console = Console(width=100)
    with console.capture() as capture:
        console.print(summary(plan))
    assert "As nests of loops" in capture.get()
    assert "it does not fit" in html(plan)


def test_names_are_text() -> None:
    _, table = told(sliced_plan(18, "a\u202eb"))
    assert "\u202e" not in table


def test_the_command_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    api.Plan.of(sliced_plan(18)).save(path)
    monkeypatch.setattr("sys.argv", ["onchip", "check", str(path)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code in (0, None)
    assert "as nests of loops, for the groups in tiles (1 in bands)" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["onchip", "check", str(path), "--json"])
    with pytest.raises(SystemExit):
        main()
    assert json.loads(capsys.readouterr().out)["as_nests"]["fits"] == "no"
    assert MOST_ROWS > 1
