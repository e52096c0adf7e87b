"""`onchip mcu` as a user meets it: what fits, a project, a run on the emulated core, one line of refusal."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import onchip as onchip_package
from large_cases import with_campaign
from onchip import cli
from onchip.base.errors import MissingTool, UsageError
from onchip.microcontroller.compare.tflm_arena import tflm_arena
from onchip.microcontroller.emulator import toolchain
from onchip.microcontroller.made import Builder

needs_toolchain = pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("arm-none-eabi-gcc", "qemu-system-arm", "cc")),
    reason="needs gcc-arm-none-eabi and qemu-system-arm",
)


def onchip(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *args])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int, *args: str
) -> str:
    """The one line on stderr of a command that ends with this code."""
    assert onchip(monkeypatch, *args) == code
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.fixture
def no_tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without a cross compiler."""

    def missing(program: str, packages: str) -> str:
        raise MissingTool(program, packages)

    toolchain.find_toolchain.cache_clear()
    monkeypatch.setattr(toolchain, "_find", missing)
    yield
    toolchain.find_toolchain.cache_clear()


@pytest.mark.thorough
@needs_toolchain
def test_a_run_prints_what_was_linked_and_that_every_byte_matched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert onchip(monkeypatch, "mcu", "made:ad01", "--board", "nucleo-f411re", "--run", "--json") == 0
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert made["fits"]
    assert made["run"]["match"]
    assert (
        made["arena_bytes"]
        < made["ram_bytes"]
        == sum(made["linked_bytes"][k] for k in ("bss", "data", "stack"))
    )
    assert made["ram_bytes"] < 1_200
    assert made["constant_bytes"] < made["flash_bytes"]
    layers = sum(layer["instructions"] for layer in made["run"]["layers"].values())
    assert 0.9 * made["run"]["instructions"] < layers < 1.1 * made["run"]["instructions"]


@needs_toolchain
@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "mode"),
    [
        ("nucleo-f411re", "held"),
        pytest.param("nucleo-f411re", "once", marks=pytest.mark.campaign),
        ("nucleo-f767zi", "again"),
    ],
)
def test_a_network_runs_on_both_cores_however_its_input_comes(
    board: str, mode: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ("mcu", "made:kws", "--board", board, "--input", mode, "--run", "--json")
    assert onchip(monkeypatch, *args) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["run"]["match"]
    assert made["ram_bytes"] <= 12_000


REAL = {
    "mcunet_5fps_vww": 24_000,
    "vww_96_int8": 31_000,
    "pretrainedResnet_quant": 17_020,
    "kws_ref_model": 12_000,
    "ad01_int8": 1_024,
}


@needs_toolchain
@pytest.mark.slow
@pytest.mark.parametrize("name", with_campaign(REAL, ["mcunet_5fps_vww", "pretrainedResnet_quant"]))
def test_the_public_networks_run_in_little_ram(
    name: str, shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = shared / "models" / f"{name}.tflite"
    run = ("--run",) if name == "kws_ref_model" else ()  # the others: microcontroller/test_real_networks.py
    assert onchip(monkeypatch, "mcu", str(model), "--board", "disco-f407vg", *run, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert not run or made["run"]["match"]
    assert made["ram_bytes"] <= REAL[name]


@needs_toolchain
@pytest.mark.slow
@pytest.mark.parametrize("ram", ["4500"])
def test_points_of_the_front_run_in_the_bytes_that_they_promise(
    ram: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bands, work done anew, the input fetched again: as C, byte for byte."""
    plan = tmp_path / "kws.json"
    args = ("mcu", "made:kws", "--input", "again", "--method", "chains")
    assert onchip(monkeypatch, *args, "--front", "--ram", ram, "-p", str(plan), "--json") == 0
    front = json.loads(capsys.readouterr().out)
    point = front["points"][front["taken"]]
    assert onchip(monkeypatch, *args, "--use", str(plan), "--run", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["ram_bytes"] <= int(ram)  # stack and all
    assert made["run"]["match"]
    assert made["macs"] == point["macs"] > front["macs"]
    assert made["arena_bytes"] == point["arena_bytes"]
    statics = made["ram_bytes"] - made["arena_bytes"] - made["linked_bytes"]["stack"]
    assert 0 <= statics <= 64


@pytest.mark.thorough
def test_without_a_compiler_the_plan_s_figures_are_printed(
    no_tools: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert onchip(monkeypatch, "mcu", "made:ad01", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert not made["linked"]
    assert made["ram_bytes"] == made["arena_bytes"]


@pytest.mark.thorough
def test_a_run_without_a_compiler_is_one_line(
    no_tools: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(monkeypatch, capsys, 2, "mcu", "made:ad01", "--run")
    assert "apt-get install gcc-arm-none-eabi" in line


def test_a_network_of_the_zoo_is_no_int8_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(monkeypatch, capsys, 2, "mcu", "zoo:resnet18")
    assert "zoo:resnet18: is in floating point: an int8 FILE.tflite is needed" in line


@pytest.mark.thorough
@needs_toolchain
def test_a_reader_is_asked_for_the_whole_image_where_that_takes_less(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    args = ("mcu", "made:ad01", "--input", "again", "--run", "-o", str(tmp_path / "project"))
    assert onchip(monkeypatch, *args) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "every byte equal" in printed
    assert "less than its pieces would take" in printed
    assert "int ad01_invoke(ad01_reader read, void *context);" in (tmp_path / "project/model.h").read_text()


@pytest.mark.thorough
def test_a_project_and_a_plan_are_written_and_the_plan_serves_again(
    no_tools: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, plan = tmp_path / "project", tmp_path / "ad01.json"
    assert onchip(monkeypatch, "mcu", "made:ad01", "-o", str(out), "-p", str(plan)) == 0
    assert {"model.c", "model.h", "weights.c", "kernels.c", "Makefile", "README.md", "LICENSE"} <= {
        path.name for path in out.iterdir()
    }
    again = tmp_path / "again"
    assert onchip(monkeypatch, "mcu", "made:ad01", "--use", str(plan), "-o", str(again)) == 0
    assert (again / "model.c").read_text() == (out / "model.c").read_text()
    capsys.readouterr()
    line = refused(monkeypatch, capsys, 2, "mcu", "made:kws", "--use", str(plan))
    assert "another network" in line


@pytest.mark.thorough
def test_the_front_is_a_curve_and_a_point_of_it_a_plan(
    no_tools: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "kws.json"
    args = ("mcu", "made:kws", "--front", "--input", "again", "--ram", "4300", "--method", "chains")
    assert onchip(monkeypatch, *args, "-p", str(plan), "--json") == 0
    made = json.loads(capsys.readouterr().out)
    taken = made["points"][made["taken"]]
    assert made["complete"]
    assert taken["arena_bytes"] <= 4_300 < made["points"][made["taken"] - 1]["arena_bytes"]
    monkeypatch.setenv("COLUMNS", "80")
    assert onchip(monkeypatch, *args) == 0
    printed = capsys.readouterr().out
    for point in (made["points"][0], taken, made["points"][-1]):  # a long curve is thinned out in between
        assert f"{point['arena_bytes']:,}" in printed
    assert "<- --ram" in printed
    assert onchip(monkeypatch, "mcu", "made:kws", "--use", str(plan), "--json") == 0
    assert json.loads(capsys.readouterr().out)["arena_bytes"] == taken["arena_bytes"]


@pytest.mark.thorough
def test_a_front_refuses_what_it_cannot_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--run" in refused(monkeypatch, capsys, 2, "mcu", "made:kws", "--front", "--run")
    assert onchip(monkeypatch, "mcu", "made:kws", "--front", "--ram", "1000") == 1
    assert "the budget has 1,000" in capsys.readouterr().err


def test_the_table_names_the_step_that_limits(
    no_tools: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for method, most in (("chains", "Most RAM: CONV_2D.0"), ("rows", ", row ")):
        assert onchip(monkeypatch, "mcu", "made:kws", "--method", method) == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert most in printed
        assert "RAM by step" in printed


def test_the_better_of_chains_and_rows_is_taken(
    no_tools: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {}
    for method in ("chains", "rows", "best"):
        assert onchip(monkeypatch, "mcu", "made:ad01", "--method", method, "--json") == 0
        found[method] = json.loads(capsys.readouterr().out)["arena_bytes"]
    assert found["best"] == min(found.values())
    line = refused(monkeypatch, capsys, 1, "mcu", "made:ad01", "--method", "rows", "--ram", "700")
    assert "needs 768 bytes, the budget has 700" in line
    assert "method" in refused(monkeypatch, capsys, 2, "mcu", "made:ad01", "--method", "columns")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("args", "code", "line"),
    [
        (("made:nothing",), 2, "no network of ours"),
        (("made:ad01", "--board", "nothing"), 2, "no such board"),
        (("made:ad01", "--ram", "10"), 1, "infeasible"),
        (("made:ad01", "--ram", "0"), 2, "--ram"),
        (("made:ad01", "--ram", "much"), 2, "--ram"),
        (("made:ad01", "--ram", "131073"), 2, "more than the 131,072 of nucleo-f411re"),
        (("made:ad01", "--input", "sideways"), 2, "sideways"),
        (("missing.tflite",), 2, "no such file"),
    ],
)
def test_every_refusal_is_one_line(
    args: tuple[str, ...],
    code: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert line in refused(monkeypatch, capsys, code, "mcu", *args)


def ends(b: Builder, inputs: int, outputs: int) -> bytes:
    """A file with so many inputs and outputs."""
    maps = [b.conv(b.input((1, 4, 4, 2)), 2) for _ in range(inputs)]
    made = maps[0] if inputs == 1 else b.add(*maps)
    return b.file(*[b.conv(made, 3) for _ in range(outputs)])


@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (2, 1), (1, 2)])
def test_a_project_names_every_input_and_output(
    inputs: int, outputs: int, tmp_path: Path, no_tools: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ends.tflite"
    path.write_bytes(ends(Builder(1), inputs, outputs))
    assert onchip(monkeypatch, "mcu", str(path), "-o", str(tmp_path / "project")) == 0
    header = (tmp_path / "project" / "model.h").read_text()
    assert len(re.findall(r"#define \w+_INPUT(?:_\d)?_BYTES", header)) == inputs
    assert len(re.findall(r"#define \w+_OUTPUT(?:_\d)?_BYTES", header)) == outputs


def test_a_folder_with_other_files_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    line = refused(monkeypatch, capsys, 2, "mcu", "made:ad01", "-o", str(tmp_path))
    assert "has not written" in line


@pytest.mark.thorough
def test_other_methods_stand_beside_the_plan(
    no_tools: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert onchip(monkeypatch, "mcu", "made:resnet8", "--compare", "--method", "chains", "--json") == 0
    methods = {method["name"]: method for method in json.loads(capsys.readouterr().out)["compare"]}
    assert list(methods)[-1] == "this plan"
    needs = {name: method["ram_bytes"] for name, method in methods.items() if method["ram_bytes"]}
    assert needs["onchip"] <= needs["this plan"] <= needs["overlap"] <= needs["in place"] <= needs["whole"]
    assert methods["patches"]["work"] > 1 == methods["onchip"]["work"]
    assert needs["rows"] < needs["onchip"]
    if "TFLM, tensors" in needs:  # where its interpreter is installed
        assert needs["this plan"] < needs["TFLM, tensors"] < needs["TFLM"]


def test_a_file_that_the_interpreter_refuses_has_no_arena_but_a_reason() -> None:
    found = tflm_arena(b"junk" * 64)
    assert isinstance(found, str)
    assert "\n" not in found


@pytest.mark.thorough
@needs_toolchain
@pytest.mark.parametrize("kernels", ["specialised", "shared"])
def test_a_plan_in_rings_runs_by_itself(
    kernels: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    b, plan = Builder(), str(tmp_path / "small.json")
    x = b.conv(b.input((1, 8, 8, 3)), 8, 3, activation="RELU")
    (tmp_path / "small.tflite").write_bytes(b.file(b.conv(b.depthwise(x, 3, 2), 6)))
    how = ("--kernels", kernels, "--objective", "once", "-p", plan)
    assert onchip(monkeypatch, "mcu", str(tmp_path / "small.tflite"), *how) == 0
    capsys.readouterr()
    assert onchip(monkeypatch, "run", plan, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["run"]["match"]
    assert bool(made["shared_kernels"]) == (kernels == "shared")
    line = refused(monkeypatch, capsys, 2, "run", plan, "--model", "made:ad01")
    assert line.endswith("the model changed since it was planned")


def test_a_plan_in_rings_says_in_python_what_runs_it(no_tools: None) -> None:
    made = onchip_package.mcu("made:kws")
    assert made.plan.groups
    with pytest.raises(UsageError, match=r"is for a microcontroller: `onchip run`"):
        made.plan.run()


@pytest.mark.thorough
def test_the_verb_is_a_function(no_tools: None) -> None:
    made = onchip_package.mcu("made:ad01")
    assert made.fits
    assert made.arena_bytes <= 1_024
    assert made.bottleneck.bytes <= made.arena_bytes
