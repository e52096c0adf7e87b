"""Claims travel with their proof: bound to their problem, called claimed, proved again if asked."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import onchip as onchip_package
from onchip import cli
from onchip.base.errors import IllegalPlan, UsageError
from onchip.check import check, standing
from onchip.plans import bind, claim_digest, from_json, from_text, is_proved, to_json, to_text
from onchip.results.planned import Plan
from onchip.results.proving import prove

MODEL = "zoo:densenet121"
RATED = replace(onchip_package.chip("generic"), name="rated", dram_picojoules_per_byte=1.5)


def onchip(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *args])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.fixture(scope="module")
def made() -> Plan:
    return onchip_package.plan(MODEL, budget="MR")  # 401,408 B of traffic


def _edited(plan: Plan, edit: Any) -> Plan:
    """The plan with its file edited, the digest left as it was."""
    data = json.loads(to_json(plan))
    edit(data)
    return Plan.of(from_json(json.dumps(data)))


def _set(*path: Any, to: Any) -> Any:
    def edit(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = to(data[path[-1]])

    return edit


EDITS = {
    "budget": _set("budget", to=lambda n: n + 1_000_000),
    "option": _set("options", "order", to=lambda _: "given"),
    "space": _set("result", "space", to=lambda text: "all plans whatsoever"),
    "version": _set("result", "version", to=lambda _: "9.9"),
    "chip": _set("chip", "name", to=lambda _: "other"),
    "type": _set("network", "operators", 0, "type", to=lambda _: "Other"),
    "kernel": _set("network", "operators", 0, "geometry", "kernel", to=lambda n: [1, 1]),
    "granularity": _set("network", "granularity", to=lambda _: "op"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_an_edit_of_the_problem_breaks_the_claim(made: Plan, edit: Any) -> None:
    edited = _edited(made, edit)
    with pytest.raises(IllegalPlan) as refusal:
        edited.check()
    assert refusal.value.rule == "claim"
    assert "Proven" not in str(edited)
    # Who makes the digest anew has a claim again, and no proof.
    forged = replace(edited, result=replace(edited.result, claim_sha256=claim_digest(edited)))
    assert check(forged).status == "optimal"
    assert standing(forged) == "claimed"


def test_an_edited_file_is_refused_by_check_and_report(
    made: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("plan.json", "plan.txt"):
        path = tmp_path / name
        made.save(path)
        written = f"{made.budget}"
        path.write_text(path.read_text().replace(f'"budget": {written}', '"budget": 2000000'))
        path.write_text(path.read_text().replace(f"budget {written}", "budget 2000000"))
        for call in (["check"], ["report"], ["report", "-o", str(tmp_path / "page.html")]):
            assert onchip(monkeypatch, call[0], str(path), *call[1:]) == 1
            out, err = capsys.readouterr()
            assert out == ""
            assert err.startswith("onchip: illegal plan: claim: ")
            assert err.count("\n") == 1
        assert not (tmp_path / "page.html").exists()


def test_fresh_is_proved_and_read_is_claimed(made: Plan, tmp_path: Path) -> None:
    assert standing(made) == "proved"
    assert "Proven optimal" in str(made)
    assert "Proven optimal" in made.report()
    for back in (from_json(to_json(made)), from_text(to_text(made))):
        assert made == back == Plan.of(back)
        assert standing(back) == "claimed"
        assert not is_proved(back)
        shown = Plan.of(back)
        for text in (str(shown), shown.report()):
            assert "Proven" not in text
            assert "claimed optimal" in text
            assert "check --prove" in text
    edited = Plan.of(replace(made, budget=made.budget + 1))
    assert not is_proved(edited)  # nor does an edit in the process keep the proof
    assert "Proven" not in str(edited)


def test_what_the_checker_derives_is_no_claim() -> None:
    roomy = onchip_package.plan(MODEL, budget="16MiB")
    assert standing(Plan.from_text(roomy.to_json())) == "derived"
    fused = onchip_package.plan("zoo:alexnet", budget="4MiB", fuse=True)
    assert standing(Plan.from_text(fused.to_json())) == "derived"
    least = onchip_package.plan("zoo:resnet50", objective="peak")
    assert standing(Plan.from_text(least.to_json())) == "derived"


def test_nothing_claimed_is_none(made: Plan) -> None:
    modest = replace(
        made, result=replace(made.result, status="feasible", lower_bound_bytes=0, claim_sha256="")
    )
    assert standing(modest) == "none"


@pytest.mark.parametrize(
    "options",
    [
        {"budget": "MR"},
        {"budget": "MR", "order": "given"},
        {"budget": "MR", "order": "minpeak"},
        {"budget": "4MiB", "weights": "resident"},
        {"budget": "MR", "in_place": True},
        {"budget": "MR", "strategy": "greedy"},
        {"budget": "MR", "objective": "energy", "chip": RATED},
        {"budget": "300KiB", "fuse": True},
    ],
    ids=str,
)
def test_prove_solves_again(options: dict[str, Any]) -> None:
    model = "zoo:squeezenet1_0" if options.get("fuse") or "4MiB" in options["budget"] else MODEL
    plan = Plan.from_text(onchip_package.plan(model, **{"time_limit": 60.0, **options}).to_text())
    if standing(plan) in ("claimed", "proved"):
        assert prove(plan).outcome == "proved"


def test_a_forged_claim_is_refuted(
    made: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The digest is no signature: with more room, and a digest for it, the claim is false all the same.
    forged = bind(replace(made, budget=4_000_000))
    path, better = tmp_path / "forged.json", tmp_path / "better.json"
    path.write_text(to_json(forged))
    assert onchip(monkeypatch, "check", str(path)) == 0
    assert "claimed, not proved here" in capsys.readouterr().out
    assert onchip(monkeypatch, "check", str(path), "--json") == 0
    assert json.loads(capsys.readouterr().out)["claim"] == "claimed"
    assert onchip(monkeypatch, "check", str(path), "--prove", "-o", str(better)) == 1
    err = capsys.readouterr().err
    assert "refuted" in err
    assert "401,408 fewer" in err
    assert onchip_package.read(better).check().traffic_bytes == 0
    made.save(path)
    assert onchip(monkeypatch, "check", str(path), "--prove", "--json") == 0
    assert json.loads(capsys.readouterr().out)["claim"] == "proved"
    assert onchip(monkeypatch, "check", str(path), "--time-limit", "1") == 2  # goes with --prove


def test_another_space_than_the_options_give_is_not_decided(
    made: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = bind(replace(made, result=replace(made.result, space="all plans, tiled ones too")))
    (tmp_path / "plan.json").write_text(to_json(forged))
    assert onchip(monkeypatch, "check", str(tmp_path / "plan.json"), "--prove") == 1
    assert "not decided: its options give another space" in capsys.readouterr().err


def test_a_proof_names_the_space_that_a_file_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the space struck out, an order in the options that shrinks it would stand nowhere."""
    made = onchip_package.plan(MODEL, budget="MR", order="given")
    path = tmp_path / "p.json"
    bare = replace(made, result=replace(made.result, space=""))
    path.write_text(to_json(replace(bare, result=replace(bare.result, claim_sha256=claim_digest(bare)))))
    assert onchip(monkeypatch, "check", "--prove", str(path)) == 0
    assert f"among: {made.result.space}" in capsys.readouterr().out
    assert onchip(monkeypatch, "check", "--prove", "--json", str(path)) == 0
    assert json.loads(capsys.readouterr().out)["proof"]["space"] == made.result.space


def test_a_planner_that_the_file_makes_up_proves_nothing(made: Plan) -> None:
    """Among them one for chips of several memories, of which this chip has none."""
    for planner in ("memories", "segments", "branches", "", None):
        forged = bind(replace(made, options={**made.options, "planner": planner}))
        with pytest.raises(UsageError, match="--prove"):
            prove(forged)
