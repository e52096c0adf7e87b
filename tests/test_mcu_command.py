"""`onchip mcu` as a user meets it: what fits, a project, a run on the emulated core, one line of refusal."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import onchip as onchip_package
from onchip import cli
from onchip.errors import MissingTool
from onchip.run.mcu import toolchain

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
@pytest.mark.parametrize("mode", ["held", "once", "again"])
@pytest.mark.parametrize("board", ["nucleo-f411re", "nucleo-f767zi"])
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
    "mcunet_320kb_imagenet": 104_000,
    "vww_96_int8": 31_000,
    "pretrainedResnet_quant": 17_000,
    "kws_ref_model": 12_000,
    "ad01_int8": 1_024,
}


@needs_toolchain
@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_the_public_networks_run_in_little_ram(
    name: str, shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = shared / "models" / f"{name}.tflite"
    assert onchip(monkeypatch, "mcu", str(model), "--board", "disco-f407vg", "--run", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["run"]["match"]
    assert made["ram_bytes"] <= REAL[name]


@needs_toolchain
@pytest.mark.slow
def test_what_does_not_fit_the_flash_is_said_with_the_bytes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert onchip(monkeypatch, "mcu", "made:mcunet_320kb", "--board", "nucleo-f411re") == 1
    said = capsys.readouterr()
    assert "bytes of flash, it has 524,288" in said.err
    assert "bytes of flash are missing" in " ".join(said.out.split())


def test_without_a_compiler_the_plan_s_figures_are_printed(
    no_tools: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert onchip(monkeypatch, "mcu", "made:ad01", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert not made["linked"]
    assert made["ram_bytes"] == made["arena_bytes"]


def test_a_run_without_a_compiler_is_one_line(
    no_tools: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(monkeypatch, capsys, 2, "mcu", "made:ad01", "--run")
    assert "apt-get install gcc-arm-none-eabi" in line


def test_a_project_and_a_plan_are_written_and_the_plan_serves_again(
    no_tools: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, plan = tmp_path / "project", tmp_path / "ad01.json"
    assert onchip(monkeypatch, "mcu", "made:ad01", "-o", str(out), "-p", str(plan)) == 0
    assert {"model.c", "model.h", "weights.c", "kernels.c", "main.c", "Makefile", "README.md"} <= {
        path.name for path in out.iterdir()
    }
    again = tmp_path / "again"
    assert onchip(monkeypatch, "mcu", "made:ad01", "--use", str(plan), "-o", str(again)) == 0
    assert (again / "model.c").read_text() == (out / "model.c").read_text()
    capsys.readouterr()
    line = refused(monkeypatch, capsys, 2, "mcu", "made:kws", "--use", str(plan))
    assert "another network" in line


def test_the_table_names_the_step_that_limits(
    no_tools: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert onchip(monkeypatch, "mcu", "made:kws") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Most RAM: CONV_2D.0" in printed
    assert "RAM by step" in printed


@pytest.mark.parametrize(
    ("args", "code", "line"),
    [
        (("made:nothing",), 2, "no network of ours"),
        (("made:ad01", "--board", "nothing"), 2, "no such board"),
        (("made:ad01", "--ram", "10"), 1, "infeasible"),
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


def test_a_folder_with_other_files_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    line = refused(monkeypatch, capsys, 2, "mcu", "made:ad01", "-o", str(tmp_path))
    assert "has not written" in line


def test_the_verb_is_a_function(no_tools: None) -> None:
    made = onchip_package.mcu("made:ad01")
    assert made.fits
    assert made.arena_bytes <= 1_024
    assert made.bottleneck.bytes <= made.arena_bytes
