"""`onchip branches` as a user meets it: Table 1, data, a plan that others read, a line for every refusal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import onchip as onchip_package
from onchip import cli

MAP = 8


def layer(
    name: str, kind: str, tensors: tuple[str, str], channels: tuple[int, int], kernel: int = 1
) -> dict[str, Any]:
    """A convolution or pool over an 8 x 8 map of one byte an element, which keeps its size."""
    weights = channels[0] * channels[1] * kernel * kernel + 4 * channels[1] if kind == "conv" else 0
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
            "padding": [kernel // 2] * 4,
            "dilation": [1, 1],
        },
    }


def concat(name: str, inputs: list[str], output: str, channels: tuple[int, int]) -> dict[str, Any]:
    shapes = {key: [1, n, MAP, MAP] for key, n in zip(("input", "output"), channels, strict=True)}
    return {
        "name": name,
        "type": "Concat",
        "inputs": inputs,
        "outputs": [output],
        "geometry": {"kind": "concat", **shapes},
    }


def tensors(**channels: int) -> list[dict[str, Any]]:
    return [
        {"name": name, "bytes": n * MAP * MAP, "kind": "input" if name == "x" else "activation"}
        for name, n in channels.items()
    ]


NETWORK: dict[str, Any] = {
    "format": "onchip.network/1",
    "name": "small",
    "outputs": ["z"],
    "tensors": tensors(x=4, s=16, a=24, l=32, r=16, y=48, z=8),
    "operators": [
        layer("stem", "conv", ("x", "s"), (4, 16), 3),
        layer("block.first", "conv", ("s", "a"), (16, 24)),
        layer("block.left", "conv", ("a", "l"), (24, 32)),
        layer("block.right", "pool", ("s", "r"), (16, 16), 3),
        concat("block.cat", ["l", "r"], "y", (32, 48)),
        layer("head", "conv", ("y", "z"), (48, 8)),
    ],
}
"""x -> stem -> s; s -> first -> a -> left -> l, s -> right -> r; l, r -> cat -> y -> head -> z."""

ROOMY, TIGHT = "64KiB", "4500"
"""Budgets where the module stays on chip, and where it does not."""

CHAIN = {
    **NETWORK,
    "tensors": tensors(x=4, s=16, z=8),
    "operators": [layer("stem", "conv", ("x", "s"), (4, 16), 3), layer("head", "conv", ("s", "z"), (16, 8))],
}

SAME = {"kind": "elementwise", "input": [1, 16, MAP, MAP], "output": [1, 16, MAP, MAP]}
SKIP = {
    **NETWORK,
    "tensors": tensors(x=4, s=16, a=16, b=16, c=16, y=16, z=8),
    "operators": [
        layer("stem", "conv", ("x", "s"), (4, 16), 3),
        *(layer(f"deep.{to}", "conv", (of, to), (16, 16)) for of, to in ("sa", "ab", "bc")),
        {"name": "sum", "type": "Add", "inputs": ["c", "s"], "outputs": ["y"], "geometry": SAME},
        layer("head", "conv", ("y", "z"), (16, 8)),
    ],
}
"""x -> stem -> s -> a -> b -> c; c + s -> y -> head -> z."""

INCEPTION = {
    "Mixed_5b": (249, 2308.5, 8, 8, 0, 0, 0),
    "Mixed_5c": (270, 2835, 8, 8, 0, 0, 0),
    "Mixed_5d": (277.5, 3078, 8, 8, 0, 0, 0),
    "Mixed_6a": (1125, 1798.5, 5, 5, 300, 0, 3),
    "Mixed_6b": (1264, 2700, 11, 11, 300, 1, 0),
    "Mixed_6c": (1648, 2850, 11, 11, 0, 0, 0),
    "Mixed_6d": (1648, 2850, 11, 11, 0, 0, 0),
    "Mixed_6e": (2088, 3000, 11, 11, 0, 0, 0),
    "Mixed_7a": (1656, 1580, 7, 7, 0, 0, 0),
    "Mixed_7b": (4920, 808, 10, 10, 0, 0, 0),
    "Mixed_7c": (5928, 1096, 10, 10, 0, 0, 0),
    "total": (21073.5, 24904, 100, 100, 600, 1, 3),
}
"""Table 1 of the paper, figure by figure, under torchvision's names."""

COLUMNS = ("weights_kb", "naive_fm_kb", "naive_reads", "naive_writes", "fm_kb", "reads", "writes")


def onchip(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *args])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def write(path: Path, network: dict[str, Any]) -> Path:
    path.write_text(json.dumps(network))
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write(tmp_path / "net.json", NETWORK)


def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int, *args: str
) -> str:
    """The one line that these arguments are refused with."""
    assert onchip(monkeypatch, *args) == code
    err = capsys.readouterr().err
    assert err.startswith("onchip: ")
    assert err.count("\n") == 1
    return err


def test_inception_v3_has_the_paper_s_table_figure_by_figure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert onchip(monkeypatch, "branches", "zoo:inception_v3", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    rows = {**{m["name"]: m for m in made["modules"]}, "total": made["total"]}
    assert {name: tuple(row[key] for key in COLUMNS) for name, row in rows.items()} == INCEPTION
    assert [m["name"] for m in made["modules"] if m["processing"] == "II"] == ["Mixed_6a"]
    assert round(made["total"]["ratio_percent"], 2) == 47.14
    assert round(made["total"]["fm_ratio_percent"], 2) == 2.41
    assert made["rejected"] == made["long_skips"] == []


def test_a_plan_is_proved_shown_and_read_again(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, page = model.with_name("plan.json"), model.with_name("plan.html")
    args = ["branches", str(model), "--budget", ROOMY, "-o", str(plan), "--report", str(page)]
    assert onchip(monkeypatch, *args) == 0
    out = capsys.readouterr().out
    for part in (
        "small on exynos-npu",
        "1 module, processing I",
        "block",
        "stem",
        "all outside",
        "written to",
    ):
        assert part in out
    assert "<html" in page.read_text()
    assert onchip(monkeypatch, "check", str(plan)) == 0
    out = capsys.readouterr().out
    assert "legal" in out
    assert "1 module (1 I): feature maps 0 B, 0 reads and 0 writes" in " ".join(out.split())
    assert onchip(monkeypatch, "report", str(plan)) == 0
    text = model.with_name("plan.txt")
    assert onchip(monkeypatch, "branches", str(model), "--budget", ROOMY, "-o", str(text)) == 0
    made, again = onchip_package.read(plan), onchip_package.read(text)
    assert (made.program, made.sections) == (again.program, again.sections)


def test_json_has_every_figure_and_they_add_up(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert onchip(monkeypatch, "branches", str(model), "--budget", ROOMY, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    (module,) = made["modules"]
    assert (module["processing"], module["start"], module["merge"]) == ("I", "s", "block.cat")
    assert sorted(map(sorted, module["branches"])) == [["block.first", "block.left"], ["block.right"]]
    kernels = 16 * 24 + 24 * 32
    assert module["weights_kb"] == kernels / 1024
    assert module["parameters_kb"] == (24 + 32) * 4 / 1024
    assert module["naive_fm_kb"] == (16 + 24 + 24 + 32 + 16 + 16) * 64 / 1024
    assert (module["naive_reads"], module["naive_writes"]) == (3, 3)
    assert module["fm_kb"] == module["reads"] == module["writes"] == module["fm_ratio_percent"] == 0
    kinds = {(r["kind"], r["name"]) for r in module["regions"]}
    assert {("MIFM", "s"), ("MOFM", "y"), ("MOFM", "l"), ("MOFM", "r"), ("feature map", "a")} <= kinds
    for region in module["regions"]:
        assert 0 <= region["address"] < region["address"] + region["bytes"] <= made["budget"]
    assert {"block.first", "block.left", "block.right"} <= {x["operator"] for x in module["layers"]}
    assert all(x["required_kb"] <= x["available_kb"] for x in module["layers"] if x["forwarded"])
    for key in ("weights_kb", "parameters_kb", "naive_fm_kb", "fm_kb", "reads", "writes"):
        parts = [made["total"][key], made["outside_total"][key]]
        assert made["network_total"][key] == sum(parts)
        assert made["outside_total"][key] == sum(row[key] for row in made["outside"])
    moved = made["traffic_bytes"] + made["compulsory_bytes"]
    assert made["network_total"]["fm_kb"] * 1024 == moved == made["dram_bytes"] - made["weight_bytes"]


def test_where_room_is_short_the_output_goes_to_dram_and_less_moves_than_naively(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert onchip(monkeypatch, "branches", str(model), "--budget", TIGHT, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert [m["processing"] for m in made["modules"]] == ["II"]
    assert 0 < made["total"]["fm_kb"] <= made["total"]["naive_fm_kb"]


def test_a_network_without_a_module_is_said_to_have_none_and_has_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, plan = write(tmp_path / "chain.json", CHAIN), tmp_path / "plan.json"
    assert onchip(monkeypatch, "branches", str(model), "-o", str(plan)) == 0
    out = capsys.readouterr().out
    assert "no module of branches" in out
    assert "2 operators run by themselves" in " ".join(out.split())
    assert onchip(monkeypatch, "check", str(plan)) == 0
    capsys.readouterr()
    assert onchip(monkeypatch, "branches", str(model), "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["modules"] == []
    assert made["total"]["ratio_percent"] is None
    assert [row["name"] for row in made["outside"]]


def test_a_merge_that_closes_no_module_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leaking = {**NETWORK, "outputs": ["z", "a"]}  # a tensor inside is an output
    model = write(tmp_path / "leak.json", leaking)
    assert onchip(monkeypatch, "branches", str(model)) == 0
    out = capsys.readouterr().out
    assert "for the reasons below" in out
    assert "block.cat" in out
    assert onchip(monkeypatch, "branches", str(model), "--json") == 0
    (rejected,) = json.loads(capsys.readouterr().out)["rejected"]
    assert rejected["merge"] == "block.cat"
    assert rejected["reason"]


def test_a_long_connection_is_listed_with_what_it_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write(tmp_path / "skip.json", SKIP)
    args = ["branches", str(model), "--long-skip", "2"]
    assert onchip(monkeypatch, *args, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["options"]["long_skip"] == 2
    (skip,) = made["long_skips"]
    assert (skip["tensor"], skip["reader"], skip["layers"]) == ("s", "sum", 3)
    assert (skip["reads"], skip["read_kb"], skip["writes"], skip["written_kb"]) == (1, 1, 1, 1)
    assert made["modules"] == []
    assert onchip(monkeypatch, *args) == 0
    assert "Long connections" in capsys.readouterr().out
    assert onchip(monkeypatch, "branches", str(model), "--long-skip", "3", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["long_skips"] == []
    assert [m["merge"] for m in made["modules"]] == ["sum"]
    assert [] in made["modules"][0]["branches"]  # the identity


def test_the_map_lists_the_regions_of_every_module(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["branches", str(model), "--budget", ROOMY]
    assert onchip(monkeypatch, *args) == 0
    assert "MOFM" not in capsys.readouterr().out
    assert onchip(monkeypatch, *args, "--map") == 0
    out = capsys.readouterr().out
    for part in ("MIFM", "MOFM", "working", "1 layer", "2 layers", "required", "available", "stays"):
        assert part in out


def test_a_list_that_is_cut_says_where_the_rest_is(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["branches", str(model), "--budget", ROOMY]
    assert onchip(monkeypatch, *args) == 0
    assert "--json lists all" not in capsys.readouterr().out
    monkeypatch.setattr("onchip.results.branched_table.MOST_ROWS", 0)
    assert onchip(monkeypatch, *args) == 0
    assert "1 more: --json lists all" in capsys.readouterr().out


def test_exact_placement_is_shown_beside(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["branches", str(model), "--budget", TIGHT, "--beside", "--time-limit", "5"]
    assert onchip(monkeypatch, *args, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    (row,) = made["beside"]["rows"]
    assert row["modules"] == [made["modules"][0]["name"]]
    assert row["status"] == "optimal"
    assert row["exact_bytes"] <= row["simple_bytes"] <= made["total"]["fm_kb"] * 1024
    assert made["beside"]["exact_zero"]["bytes"] <= made["beside"]["simple_zero"]["bytes"]
    assert onchip(monkeypatch, *args) == 0
    assert "Beside exact placement" in capsys.readouterr().out


def test_too_little_room_is_a_no_that_names_the_operator(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = model.with_name("plan.json")
    line = refused(monkeypatch, capsys, 1, "branches", str(model), "--budget", "9", "-o", str(plan))
    for part in ("infeasible", "operator", "9", "missing", "because of"):
        assert part in line
    assert not plan.exists()


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (["MODEL", "--chip", "generic"], ["generic", "scratchpad_bytes", "--budget"]),
        (["MODEL", "--chip", "nope"], ["nope"]),
        (["MODEL", "--budget", "MR"], ["--budget", "MR"]),
        (["MODEL", "--budget", "0"], ["--budget"]),
        (["MODEL", "--rules", "mine"], ["rules", "mine"]),
        (["MODEL", "--long-skip", "-1"], ["long-skip"]),
        (["MODEL", "--long-skip", "many"], ["--long-skip"]),
        (["MODEL", "--time-limit", "1"], ["--time-limit", "--beside"]),
        (["MODEL", "--beside", "--time-limit", "-1"], ["--time-limit", "-1"]),
        (["MODEL", "-o", "MODEL"], ["net.json"]),
        (["MODEL", "-o", "/nowhere/plan.json"], ["/nowhere/plan.json"]),
        (["MODEL", "-o", "PLAN", "--report", "PLAN"], ["plan.json"]),
        (["missing.onnx"], ["missing.onnx"]),
        (["zoo:nope"], ["nope"]),
        (["CYCLE"], ["cycle.json", "head"]),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(
    args: list[str],
    parts: list[str],
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    *rest, last = NETWORK["operators"]
    cyclic = {**NETWORK, "operators": [*rest, {**last, "inputs": ["y", "z"]}]}
    paths = {
        "MODEL": model,
        "PLAN": model.with_name("plan.json"),
        "CYCLE": write(model.with_name("cycle.json"), cyclic),
    }
    line = refused(monkeypatch, capsys, 2, "branches", *[str(paths.get(a, a)) for a in args])
    for part in parts:
        assert part in line
    assert json.loads(model.read_text()) == NETWORK


def test_names_from_a_file_cannot_move_the_cursor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "b\x1b[2J\r[bold]\u202e/"
    text = json.dumps(NETWORK).replace("block.", json.dumps(evil)[1:-1])
    model, plan = tmp_path / "net.json", tmp_path / "plan.json"
    model.write_text(text)
    assert onchip(monkeypatch, "branches", str(model), "--budget", ROOMY, "--map", "-o", str(plan)) == 0
    out = capsys.readouterr().out
    assert not {"\x1b", "\r", "\u202e"} & set(out)
    assert "[bold]" in out
    assert onchip(monkeypatch, "check", str(plan)) == 0
    capsys.readouterr()
    assert onchip(monkeypatch, "branches", str(model), "--budget", ROOMY, "--json") == 0
    (module,) = json.loads(capsys.readouterr().out)["modules"]
    assert module["merge"] == f"{evil}cat"


def test_an_interrupt_is_one_line(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.branches.api, "branches", interrupt)
    assert "interrupted" in refused(monkeypatch, capsys, 130, "branches", str(model))


@pytest.mark.thorough
def test_a_reader_that_has_gone_is_no_error(model: Path) -> None:
    command = [sys.executable, "-m", "onchip.cli", "branches", str(model), "--map", "--json"]
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "wb") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0
    assert done.stderr.startswith(b"onchip: branches is ")
    assert done.stderr.count(b"\n") == 1


def test_help_names_every_option(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert onchip(monkeypatch, "branches", "--help") == 0
    text = capsys.readouterr().out
    for flag in ("--rules", "--long-skip", "--budget", "--map", "--report", "--dtype"):
        assert flag in text


def test_in_python_the_result_shows_and_holds_itself(model: Path) -> None:
    import_module("onchip.planners.branches.plan")  # the package behind the verb does not take its place
    for _ in range(2):
        made = onchip_package.branches(str(model), budget=ROOMY)
    assert isinstance(made, onchip_package.Branched)
    assert made.plan.check() == made.plan.result
    assert [row.name for row in made.rows] == [m.row.name for m in made.modules]
    assert "1 module" in str(made)
    assert onchip_package.Plan.from_text(made.plan.to_json()) == made.plan
    network = onchip_package.load(str(model)).network
    assert onchip_package.branches(network, budget=ROOMY).plan.program == made.plan.program
    with pytest.raises(onchip_package.UsageError, match="surprise"):
        onchip_package.branches(str(model), surprise=1)


@pytest.mark.parametrize("width", [80, 110, 140])
@pytest.mark.parametrize("network", [NETWORK, CHAIN])
def test_no_line_is_wider_than_the_terminal_and_no_figure_cut(
    width: int, network: dict[str, Any], tmp_path: Path
) -> None:
    from rich.console import Console

    from onchip.results.branched_table import resource_map, table

    made = onchip_package.branches(str(write(tmp_path / "net.json", network)), budget=ROOMY)
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(table(made, console.width))
        console.print(resource_map(made, console.width))
    lines = capture.get().splitlines()
    assert max(map(len, lines)) <= width
    for row in (made.total, made.table.network):
        assert not row.operators or f"{row.naive_fm_bytes / 1024:,.1f}" in capture.get()
    assert "…" not in capture.get()
