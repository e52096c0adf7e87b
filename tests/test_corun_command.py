"""Schedules of several networks as a user meets them: check, report and export of schedule files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

import pytest

from corun.made import crossing, random_judged
from onchip import cli
from onchip.corun.schedule_file import is_schedule


def onchip(monkeypatch: pytest.MonkeyPatch, *args: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *map(str, args)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def test_check_judges_a_schedule_file_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "schedule.json"
    made = crossing()
    path.write_text(made.json())
    assert onchip(monkeypatch, "check", path) == 0
    out = capsys.readouterr().out
    assert "legal: 20 groups on 2 units; every figure holds" in out
    assert "3.489 ms" in out
    assert onchip(monkeypatch, "check", path, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["makespan_ms"] == made.timeline.makespan_ms
    assert {s["unit"] for net in data["networks"] for s in net["segments"]} == {"gpu", "dla"}
    wrong = json.loads(path.read_text())
    wrong["result"]["makespan_ms"] = 3.0
    path.write_text(json.dumps(wrong))
    assert onchip(monkeypatch, "check", path) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "states makespan_ms 3.0" in said


def test_schedules_are_told_from_plans_and_from_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for text, expected in (
        ('{"format": "onchip.schedule/1"}', True),
        ('{"format": "onchip.schedule/2"}', True),
        ('{"format": "onchip.plan/1"}', False),
        ('{"format": 3}', False),
        ("[1]", False),
        ("plan of nothing", False),
        ("", False),
        ("\xff{", False),
    ):
        path = tmp_path / "file.json"
        path.write_text(text, "latin-1")
        assert is_schedule(path) is expected, text
        for verb in ("check", "report"):
            assert onchip(monkeypatch, verb, path) == 2
            said = capsys.readouterr().err
            assert said.count("\n") == 1
            assert str(path) in said
    assert not is_schedule(tmp_path / "missing.json")


def test_report_shows_any_schedule_and_writes_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(6):
        path, page = tmp_path / f"{seed}.json", tmp_path / f"{seed}.html"
        path.write_text(random_judged(Random(seed)).json())
        assert onchip(monkeypatch, "report", path, "-o", page) == 0
        assert f"report written to {page}" in capsys.readouterr().out
        assert page.read_text("utf-8").startswith("<!doctype html>")
    assert onchip(monkeypatch, "report", path, "-o", path) == 2
