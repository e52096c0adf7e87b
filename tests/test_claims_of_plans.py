"""Claims travel with their proof: bound to their problem, called claimed, proved again if asked."""

from __future__ import annotations

import json
import sys
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import onchip as onchip_package
from onchip import cli
from onchip.base.errors import IllegalPlan, UsageError
from onchip.check import check, standing
from onchip.check.claims.options import OPTIONS, PINNED
from onchip.machines.chip import Rates
from onchip.network import Geometry, Network, OperatorSpec, TensorKind
from onchip.planners.branches.options import BranchOptions
from onchip.planners.fusion import FusionOptions
from onchip.planners.joint import JointOptions
from onchip.planners.placement import PlacementOptions
from onchip.plans import bind, claim_digest, from_json, from_text, is_proved, to_json, to_text
from onchip.results.planned import Plan
from onchip.results.proving import prove
from timed_plans import TILES, WORDED, few_looks

MODEL = "zoo:densenet121"
RATED = replace(onchip_package.chip("generic"), name="rated", rates=Rates(dram_picojoules_per_byte=1.5))


def onchip(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *args])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.fixture(scope="module")
def made() -> Plan:
    return onchip_package.plan(MODEL, budget="MR", fuse=False)  # 401,408 B of traffic


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
    "option": _set("options", "seed", to=lambda n: n + 1),
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


@pytest.mark.thorough
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
    roomy = onchip_package.plan(MODEL, budget="16MiB", fuse=False)
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
    asked = {"time_limit": 60.0, "fuse": False, **options}
    plan = Plan.from_text(onchip_package.plan(model, **asked).to_text())
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
    made = onchip_package.plan(MODEL, budget="MR", order="given", fuse=False)
    path = tmp_path / "p.json"
    bare = replace(made, result=replace(made.result, space=""))
    path.write_text(to_json(replace(bare, result=replace(bare.result, claim_sha256=claim_digest(bare)))))
    assert onchip(monkeypatch, "check", "--prove", str(path)) == 0
    assert f"among: {made.result.space}" in capsys.readouterr().out
    assert onchip(monkeypatch, "check", "--prove", "--json", str(path)) == 0
    assert json.loads(capsys.readouterr().out)["proof"]["space"] == made.result.space


def test_a_planner_that_the_file_makes_up_proves_nothing(made: Plan) -> None:
    """Among them one for chips of several memories, of which this chip has none."""
    for planner in ("memories", "segments", "", None):
        forged = bind(replace(made, options={**made.options, "planner": planner}))
        with pytest.raises(UsageError, match="--prove"):
            prove(forged)
    forged = bind(replace(made, options={**made.options, "planner": "branches"}))
    assert prove(forged).outcome == "not decided"  # that planner proves no bounds


# -- files that name another space than the one they are from ----------------------------------------------


@pytest.fixture(scope="module")
def ladder() -> Network:
    """Convolutions of what was made lately, every third operator a sum; the given order is not the best."""
    rng, names = Random(3), ["x"]
    shape = (1, 8, 16, 16)
    conv = Geometry("conv", shape, shape, (3, 3), (1, 1), (1, 1, 1, 1))
    operators = []
    for i in range(25):
        first, name = rng.choice(names[-6:]), f"t{i}"
        second = rng.choice(names[-6:]) if i % 3 == 2 else first
        if i % 3 == 2:
            second = second if second != first else names[-1] if names[-1] != first else names[0]
            sums = Geometry("elementwise", shape, shape)
            operators.append(OperatorSpec(f"o{i}", "Add", (first, second), (name,), geometry=sums))
        else:
            operators.append(OperatorSpec(f"o{i}", "Conv", (first,), (name,), 576, geometry=conv))
        names.append(name)
    read = {name for op in operators for name in op.inputs}
    ends = [name for name in names if name not in read]
    rows: list[tuple[str, int, TensorKind]] = [
        (name, 2048, "activation" if name != "x" else "input") for name in names
    ]
    return Network.build("ladder", rows, operators, ends)


def _read(plan: Plan, **options: Any) -> Plan:
    """The plan as from a file with other options under the same figures, its digest made anew."""
    edited = replace(plan, options={**plan.options, **options})
    return Plan.of(from_json(to_json(bind(edited))))


def _claiming(plan: Plan, **bounds: Any) -> Plan:
    return _read(Plan.of(replace(plan, result=replace(plan.result, **bounds))))


def _refused(plan: Plan, rule: str, reason: str) -> None:
    with pytest.raises(IllegalPlan, match=reason) as refusal:
        plan.check()
    assert refusal.value.rule == rule
    assert "\n" not in str(refusal.value)


def test_a_plan_in_another_order_is_not_the_best_of_the_given_one(ladder: Network) -> None:
    free = onchip_package.plan(ladder, budget="MR", fuse=False)
    given = onchip_package.plan(ladder, budget="MR", order="given", fuse=False)
    assert free.result.traffic_bytes < given.result.traffic_bytes
    forged = _claiming(replace(free, options=given.options), space=given.result.space)
    _refused(forged, "claim", "option order is given")
    assert prove(forged).outcome == "not decided"
    for honest in (free, given):
        assert prove(_read(honest)).outcome == "proved"


def test_a_plan_below_its_own_space_is_not_proved() -> None:
    """Of what the checker cannot see, the figures tell: no plan of that space has so little."""
    best = onchip_package.fuse("zoo:squeezenet1_0", budget="64KiB").plan
    small = onchip_package.fuse("zoo:squeezenet1_0", budget="64KiB", blocks="fallback").plan
    assert best is not None
    assert small is not None
    assert best.result.dram_bytes < small.result.dram_bytes
    forged = _claiming(replace(best, options=small.options), space=small.result.space)
    assert check(forged).status == "optimal"
    proof = prove(forged)
    assert proof.outcome == "not decided"
    assert "the plan is not among the plans that it names" in proof.reason
    assert proof.unproved == ("dram_lower_bound_bytes",)


@pytest.mark.thorough
def test_shared_bytes_need_an_option_that_lets_them(
    ladder: Network,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shared = onchip_package.plan(ladder, budget="MR", in_place=True, fuse=False)
    for options in ({"in_place": False}, {"planner": "baseline"}, {"planner": "fusion"}):
        forged = _read(shared, **options)
        with pytest.raises(IllegalPlan) as refusal:
            forged.check()
        assert refusal.value.rule == "claim"
    path = tmp_path / "mcu.json"
    assert onchip(monkeypatch, "mcu", "made:ad01", "--objective", "least", "-p", str(path)) == 0
    chain = onchip_package.read(path)
    for planner in ("placement", "baseline", "joint", "fusion"):
        goal = "peak" if planner == "placement" else "dram" if planner in ("joint", "fusion") else "traffic"
        with pytest.raises(IllegalPlan):
            _read(chain, planner=planner, objective=goal).check()
    capsys.readouterr()


def test_options_of_fusion_bind_its_groups() -> None:
    made = onchip_package.fuse("zoo:squeezenet1_0", budget="300KiB").plan
    assert made is not None
    assert made.check() == made.result
    assert any(group.resident_weights for group in made.groups)
    for options, reason in (
        ({"residency": "none"}, "option residency is none"),
        ({"channel_tile": 5}, "option channel_tile is 5"),
        ({"halo": "recompute"}, "nothing can run"),
        ({"weight_tile": False}, "nothing can run"),
        ({"planner": "segments", "segments": "least", "input": "held"}, "no objective dram"),
        ({"planner": "joint", "channel_tile": 5}, "option channel_tile is 5"),
    ):
        _refused(_read(made, **options), "claim", reason)


def test_resident_weights_are_in_the_workspaces(ladder: Network) -> None:
    streamed = onchip_package.plan(ladder, budget="MR", fuse=False)
    words = streamed.result.space.replace("weights streamed", "weights resident while their operator runs")
    forged = _claiming(replace(streamed, options={**streamed.options, "weights": "resident"}), space=words)
    _refused(forged, "claim", "option weights is resident")
    assert prove(forged).outcome == "not decided"
    resident = onchip_package.plan(ladder, budget="MR", weights="resident", fuse=False)
    assert resident.result.space == words
    assert prove(_read(resident)).outcome == "proved"


def test_another_chip_than_the_plan_records_is_refused(
    ladder: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, chip = tmp_path / "plan.json", tmp_path / "chip.toml"
    given = {"dram_picojoules_per_byte": 1.0, "alignment_bytes": 1}
    made = replace(RATED, rates=Rates(dram_picojoules_per_byte=1.0))
    onchip_package.plan(ladder, made, budget="MR", objective="energy", fuse=False).save(plan)

    def said(name: str, **figures: float) -> tuple[int, str]:
        lines = [f'name = "{name}"', 'element = "int8"', *(f"{k} = {v}" for k, v in figures.items())]
        chip.write_text("\n".join(lines))
        code = onchip(monkeypatch, "check", "--prove", "--chip", str(chip), str(plan))
        return code, capsys.readouterr().err

    assert said("rated", **given) == (0, "")
    for name, figures, key in (
        ("rated", {**given, "dram_picojoules_per_byte": 3.0}, "dram_picojoules_per_byte"),
        ("rated", {**given, "alignment_bytes": 64}, "alignment_bytes"),
        ("rated", {**given, "macs_per_second": 1e9}, "macs_per_second"),
        ("other", given, "name"),
    ):
        code, err = said(name, **figures)
        assert code == 2
        assert err.count("\n") == 1
        assert f"{key} is not what the plan records" in err


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("in_place", 1), ("in_place", "yes"), ("order", "back"), ("order", 1), ("seed", -1), ("seed", "a"),
        ("beam_width", 0), ("strategy", "luck"), ("inputs", None), ("moves", "no"), ("time_limit", "long"),
        ("pin", "x"), ("state", "y"), ("pin", None),
    ],
)  # fmt: skip
def test_options_of_another_type_are_refused(ladder: Network, key: str, value: Any) -> None:
    forged = _read(onchip_package.plan(ladder, budget="MR", fuse=False), **{key: value})
    _refused(forged, "result", f"option {key} is")
    if key in PINNED:  # and what is proved without a check takes the plan's own pins
        assert prove(forged).outcome == "proved"


@pytest.mark.parametrize(
    ("planner", "kind"),
    [
        ("placement", PlacementOptions),
        ("memories", PlacementOptions),
        ("fusion", FusionOptions),
        ("joint", JointOptions),
        ("branches", BranchOptions),
    ],
)
def test_the_checker_knows_the_options_of_every_planner(planner: str, kind: type[Any]) -> None:
    hints = get_type_hints(kind)
    for field in fields(kind):
        if field.name in ("objective", *PINNED):
            continue
        known, hint = OPTIONS[planner][field.name], hints[field.name]
        if get_origin(hint) is Literal:
            assert known == get_args(hint)
        else:
            assert (known is bool) == (bool in (hint, *get_args(hint)))
            assert isinstance(known, range) == (int in (hint, *get_args(hint)))


def test_bounds_that_the_planner_does_not_prove_are_refused(made: Plan, ladder: Network) -> None:
    for key in ("peak_lower_bound_bytes", "dram_lower_bound_bytes"):
        _refused(_claiming(made, **{key: 1}), "claim", f"planner placement proves no {key} by traffic")
    fused = onchip_package.plan(ladder, budget="MR", fuse=True)
    _refused(_claiming(fused, peak_lower_bound_bytes=1), "claim", "planner joint proves no peak_lower_bound")


def test_a_proof_says_which_bounds_it_proves(
    ladder: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    generic = onchip_package.chip("generic")
    rates = Rates(dram_bytes_per_second=1e9, macs_per_second=1e9, dram_picojoules_per_byte=1.0)
    chip = replace(generic, name="rated", rates=rates)
    made = onchip_package.plan(ladder, chip, budget="MR", fuse=False)
    latency = made.result.latency_picoseconds
    assert latency is not None
    honest = prove(_read(made))
    assert honest.outcome == "proved"
    assert set(honest.holds) == {
        "lower_bound_bytes", "latency_lower_bound_picoseconds", "energy_lower_bound_picojoules"
    }  # fmt: skip
    bound = made.result.latency_lower_bound_picoseconds
    assert bound is not None
    assert bound < latency
    forged = _claiming(made, latency_lower_bound_picoseconds=latency)
    proof = prove(forged)
    assert proof.outcome == "proved"
    assert proof.unproved == ("latency_lower_bound_picoseconds",)
    path = tmp_path / "plan.json"
    path.write_text(to_json(forged))
    assert onchip(monkeypatch, "check", "--prove", str(path)) == 0
    out = capsys.readouterr().out
    assert f"the options in the file; lower_bound_bytes of {made.result.lower_bound_bytes:,}" in out
    assert f"in the file, not proved: latency_lower_bound_picoseconds of {latency:,}" in out
    assert onchip(monkeypatch, "check", "--prove", "--json", str(path)) == 0
    said = json.loads(capsys.readouterr().out)["proof"]
    assert said["unproved"] == ["latency_lower_bound_picoseconds"]
    assert "lower_bound_bytes" in said["holds"]


@pytest.mark.parametrize(
    "options",
    [
        {"budget": "MR", "order": "given", "weights": "resident"},
        {"budget": "MR", "strategy": "beam"},
        {"budget": "MR", "objective": "latency", "weights": "resident"},
        {"budget": 7168, "pin": ("weights:o1",), "weights": "resident"},
        {"objective": "peak", "order": "given"},
        {"budget": "MR", "inputs": "literal"},
        {"budget": 6144, "fuse": True, "overlap": False},
    ],
    ids=str,
)
def test_no_plan_of_a_planner_is_refused(ladder: Network, options: dict[str, Any]) -> None:
    rates = replace(RATED.rates, dram_bytes_per_second=1e9, macs_per_second=1e9)
    chip = replace(RATED, rates=rates)
    made = _read(onchip_package.plan(ladder, chip, **{"fuse": False, **options}))
    assert made.check() == made.result
    if standing(made) == "claimed":
        proof = prove(made, chip=chip)
        assert (proof.outcome, proof.unproved) == ("proved", ())


@pytest.mark.parametrize("objective", ["latency", "edp"])
def test_claims_of_the_least_time_are_proved_with_the_rates_of_the_plan(
    objective: Literal["latency", "edp"], monkeypatch: pytest.MonkeyPatch
) -> None:
    few_looks(monkeypatch)
    chip = replace(RATED, tiles=TILES)
    made = onchip_package.plan(WORDED.network, chip, 80, fuse=True, objective=objective)
    proof = prove(from_text(to_text(made)))
    assert proof.outcome == "proved"
