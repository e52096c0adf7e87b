"""Every planner names the plans that its claims range over, and everything that prints a status says so."""

from __future__ import annotations

import html
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import onchip as onchip_package
from onchip import api, cli
from onchip.plans import from_json, from_text, to_json, to_text

MODEL = "zoo:squeezenet1_0"
PLANNED = [
    ("plan", "--budget", "MR"),
    ("plan", "--budget", "MR", "--order", "given"),
    ("plan", "--budget", "MR", "--order", "minpeak"),
    ("plan", "--budget", "2MiB", "--weights", "resident"),
    ("plan", "--budget", "2MiB", "--in-place"),
    ("plan", "--objective", "peak"),
    ("plan", "--budget", "1MiB", "--fuse"),
    ("plan", "--budget", "1MiB", "--fuse", "--no-overlap"),
    ("fuse", "--budget", "1MiB"),
    ("branches", "--budget", "1MiB"),
]


def onchip(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *args])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.mark.parametrize("call", PLANNED, ids=" ".join)
def test_every_planner_names_its_space(
    call: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan, page = tmp_path / "plan.json", tmp_path / "plan.html"
    command, *options = call
    assert onchip(monkeypatch, command, MODEL, *options, "-o", str(plan), "--report", str(page)) == 0
    space = json.loads(plan.read_text())["result"]["space"]
    out = " ".join(capsys.readouterr().out.split())
    assert space
    if command != "branches":  # its table has no status
        assert f"Among: {space}." in out
    assert f"Among: {space}." in html.unescape(page.read_text())
    assert onchip(monkeypatch, "check", str(plan)) == 0
    assert f"among: {space}" in capsys.readouterr().out
    made = onchip_package.read(plan)
    assert made.check().space == space
    for back in (from_json(to_json(made)), from_text(to_text(made))):
        assert back.result.space == space


@pytest.mark.thorough
def test_a_microcontroller_s_space_is_printed_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.json"
    assert onchip(monkeypatch, "mcu", "made:ad01", "--objective", "least", "-p", str(plan)) == 0
    space = json.loads(plan.read_text())["result"]["space"]
    assert f"Among: {space}." in " ".join(capsys.readouterr().out.split())


def test_options_that_change_the_space_change_its_name() -> None:
    source = onchip_package.load(MODEL)
    asked: list[dict[str, object]] = [
        {"budget": "2MiB", "fuse": False},
        {"budget": "2MiB", "order": "given"},
        {"budget": "2MiB", "order": "minpeak"},
        {"budget": "2MiB", "fuse": False, "in_place": True},
        {"budget": "2MiB", "weights": "resident"},
        {"budget": "2MiB", "pin": ("weights:" + source.network.operators[0].name,)},
        {"objective": "peak"},
        {"budget": "2MiB", "fuse": True},
        {"budget": "2MiB", "fuse": True, "channel_tile": 8},
    ]
    spaces = [api.plan(source, **options).result.space for options in asked]  # type: ignore[arg-type]
    assert len(set(spaces)) == len(spaces)


def test_old_files_without_a_space_are_read(tmp_path: Path) -> None:
    made = onchip_package.plan(MODEL, budget="MR")
    old = replace(made, result=replace(made.result, space="", version="", claim_sha256=""))
    assert "space" not in json.loads(to_json(old))["result"]
    for text in (to_json(old), to_text(old)):
        (tmp_path / "old.plan").write_text(text)
        again = onchip_package.read(tmp_path / "old.plan")
        assert again.check() == old.result
        assert "Among" not in str(again)


def test_comparisons_and_data_have_the_space() -> None:
    made = onchip_package.compare(MODEL, budget="MR", schemes="given-belady", planners="joint")
    spaces = {row["scheme"]: row["space"] for row in made.data()["rows"]}
    assert all(spaces.values())
    assert spaces["joint"] != spaces["exact"]
    printed = " ".join(str(made).split())
    assert all(f"among {spaces[name]}" in printed for name in ("exact", "joint"))
    assert onchip_package.fuse(MODEL, budget="1MiB").data()["space"]
    assert onchip_package.branches(MODEL, budget="1MiB").data()["space"]
