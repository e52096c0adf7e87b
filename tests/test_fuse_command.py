"""`onchip fuse` as a user meets it: a table, data, a plan that others read, a line for every refusal."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import onchip as onchip_package
from onchip import cli

certified = pytest.mark.skipif(
    find_spec("onchip.check.tiles") is None, reason="the checker proves nothing of tiles"
)

MAP = 8


def window(
    name: str, kind: str, tensors: tuple[str, str], channels: tuple[int, int], kernel: int
) -> dict[str, Any]:
    """A convolution or pool over an 8 x 8 map of one byte an element, which keeps its size."""
    around = kernel // 2
    weights = channels[0] * channels[1] * kernel * kernel if kind == "conv" else 0
    return {
        "name": name,
        "type": {"conv": "Conv", "pool": "MaxPool"}[kind],
        "inputs": [tensors[0]],
        "outputs": [tensors[1]],
        "weight_bytes": weights,
        "geometry": {
            "kind": kind,
            "input": [1, channels[0], MAP, MAP],
            "output": [1, channels[1], MAP, MAP],
            "kernel": [kernel, kernel],
            "stride": [1, 1],
            "padding": [around] * 4,
            "dilation": [1, 1],
        },
    }


NETWORK: dict[str, Any] = {
    "format": "onchip.network/1",
    "name": "small",
    "outputs": ["c"],
    "tensors": [
        {"name": "x", "bytes": 4 * MAP * MAP, "kind": "input"},
        {"name": "a", "bytes": 32 * MAP * MAP, "kind": "activation"},
        {"name": "b", "bytes": 32 * MAP * MAP, "kind": "activation"},
        {"name": "c", "bytes": 4 * MAP * MAP, "kind": "activation"},
    ],
    "operators": [
        window("first", "conv", ("x", "a"), (4, 32), 3),
        window("pool", "pool", ("a", "b"), (32, 32), 3),
        window("last", "conv", ("b", "c"), (32, 4), 1),
    ],
}
BUDGET = 3000
"""Room for bands, not for whole maps."""


def onchip(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *args])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.json"
    path.write_text(json.dumps(NETWORK))
    return path


def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int, *args: str
) -> str:
    """The one line that these arguments are refused with."""
    assert onchip(monkeypatch, *args) == code
    err = capsys.readouterr().err
    assert err.startswith("onchip: ")
    assert err.count("\n") == 1
    return err


@certified
def test_a_fused_plan_is_proved_shown_and_read_again(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, page = model.with_name("plan.json"), model.with_name("plan.html")
    args = ["fuse", str(model), "--budget", str(BUDGET), "-o", str(plan), "--report", str(page)]
    assert onchip(monkeypatch, *args) == 0
    out = capsys.readouterr().out
    for part in ("small on generic", "optimal", "first", "3 operators", "no fusion", "oracle", "executable"):
        assert part in out
    assert 'id="graph"' in page.read_text()
    assert onchip(monkeypatch, "check", str(plan)) == 0
    out = capsys.readouterr().out
    assert "legal" in out
    dram = onchip_package.read(plan).result.dram_bytes
    assert f"optimal by dram: DRAM {dram:,} B\n" in out  # the bound is reached: none is claimed beside it
    assert onchip(monkeypatch, "report", str(plan)) == 0
    out = capsys.readouterr().out
    assert "no partition into groups" in out
    assert "Groups" in out


@certified
def test_json_has_every_field_and_its_figures_add_up(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert onchip(monkeypatch, "fuse", str(model), "--budget", str(BUDGET), "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["element"] == "int8"
    assert made["executable"] is True
    assert made["status"] == "optimal"
    assert made["lower_bound_words"] == made["dram_words"] == sum(g["dram_words"] for g in made["groups"])
    assert sorted(op for g in made["groups"] for op in g["operators"]) == ["first", "last", "pool"]
    assert set(made["baselines"]) == {"none", "dnnvm", "efficient_s", "without_model", "oracle"}
    assert made["baselines"]["oracle"] <= made["dram_words"] < made["baselines"]["none"]
    assert made["options"]["isoa"] == "channelwise"
    for g in made["groups"]:
        parts = ("in_words", "out_words", "halo_words", "weight_words")
        assert g["dram_words"] == sum(g[key] for key in parts)
        assert 0 < g["scratch_bytes"] <= BUDGET
        assert set(g) >= {"name", "subgroups", "rows", "streamed", "resident"}
    assert any(g["subgroups"] > 1 for g in made["groups"])


@certified
def test_a_baseline_that_was_not_searched_to_its_end_is_marked(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["fuse", str(model), "--budget", str(BUDGET)]
    for limit, incomplete in (([], []), (["--time-limit", "0"], ["without_model"])):
        assert onchip(monkeypatch, *args, *limit, "--json") == 0
        assert json.loads(capsys.readouterr().out)["baselines_incomplete"] == incomplete
        assert onchip(monkeypatch, *args, *limit) == 0
        assert capsys.readouterr().out.count("(best found)") == len(incomplete)


@certified
def test_a_bound_between_two_words_is_the_next_whole_one(model: Path) -> None:
    made = onchip_package.fuse(str(model), budget=BUDGET)
    wide = replace(made, network=replace(made.network, element="int16"), status="feasible")
    odd = replace(wide, lower_bound_bytes=made.lower_bound_bytes - 1 - made.lower_bound_bytes % 2)
    bound = odd.data()["lower_bound_words"]
    assert type(bound) is int
    assert 2 * bound == odd.lower_bound_bytes + 1
    assert f"{bound:,}." in str(odd)


def test_what_no_machine_runs_has_figures_and_no_plan(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["fuse", str(model), "--budget", str(BUDGET), "--no-weight-tile"]
    assert onchip(monkeypatch, *args) == 0
    assert "not executable: " in capsys.readouterr().out
    plan = model.with_name("plan.json")
    line = refused(monkeypatch, capsys, 1, *args, "-o", str(plan))
    assert "-o" in line
    assert "no plan" in line
    assert not plan.exists()
    assert onchip(monkeypatch, *args, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["executable"] is False
    assert made["why_not_executable"]


@pytest.mark.thorough
@certified
def test_a_tflite_plan_is_proved_and_says_that_run_cannot_take_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tflite")
    import numpy as np

    from readers.tflite_build import Op, T
    from readers.tflite_build import model as tflite_model

    path, plan = tmp_path / "net.tflite", tmp_path / "plan.json"
    tensors = [T((1, 8, 8, 4), name="x"), T((4, 1, 1, 4), "float32", np.zeros((4, 1, 1, 4))), T((1, 8, 8, 4))]
    path.write_bytes(
        tflite_model(
            tensors, [Op("CONV_2D", [0, 1], [2], ("Conv2DOptions", {"StrideH": 1, "StrideW": 1}))], [0], [2]
        )
    )
    args = ["fuse", str(path), "--budget", "4KiB", "-o", str(plan)]
    assert onchip(monkeypatch, *args) == 0
    assert "not executable: the plan is proved" in " ".join(capsys.readouterr().out.split())
    assert onchip(monkeypatch, *args, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["executable"] is False
    assert ".tflite" in made["why_not_executable"]
    assert onchip(monkeypatch, "check", str(plan)) == 0
    assert onchip(monkeypatch, "run", str(plan)) == 2


def test_too_little_room_is_a_no_that_names_the_operator(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(monkeypatch, capsys, 1, "fuse", str(model), "--budget", "9")
    assert "infeasible" in line
    assert "operator" in line
    assert "9" in line


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (["MODEL"], ["generic", "scratchpad_bytes", "--budget"]),
        (["MODEL", "--chip", "nope"], ["nope"]),
        (["MODEL", "--budget", "MR"], ["--budget", "MR"]),
        (["MODEL", "--budget", "0"], ["--budget"]),
        (["zoo:squeezenet1_0", "--chip", "optimus", "--batch", "0"], ["batch"]),
        (["zoo:squeezenet1_0", "--chip", "optimus", "--batch", "99999999999"], ["batch"]),
        (["zoo:squeezenet1_0", "--chip", "optimus", "--batch", "four"], ["--batch"]),
        (["MODEL", "--budget", "3000", "--batch", "2"], ["batch"]),
        (["MODEL", "--budget", "3000", "--isoa", "most"], ["isoa", "most"]),
        (["MODEL", "--budget", "3000", "--channel-tile", "0"], ["--channel-tile"]),
        (["MODEL", "--budget", "3000", "--time-limit", "-1"], ["--time-limit"]),
        (["MODEL", "--budget", "3000", "--online", "--search", "algorithm1"], ["--online", "algorithm1"]),
        (["MODEL", "--budget", "3000", "-o", "MODEL"], ["net.json"]),
        (["MODEL", "--budget", "3000", "-o", "/nowhere/plan.json"], ["/nowhere/plan.json"]),
        (["missing.onnx", "--budget", "3000"], ["missing.onnx"]),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(
    args: list[str],
    parts: list[str],
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = refused(monkeypatch, capsys, 2, "fuse", *[str(model) if a == "MODEL" else a for a in args])
    for part in parts:
        assert part in line


def test_an_interrupt_is_one_line(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.fuse.api, "fuse", interrupt)
    assert "interrupted" in refused(monkeypatch, capsys, 130, "fuse", str(model), "--budget", "3000")


def test_help_names_every_option(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert onchip(monkeypatch, "fuse", "--help") == 0
    text = capsys.readouterr().out
    for flag in ("--isoa", "--batch-weights", "--residency", "--online", "--batch"):
        assert flag in text


@certified
def test_in_python_the_result_shows_and_holds_itself(model: Path) -> None:
    made = onchip_package.fuse(str(model), budget=BUDGET)
    assert made.plan is not None
    assert made.plan.check().dram_bytes == made.dram_bytes == sum(g.dram_bytes for g in made.groups)
    assert made.status in str(made)
    again = onchip_package.Plan.from_text(made.plan.to_json())
    assert again == made.plan
    with pytest.raises(onchip_package.UsageError, match="surprise"):
        onchip_package.fuse(str(model), budget=BUDGET, surprise=1)


@certified
@pytest.mark.parametrize("width", [80, 140])
def test_no_line_is_wider_than_the_terminal_and_no_figure_cut(width: int, model: Path) -> None:
    from rich.console import Console

    from onchip.results.fused import table

    made = onchip_package.fuse(str(model), budget=BUDGET)
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(table(made, console.width))
    lines = capture.get().splitlines()
    assert max(map(len, lines)) <= width
    assert f"{made.dram_bytes / 1000:,.1f}" in capture.get()
    assert f"{made.baselines['none']:,}" in capture.get()
