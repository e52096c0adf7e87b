"""A plan beside the plans for other budgets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import onchip
from onchip import replanning
from onchip.base.errors import UsageError
from onchip.cli import app
from onchip.comparison.what_if import budgets_around
from onchip.report import html
from strategies import network_of

NET = network_of({"x": 6, "a": 8, "b": 8, "c": 8, "y": 2}, ["x -> a", "a -> b", "b -> c", "a b c -> y"], "y")


def test_every_point_is_what_planning_for_that_budget_gives() -> None:
    plan = onchip.plan(NET, budget=26)
    found = replanning.what_if(plan)
    assert [p.budget for p in found.points] == list(budgets_around(plan))
    assert {p.status for p in found.points} >= {"optimal", "infeasible"}
    for point in found.points:
        if point.status == "infeasible":
            with pytest.raises(onchip.Infeasible) as no:
                onchip.plan(NET, budget=point.budget)
            assert point.needs == no.value.needs
        else:
            result = onchip.plan(NET, budget=point.budget).result
            assert (point.dram_bytes, point.traffic_bytes) == (result.dram_bytes, result.traffic_bytes)
            assert point.bound is not None
            assert point.bound <= result.dram_bytes


def test_more_room_never_costs_more_and_the_limit_is_reached() -> None:
    found = replanning.what_if(onchip.plan(NET, budget=26), budgets=range(20, 60))
    moved = [p.dram_bytes for p in found.points if p.dram_bytes is not None]
    assert moved == sorted(moved, reverse=True)
    assert moved[-1] == found.limit


def test_fused_and_branched_plans_are_made_again_too() -> None:
    fused = onchip.fuse("zoo:squeezenet1_0", "optimus").plan
    assert fused is not None
    points = replanning.what_if(fused, budgets=[256 * 1024]).points
    assert [p.dram_bytes for p in points] == [
        fused.result.dram_bytes,
        onchip.fuse("zoo:squeezenet1_0", "optimus", "256KiB").dram_bytes,
    ]
    branched = onchip.branches("zoo:googlenet").plan
    (more,) = (p for p in replanning.what_if(branched, budgets=[2**21]).points if p.budget == 2**21)
    assert more.dram_bytes == onchip.branches("zoo:googlenet", budget=2**21).plan.result.dram_bytes


def test_joint_plans_are_made_again_with_their_options() -> None:
    joint = onchip.plan("zoo:squeezenet1_0", budget="128KiB", fuse=True, overlap=False)
    (more,) = (p for p in replanning.what_if(joint, budgets=[2**16]).points if p.budget == 2**16)
    again = onchip.plan("zoo:squeezenet1_0", budget=2**16, fuse=True, overlap=False)
    assert (more.dram_bytes, more.status) == (again.result.dram_bytes, "optimal")


def test_a_chip_that_is_not_built_in_has_to_be_named(tmp_path: Path) -> None:
    chip = tmp_path / "mine.toml"
    chip.write_text('name = "mine"\nalignment_bytes = 2\nelement = "int8"\n')
    plan = onchip.plan(NET, chip, 30)
    with pytest.raises(UsageError, match="mine: is no built-in chip"):
        replanning.what_if(plan)
    assert replanning.what_if(plan, chip=chip, budgets=[]).points[0].dram_bytes == plan.result.dram_bytes
    with pytest.raises(UsageError, match="the plan is for chip mine"):
        replanning.what_if(plan, chip="optimus")


def test_the_page_has_the_curve_and_the_figures(tmp_path: Path) -> None:
    plan = onchip.plan(NET, budget=26)
    page = html(plan, replanning.what_if(plan))
    assert 'id="panel-what-if"' in page
    assert "this plan" in page
    assert 'id="panel-what-if"' not in html(plan)
    path, out = tmp_path / "plan.json", tmp_path / "page.html"
    plan.save(path)
    runner = CliRunner()
    assert runner.invoke(app, ["report", str(path), "-o", str(out), "--what-if"]).exit_code == 0
    assert 'id="panel-what-if"' in out.read_text()
    refused = runner.invoke(app, ["report", str(path), "--what-if"])
    assert refused.exit_code != 0
    changed = json.loads(path.read_text())
    changed["chip"]["name"] = "elsewhere"
    path.write_text(json.dumps(changed))
    out.unlink()
    assert runner.invoke(app, ["report", str(path), "-o", str(out), "--what-if"]).exit_code != 0
    assert not out.exists()
