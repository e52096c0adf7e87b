"""`onchip diff`: every difference of two plans, none of a plan with itself, names that are shown safely."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import onchip
from onchip import cli
from onchip.plans import Plan, from_json, to_json
from onchip.plans.differences import ABSENT, differences
from strategies import network_of, random_network


def command(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def planned(seed: int, **options: Any) -> Plan:
    return onchip.plan(random_network(Random(seed), 6), budget="MR", **options)


def leaves(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of all numbers of a plan's JSON form but those that say what form it is."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from leaves(value, (*path, key))
    elif type(data) is int:
        yield path


def test_a_plan_and_itself_have_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(1)
    assert differences(plan, from_json(to_json(plan))) == ()
    one, two = tmp_path / "one.json", tmp_path / "two.plan"
    plan.save(one)
    plan.save(two)
    assert command(monkeypatch, "diff", one, two) == 0
    assert capsys.readouterr().out == "no difference\n"
    assert command(monkeypatch, "diff", one, two, "--json") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_plan_made_again_is_the_same_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(1)
    again = json.loads(to_json(plan))
    again["result"]["seconds"] += 1.5
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    plan.save(one)
    two.write_text(json.dumps(again))
    assert command(monkeypatch, "diff", one, two) == 0
    assert capsys.readouterr().out.startswith("the same plan")
    assert command(monkeypatch, "diff", one, two, "--json") == 0
    assert [row["where"] for row in json.loads(capsys.readouterr().out)] == [["result", "seconds"]]


@pytest.mark.parametrize("seed", range(12))
def test_one_changed_number_is_one_difference(seed: int) -> None:
    plan = planned(seed % 3)
    data, rng = json.loads(to_json(plan)), Random(seed)
    *path, last = rng.choice([place for place in leaves(data) if place[0] in ("result", "program")])
    part = data
    for key in path:
        part = part[key]
    before, part[last] = part[last], part[last] + 1
    (found,) = differences(plan, from_json(json.dumps(data)))
    if path[0] == "program":
        assert found.where[1:] == (str(path[1] + 1), str(path[1] + 1))  # type: ignore[operator]
    else:
        assert (found.where, found.first, found.second) == (("result", last), before, before + 1)


def test_two_plans_differ_in_all_that_the_changes_rebuild() -> None:
    """The second program comes out of the first one and the lines that are listed."""
    first, second = planned(4), planned(4, order="given")
    ours, theirs = (json.loads(to_json(p))["program"] for p in (first, second))
    found = [d for d in differences(first, second) if d.where[0] == "program"]
    gone = {int(d.where[1]) - 1 for d in found if d.first is not ABSENT}
    come = {int(d.where[2]) - 1: d.second for d in found if d.second is not ABSENT}
    kept = iter([step for n, step in enumerate(ours) if n not in gone])
    assert [come[n] if n in come else next(kept) for n in range(len(theirs))] == theirs
    assert next(kept, None) is None


def test_names_are_shown_safely_and_order_is_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "a\x1b[31m[bold]b"
    edges = [f"x -> {evil}", f"{evil} -> y"]
    first, second = (
        onchip.plan(network_of({"x": 4, evil: size, "y": 4}, edges, "y"), budget=16) for size in (8, 9)
    )
    first.save(tmp_path / "1.json")
    second.save(tmp_path / "2.json")
    assert command(monkeypatch, "diff", tmp_path / "1.json", tmp_path / "2.json") == 1
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert r"a\x1b[31m[bold]b" in out
    data = json.loads(to_json(first))
    data["network"]["tensors"].reverse()
    wheres = [d.where for d in differences(first, from_json(json.dumps(data)))]
    assert wheres == [("network", "tensors", "(order)")]


@pytest.mark.parametrize("other", ["missing.json", "text"])
def test_what_is_no_plan_is_refused_in_one_line(
    other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planned(1).save(tmp_path / "one.json")
    (tmp_path / "text").write_text("no plan")
    assert command(monkeypatch, "diff", tmp_path / "one.json", tmp_path / other) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_another_file_of_onchip_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, layout = tmp_path / "plan.json", tmp_path / "layout.json"
    planned(1).save(plan)
    layout.write_text('{"format": "onchip.layout/1", "network": "mine"}')
    assert command(monkeypatch, "diff", plan, layout) == 2
    assert "format: is 'onchip.layout/1'; this version reads 'onchip.plan/1'" in capsys.readouterr().err
