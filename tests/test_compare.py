"""`onchip compare`: every row certified, none better than the optimum, and what does not fit says so."""

from __future__ import annotations

import json
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings

import onchip
from onchip import cli
from onchip.base.errors import NegativeAnswer
from onchip.comparison.baselines import SCHEMES
from onchip.comparison.comparison import CompareOptions, compare, other_planners
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.network.json import wire_network
from onchip.planners import registry
from onchip.planners.limits import Limits
from onchip.plans import Plan
from strategies import Case, cases, network_of

TIGHT = network_of(
    {"x": 4, "a": 8, "b": 8, "c": 8, "d": 4, "e": 4, "y": 2},
    ["x -> a", "a -> b", "a -> c", "b -> d", "c -> e", "a d e -> y"],
    "y",
)
"""At its MR (18 bytes) something has to go, and runtimes that evict nothing do not fit."""


def run(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *args])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tight.json"
    document = {"format": "onchip.network/1", **msgspec.to_builtins(wire_network(TIGHT))}
    path.write_text(json.dumps(document))
    return path


@pytest.mark.thorough
@settings(max_examples=25)
@given(case=cases(max_operators=6))
def test_rows_are_certified_and_none_beats_the_bound(case: Case) -> None:
    options = CompareOptions(strategies="exact,exact:given,exact:minpeak", planners="none")
    made = compare(case.network, case.chip, case.budget, options)
    assert [r.scheme for r in made.rows] == ["exact", "exact:given", "exact:minpeak", *SCHEMES]
    assert made.complete
    for row in made.rows:
        if row.plan is None:
            assert row.status == "does not fit"
            assert row.needs_bytes is not None
            assert row.needs_bytes > case.budget
            assert row.traffic_bytes is row.reduction is None
            continue
        assert onchip.Plan.of(row.plan).check() == row.plan.result
        assert row.traffic_bytes == row.plan.result.traffic_bytes >= made.bound
        if row.traffic_bytes:
            assert row.reduction is not None
            best = min(r.dram_bytes for r in made.rows if r.dram_bytes is not None)
            assert row.dram_bytes is not None
            assert row.reduction == 1 - best / row.dram_bytes
            assert row.dram_bytes >= made.limit_bytes > 0
    assert json.loads(json.dumps(made.data()))["rows"][0]["scheme"] == "exact"


def test_the_public_verb_takes_what_plan_takes(model: Path) -> None:
    made = onchip.compare(str(model), budget="MR", schemes="given-greedy,tflm", planners="none")
    assert [row.scheme for row in made.rows] == ["exact", "given-greedy", "tflm"]
    assert made["exact"].status == "optimal"
    assert made["tflm"].status == "does not fit"
    assert onchip.compare(TIGHT, budget=made["tflm"].needs_bytes)["tflm"].traffic_bytes == 0
    with pytest.raises(KeyError):
        made["belady"]
    assert "given-greedy" in str(made)


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ({"strategies": "best"}, "best"),
        ({"strategies": "exact:sideways"}, "sideways"),
        ({"schemes": "exact"}, "exact"),
        ({"strategies": "", "schemes": "none", "planners": "none"}, "nothing"),
        ({"planners": "exact"}, "exact"),
        ({"weights": "heavy"}, "weights"),
        ({"time_limit": -1}, "time_limit"),
        ({"memory_limit": 0}, "memory_limit"),
        ({"colour": 1}, "colour"),
    ],
)
def test_wrong_options_are_refused_by_name(option: dict[str, object], named: str) -> None:
    with pytest.raises(onchip.UsageError, match=named):
        onchip.compare(TIGHT, budget="MR", **option)


def test_all_planners_stand_side_by_side_and_none_goes_below_the_limit() -> None:
    made = onchip.compare("zoo:squeezenet1_0", budget="MR", schemes="none")
    assert [row.scheme for row in made.rows] == [*other_planners(), "exact"]
    for row in made.rows:
        assert row.plan is not None
        assert onchip.Plan.of(row.plan).check().dram_bytes == row.dram_bytes
        assert row.dram_bytes >= made.limit_bytes
    # The first convolution steps over the last row and column of the image; a nest does not fetch them.
    assert made["joint"].dram_bytes == made.limit_bytes < made["exact"].dram_bytes


@pytest.mark.thorough
def test_where_operators_do_not_fit_whole_the_others_still_have_their_rows() -> None:
    made = onchip.compare("zoo:squeezenet1_0", budget="128KiB", schemes="tflm")
    assert made["exact"].status == made["tflm"].status == "does not fit"
    assert made["exact"].needs_bytes == 1_492_992
    assert made["fusion"].status == "optimal"
    assert "needs 1,492,992" in str(made)


def test_a_planner_that_cannot_take_a_network_says_why() -> None:
    made = onchip.compare(TIGHT, budget="MR", schemes="none")
    assert made["branches"].status == "no plan"
    assert made["branches"].reason
    assert f"branches: {made['branches'].reason}" in " ".join(str(made).split())


def test_a_row_has_ten_seconds_unless_more_or_fewer_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float | None] = []

    def solve(network: Network, chip: Chip, budget: int, options: object, limits: Limits) -> Plan:
        given.append(limits.time_limit)
        raise NegativeAnswer("not asked to")

    asked, own = replace(other_planners()["joint"], solve=solve), registry._own
    monkeypatch.setattr(registry, "_own", lambda name: asked if name == "joint" else own(name))
    made = onchip.compare(TIGHT, budget="MR", planners="joint", schemes="none")
    assert CompareOptions().asked[0].time_limit == made.time_limit == 10
    for seconds in (0.5, None):
        onchip.compare(TIGHT, budget="MR", planners="joint", schemes="none", time_limit=seconds)
    assert given == [10, 0.5, None]


def test_what_is_not_proved_is_said_with_its_gap() -> None:
    """Without any time a search proves nothing; with it the rows have no gap."""
    cut = onchip.compare("zoo:googlenet", budget="256KiB", planners="fusion", schemes="none", time_limit=0.0)
    row = cut["fusion"]
    assert row.status == "feasible"
    assert row.plan is not None
    least = row.plan.result.dram_lower_bound_bytes
    assert least is not None
    assert row.dram_bytes is not None
    assert row.gap == row.dram_bytes / least - 1 > 0
    text = " ".join(str(cut).split())
    assert f"{100 * row.gap:.1f} %" in text
    assert "not proved to be the least in 0 s (--time-limit), at most the gap above it: fusion" in text
    proved = onchip.compare(TIGHT, budget="MR", planners="joint", schemes="none")
    assert [(r.status, r.gap) for r in proved.rows] == [("optimal", 0.0)] * 2
    assert not {"not proved", "gap"} & set(re.findall("not proved|gap", str(proved)))


def test_below_mr_nothing_is_compared() -> None:
    for strategies, schemes in (("exact", "none"), ("", "tflm")):
        with pytest.raises(onchip.Infeasible, match="operator op"):
            onchip.compare(TIGHT, budget=15, strategies=strategies, schemes=schemes, planners="none")


def test_ctrl_c_keeps_the_rows_that_are_finished() -> None:
    before = signal.getsignal(signal.SIGINT)

    def press(line: str) -> None:
        if line.startswith("minpeak-belady"):
            signal.raise_signal(signal.SIGINT)

    made = onchip.compare(TIGHT, budget="MR", planners="none", progress=press)
    assert [row.scheme for row in made.rows] == ["exact", "given-belady", "given-greedy"]
    assert not made.complete
    assert "interrupted" in str(made)
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_before_the_first_row_is_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt):
        onchip.compare(TIGHT, budget=24, progress=lambda _: signal.raise_signal(signal.SIGINT))


@pytest.mark.slow
def test_a_search_that_is_interrupted_gives_its_row_and_ends_the_comparison() -> None:
    def press(line: str) -> None:
        if "states" in line:
            signal.raise_signal(signal.SIGINT)

    made = onchip.compare("zoo:pnasnet5large", budget="MR", planners="none", progress=press)
    assert not made.complete
    assert [row.scheme for row in made.rows] == ["exact"]
    assert made.rows[0].plan is not None
    assert made.rows[0].status == "feasible"


def test_the_command_line_prints_the_table_and_the_data(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "110")  # in a narrower terminal names may fold
    assert run(monkeypatch, "compare", str(model), "--budget", "MR") == 0
    out = capsys.readouterr().out
    for word in (*SCHEMES, "exact", "does not fit", "needs", "optimal"):
        assert word in out
    assert run(monkeypatch, "compare", str(model), "--budget", "MR", "--weights", "resident", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["budget"] == 18
    assert {row["scheme"] for row in data["rows"]} == {"exact", *SCHEMES, *other_planners()}


@pytest.mark.parametrize(
    ("args", "code", "part"),
    [
        (["--budget", "15"], 1, "infeasible"),
        (["--budget", "MR", "--strategies", "nope"], 2, "nope"),
        (["--budget", "MR", "--schemes", "nope"], 2, "nope"),
        (["--budget", "lots"], 2, "lots"),
        ([], 2, "--budget"),
        (["--budget", "MR", "--memory-limit", "1.5 bytes"], 2, "--memory-limit"),
    ],
)
def test_bad_usage_is_one_line(
    args: list[str],
    code: int,
    part: str,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, "compare", str(model), *args) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("onchip: ")
    assert err.count("\n") == 1
    assert part in err
