"""A sweep from end to end: its rows are what the planners say, and no answer is worked out twice."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import onchip
from onchip.base.errors import InputError, UsageError
from onchip.planners import registry
from onchip.plans import Plan
from onchip.sweeps import compute as computing
from onchip.sweeps import pool
from onchip.sweeps.points import points, task_of
from onchip.sweeps.spec import parse_spec
from onchip.sweeps.table import to_parquet
from timed_plans import WORDED, few_looks

NETWORK = {
    "format": "onchip.network/1",
    "name": "n",
    "outputs": ["c"],
    "tensors": [
        {"name": "x", "bytes": 10, "kind": "input"},
        {"name": "a", "bytes": 20, "kind": "activation"},
        {"name": "b", "bytes": 30, "kind": "activation"},
        {"name": "c", "bytes": 5, "kind": "activation"},
    ],
    "operators": [
        {"name": "A", "type": "Conv", "inputs": ["x"], "outputs": ["a"], "weight_bytes": 100, "macs": 7},
        {"name": "B", "type": "Conv", "inputs": ["a"], "outputs": ["b"], "weight_bytes": 7},
        {"name": "C", "type": "Add", "inputs": ["a", "b"], "outputs": ["c"]},
    ],
}


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "net.json"
    path.write_text(json.dumps(NETWORK))
    return str(path)


def asked(model: str, **more: Any) -> dict[str, Any]:
    return {"networks": [model], "budgets": [54, 55, "MR", "MP", 100], **more}


def sweep(spec: dict[str, Any], folder: Path, **options: Any) -> Any:
    return onchip.sweep(spec, folder, jobs=1, **options)


@pytest.mark.thorough
def test_rows_are_what_the_planners_say(tmp_path: Path) -> None:
    made = sweep(
        {
            "networks": ["zoo:squeezenet1_0"],
            "chips": ["optimus"],
            "planners": ["plan", "fuse"],
            "budgets": ["256KiB", "4MiB"],
            "plan": {"strategy": ["exact", "greedy"]},
        },
        tmp_path / "s",
    )
    assert made.complete
    assert made.failed == 0
    assert len(made.rows) == 6
    missed = []
    for row in made.rows:
        options = {key.split(".")[1]: v for key, v in row.items() if "." in key and v is not None}
        try:
            if row["planner"] == "plan":
                plan = onchip.plan(
                    "zoo:squeezenet1_0", "optimus", row["budget_bytes"], dtype="int16", fuse=False, **options
                )
            else:
                fused = onchip.fuse("zoo:squeezenet1_0", "optimus", row["budget_bytes"])
                assert fused.plan is not None
                plan = fused.plan
                assert row["dram_bound_bytes"] == fused.lower_bound_bytes
        except onchip.Infeasible as no:
            missed.append((row, no.needs))
            continue
        for name in (
            "status",
            "dram_bytes",
            "traffic_bytes",
            "peak_bytes",
            "weight_bytes",
            "compulsory_bytes",
        ):
            assert row[name] == getattr(plan.result, name), name
        assert row["dram_bytes"] >= row["dram_bound_bytes"]
        assert row["dram_seconds"] == row["dram_bytes"] / 6.4e9
        assert row["compute_seconds"] == row["macs"] / 204.8e9
    assert len(missed) == 2
    for row, needs in missed:
        assert (row["status"], row["needs_bytes"], row["dram_bytes"]) == ("infeasible", needs, None)


@pytest.mark.thorough
def test_joint_plans_are_rows_and_no_worse_than_either_alone(tmp_path: Path) -> None:
    made = sweep(
        {
            "networks": "zoo:squeezenet1_0",
            "planners": ["plan", "fuse", "joint"],
            "budgets": ["64KiB", "2MiB"],
            "joint": {"overlap": False},
        },
        tmp_path / "s",
    )
    dram = {(row["planner"], row["budget"]): row["dram_bytes"] for row in made.rows}
    for budget in ("65536", "2097152"):
        others = [dram[name, budget] for name in ("plan", "fuse") if dram[name, budget] is not None]
        assert dram["joint", budget] <= min(others)
    (row,) = [row for row in made.rows if row["planner"] == "joint" and row["budget"] == "65536"]
    plan = onchip.plan("zoo:squeezenet1_0", budget="64KiB", fuse=True, overlap=False)
    assert row["dram_bytes"] == plan.result.dram_bytes
    assert row["dram_bound_bytes"] <= row["dram_bytes"]
    assert (row["status"] == "optimal") == (row["gap"] == 0)


@pytest.mark.thorough
def test_branches_and_chips_of_ones_own(tmp_path: Path, model: str) -> None:
    (tmp_path / "own.toml").write_text('name = "own"\nalignment_bytes = 4\nelement = "int8"\n')
    made = sweep(
        {"networks": "zoo:googlenet", "chips": ["exynos-npu"], "planners": "branches", "budgets": "chip"},
        tmp_path / "b",
    )
    (row,) = made.rows
    assert row["budget_bytes"] == 1 << 20
    assert row["dram_bytes"] == onchip.branches("zoo:googlenet").plan.result.dram_bytes
    own = sweep(asked(model, chips=[str(tmp_path / "own.toml")]), tmp_path / "o")
    assert [row["needs_bytes"] for row in own.rows][:2] == [60, 60]


@pytest.mark.thorough
def test_names_are_resolved_and_infeasible_points_are_rows(tmp_path: Path, model: str) -> None:
    made = sweep(asked(model), tmp_path / "s")
    assert [(r["budget"], r["budget_bytes"], r["status"]) for r in made.rows] == [
        ("54", 54, "infeasible"),
        ("55", 55, "optimal"),
        ("MR", 55, "optimal"),
        ("MP", 55, "optimal"),
        ("100", 100, "optimal"),
    ]
    assert made.rows[0]["needs_bytes"] == 55
    assert "operator C" in made.rows[0]["reason"]
    assert {r["compulsory_limit_bytes"] for r in made.rows} == {10 + 5 + 107}
    assert {r["macs"] for r in made.rows} == {7}


@pytest.mark.thorough
def test_what_has_an_answer_is_not_computed_again(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = sweep(asked(model), tmp_path / "s")
    assert (first.outcome.computed, first.outcome.reused) == (5, 0)
    again = sweep(asked(model), tmp_path / "s")
    assert (again.outcome.computed, again.outcome.reused) == (0, 5)
    assert again.rows == first.rows
    more = sweep(asked(model, budgets=[70, 55], plan={"strategy": ["exact", "greedy"]}), tmp_path / "s")
    assert (more.outcome.computed, more.outcome.reused) == (3, 1)
    # Nor is the model needed any more but to be recognised; another model is another network.
    Path(model).write_text(json.dumps({**NETWORK, "name": "other"}))
    assert sweep(asked(model), tmp_path / "s").outcome.reused == 0


@pytest.mark.thorough
def test_points_that_are_the_same_are_computed_once(tmp_path: Path, model: str) -> None:
    made = sweep({"networks": [model, {"model": model, "dtype": "file"}], "budgets": [55]}, tmp_path / "s")
    assert len(made.rows) == 2
    both = sweep({"networks": [model], "budgets": [55], "plan": {"strategy": "exact"}}, tmp_path / "s")
    assert both.outcome.reused == 1


@pytest.mark.thorough
def test_a_limit_is_obeyed_and_only_what_it_left_open_is_tried_again(tmp_path: Path, model: str) -> None:
    first = sweep(asked(model, limits={"seconds_per_point": 5}), tmp_path / "s")
    assert all(row["status"] in ("optimal", "infeasible") for row in first.rows)
    again = sweep(asked(model, limits={"seconds_per_point": 50}), tmp_path / "s")
    assert again.outcome.computed == 0


@pytest.mark.thorough
def test_the_time_limit_leaves_a_state_to_go_on_from(tmp_path: Path, model: str) -> None:
    cut = sweep(asked(model), tmp_path / "s", time_limit=0)
    assert (cut.outcome.end, cut.complete, cut.rows) == ("time", False, ())
    assert (tmp_path / "s" / "table.csv").read_text().startswith("network,chip,planner")
    assert sweep(asked(model), tmp_path / "s").complete


@pytest.mark.thorough
def test_the_files_hold_the_rows(tmp_path: Path, model: str) -> None:
    made = sweep(asked(model, chips="optimus", chip={"array": ["4x4", "8x8"]}), tmp_path / "s")
    with (tmp_path / "s" / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["chip.array"] for row in rows] == ["4x4"] * 5 + ["8x8"] * 5
    for row, read in zip(made.rows, rows, strict=True):
        assert {k: "" if v is None else str(v) for k, v in row.items()} == read
    page = (tmp_path / "s" / "report.html").read_text("utf-8")
    assert "8x8" in page
    assert "://" not in page


@pytest.mark.thorough
def test_parquet_has_typed_columns(tmp_path: Path, model: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    made = sweep(asked(model, plan={"in_place": [True, False], "beam_width": [3]}), tmp_path / "s")
    table = parquet.read_table(tmp_path / "s" / "table.parquet")
    assert table.to_pylist() == list(made.rows)
    types = {field.name: str(field.type) for field in table.schema}
    assert types["dram_bytes"] == types["plan.beam_width"] == types["macs"] == "int64"
    assert types["plan.in_place"] == "bool"
    assert types["gap"] == types["seconds"] == "double"
    assert types["reason"] == types["budget"] == "string"
    assert parquet.read_schema(tmp_path / "s" / "table.parquet").names == list(made.columns)
    assert to_parquet([], made.columns)  # a table without rows is one, too


@pytest.mark.thorough
def test_without_pyarrow_no_older_table_stays(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "s" / "table.parquet"
    sweep(asked(model), tmp_path / "s")
    old.write_bytes(b"of another sweep")
    monkeypatch.setattr("onchip.sweeps.swept.has_parquet", lambda: False)
    assert old not in sweep(asked(model), tmp_path / "s").save()
    assert not old.exists()


def test_a_network_that_cannot_be_read_is_named_before_anything_is_computed(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(UsageError) as problem:
        sweep({"networks": ["zoo:alexnet", str(tmp_path / "bad.json")], "budgets": ["MR"]}, tmp_path / "s")
    assert "networks[1]" in str(problem.value)
    assert "bad.json" in str(problem.value)
    assert not (tmp_path / "s" / "table.csv").exists()


def test_a_folder_that_cannot_be_used_is_one_line(tmp_path: Path, model: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        sweep(asked(model), tmp_path / "file")
    with pytest.raises(InputError, match="file"):
        sweep(asked(model), tmp_path / "file" / "below")


def test_a_planner_that_breaks_is_an_answer_with_its_reason(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Plan:
        raise ZeroDivisionError("oh")

    own = registry.find("placement")
    assert own is not None
    monkeypatch.setattr(registry, "section", lambda key: replace(own, solve=broken))
    (point,) = points(parse_spec({"networks": model, "budgets": 60}, "s"))
    network = onchip.load(model).network
    found = computing.compute(task_of(point, "n", None), lambda key: network)
    assert found.figures["status"] == "failed"
    assert "ZeroDivisionError: oh" in found.figures["reason"]


DEADLY = """
import os, sys
from dataclasses import replace
from onchip.planners import registry
from onchip.sweeps import worker
own = registry.find("placement")
def solve(network, chip, budget, options, limits):
    if budget == 70:
        print("so it goes", file=sys.stderr, flush=True)
        os.kill(os.getpid(), 9)
    print("a library that prints")
    return own.solve(network, chip, budget, options, limits)
registry.section = lambda key: replace(own, solve=solve)
worker.main(sys.argv[1], int(sys.argv[2]))
"""


@pytest.mark.thorough
def test_a_point_that_kills_its_workers_fails_and_no_other_does(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "START", DEADLY)
    made = sweep(asked(model, budgets=[60, 70, 80, 90, 95]), tmp_path / "s")
    assert [row["status"] for row in made.rows] == ["optimal", "failed", "optimal", "optimal", "optimal"]
    assert made.failed == 1
    for part in ("3 workers died", "SIGKILL", "so it goes"):
        assert part in made.rows[1]["reason"]
    monkeypatch.undo()
    kept = sweep(asked(model, budgets=[60, 70, 80, 90, 95]), tmp_path / "s")
    assert (kept.failed, kept.outcome.computed) == (1, 0)
    healed = sweep(asked(model, budgets=[60, 70, 80, 90, 95]), tmp_path / "s", retry=True)
    assert (healed.failed, healed.outcome.computed) == (0, 1)


@pytest.mark.thorough
def test_workers_that_do_not_start_are_an_error_and_fail_no_point(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "START", "import sys; sys.exit('no luck')")
    monkeypatch.setattr(pool, "MOST_IDLE_DEATHS", 2)
    with pytest.raises(InputError, match=r"cannot be started.*no luck"):
        sweep(asked(model), tmp_path / "s")
    monkeypatch.undo()
    assert sweep(asked(model), tmp_path / "s").failed == 0


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"jobs": -1}, "jobs"),
        ({"time_limit": -1}, "time_limit"),
        ({"jobs": 2, "dask": "x:1"}, "dask"),
        ({"job": 1}, "job"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, model: str, options: dict[str, Any], part: str) -> None:
    with pytest.raises(UsageError, match=part):
        onchip.sweep(asked(model), tmp_path / "s", **options)
    with pytest.raises(UsageError, match="folder"):
        onchip.sweep(asked(model))


TIMED = """
name = "timed"
alignment_bytes = 1
element = "int8"
dram_picojoules_per_byte = 64.0
[tiles]
clock_hertz = 1_000_000_000
[[tiles.channel]]
bytes_per_second = 1_000_000_000
"""


@pytest.mark.thorough
def test_times_of_tiles_are_swept_over_bandwidth_and_buffer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_looks(monkeypatch)
    (tmp_path / "timed.toml").write_text(TIMED)
    rates = [500_000_000, 1_000_000_000]
    spec = parse_spec(
        {
            "networks": ["worded.json"],
            "chips": ["./timed.toml"],
            "planners": ["joint"],
            "budgets": [48, 80],
            "chip": {"channel_bytes_per_second": rates},
            "joint": {"objective": ["latency", "edp"]},
        },
        "spec.toml",
        tmp_path,
    )
    tasks = [task_of(point, "n", None) for point in points(spec)]
    assert len({task.key for task in tasks}) == len(tasks) == 8
    for task in tasks:
        sent = msgspec.json.decode(msgspec.json.encode(task), type=type(task))
        figures = computing.compute(sent, lambda _: WORDED.network).figures
        assert sent.chip.tiles is not None
        assert sent.chip.tiles.channels[0].bytes_per_second in rates
        bound, latency = figures["latency_bound_picoseconds"], figures["latency_picoseconds"]
        assert 0 < bound <= latency
        if task.options["objective"] == "latency":
            assert figures["gap"] == round((latency - bound) / bound, 9)
        else:
            least = bound * figures["energy_bound_picojoules"]
            assert figures["gap"] == round((latency * figures["energy_picojoules"] - least) / least, 9)


@pytest.mark.parametrize(
    ("chip", "rate", "reason"),
    [
        ("./timed.toml", 0, "bytes_per_second of channel 1 is 0"),
        ("./timed.toml", 1e9, "no whole number"),
        ("optimus", 10**9, "states no rates of tiles"),
    ],
)
def test_a_rate_of_channels_that_is_none_is_refused(
    tmp_path: Path, chip: str, rate: float, reason: str
) -> None:
    (tmp_path / "timed.toml").write_text(TIMED)
    table = {
        "networks": ["zoo:alexnet"],
        "chips": [chip],
        "budgets": [48],
        "chip": {"channel_bytes_per_second": rate},
    }
    with pytest.raises(UsageError, match=reason):
        parse_spec(table, "spec.toml", tmp_path)
