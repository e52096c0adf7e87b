"""Will it fit, and what does it answer: a network on every board, and on a user's inputs."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onchip
from microcontroller.sixteen_networks import SIXTEEN, Net
from microcontroller.wide_networks import WIDE
from onchip import cli
from onchip.base.errors import InputError, MissingTool
from onchip.machines.board import Board, builtin_boards
from onchip.machines.cores import core_names
from onchip.microcontroller.emulator import toolchain
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import run
from onchip.microcontroller.made import Builder
from onchip.microcontroller.made.wide import WideBuilder
from onchip.microcontroller.result import reckoned
from onchip.microcontroller.result.given_inputs import read_inputs
from onchip.microcontroller.result.reckoned import (
    FITTED,
    UNSEEN,
    features,
    kind_of,
    reckoned_instructions,
)

needs_toolchain = pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("arm-none-eabi-gcc", "qemu-system-arm", "cc")),
    reason="needs gcc-arm-none-eabi and qemu-system-arm",
)


def small_file() -> bytes:
    b = Builder(3)
    x = b.input((1, 6, 6, 3))
    y = b.conv(b.depthwise(b.conv(x, 8), (3, 3)), 4)
    return b.file(b.fully_connected(b.mean(y), 5))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "small.tflite"
    path.write_bytes(small_file())
    return path


@pytest.fixture
def no_tools(monkeypatch: pytest.MonkeyPatch) -> Any:
    def missing(program: str, packages: str) -> str:
        raise MissingTool(program, packages)

    toolchain.find_toolchain.cache_clear()
    monkeypatch.setattr(toolchain, "_find", missing)
    yield
    toolchain.find_toolchain.cache_clear()


def command(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *args])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_without_tools_every_board_has_reckoned_figures_that_say_so(
    no_tools: None, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = onchip.mcu_fit(model)
    assert [row.board for row in rows] == list(builtin_boards())
    for row in rows:
        assert row.fits
        assert not row.linked
        assert not row.counted
        assert row.instructions is not None
    assert command(monkeypatch, "mcu", str(model), "--fit") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "RAM without stack and statics, flash without code" in printed
    worst = 100 * max(UNSEEN[row.board.core] for row in rows)
    assert f"reckoned from the layers' shapes, nine networks in ten within {worst:.0f} %" in printed


def test_what_no_board_holds_is_an_honest_no(no_tools: None, model: Path, tmp_path: Path) -> None:
    (row,) = onchip.mcu_fit(model, [Board("little", "cortex-m4", 4096, 100)])
    assert {memory for memory, *_ in row.short} == {"flash"}
    (row,) = onchip.mcu_fit(model, [Board("little", "cortex-m4", 100, 1 << 20)])
    assert {memory for memory, *_ in row.short} == {"RAM"}
    assert row.data()["missing"]["RAM"] == row.ram_bytes - 100 > 0


@needs_toolchain
@pytest.mark.thorough
def test_linked_figures_are_those_of_each_board_alone(model: Path) -> None:
    boards = [board for board in builtin_boards() if board.name in ("nucleo-f411re", "disco-f746ng")]
    for row in onchip.mcu_fit(model, boards):
        made = onchip.mcu(model, row.board, run=True, runs=1)
        assert made.run is not None
        assert (row.ram_bytes, row.flash_bytes) == (made.ram_bytes, made.flash_bytes)
        assert row.instructions == made.run.total.instructions
        about = reckoned_instructions(made.model, row.board.core)
        assert about is not None
        assert 0.5 < about / row.instructions < 2  # docs/mcu says how far real networks are off


def test_every_kind_of_layer_is_reckoned_on_every_counted_core() -> None:
    b = WideBuilder()
    x, z = b.input((1, 8, 8, 8)), b.constant((1, 8, 8, 8))
    y = b.depthwise(b.conv(b.prelu(b.extremum(b.mul(b.add(x, z), z), x, greatest=True)), 8), (3, 3))
    y = b.average_pool(b.max_pool(b.concat(b.logistic(y), y), 2), 2)
    made = b.softmax(b.fully_connected(b.transpose(y, (0, 2, 1, 3)), 5))
    network = model_of(b.file(made), name="kinds", where="kinds")
    assert set(FITTED) == set(UNSEEN) == set(core_names())
    others = [*map(wide_model, WIDE), *map(sixteen_model, SIXTEEN)]
    kinds = {kind_of(layer): len(features(layer)) for m in (network, *others) for layer in m.layers}
    for fitted in FITTED.values():
        assert {kind: len(fitted.get(kind, ())) for kind in kinds} == kinds
    assert all(reckoned_instructions(model, core) for core in FITTED for model in (network, *others))


def test_a_kind_that_was_never_counted_is_not_reckoned(monkeypatch: pytest.MonkeyPatch) -> None:
    model = wide_model("LSTM")
    assert reckoned_instructions(model, "cortex-m3") is not None
    known = {kind: numbers for kind, numbers in FITTED["cortex-m3"].items() if kind != "recurrent"}
    monkeypatch.setattr(reckoned, "FITTED", {"cortex-m3": known})
    assert reckoned_instructions(model, "cortex-m3") is None
    assert reckoned_instructions(model, "cortex-m4") is None


@needs_toolchain
@pytest.mark.thorough
def test_what_makes_many_products_a_byte_is_reckoned_by_its_products(tmp_path: Path) -> None:
    """An LSTM and a transposed convolution take many instructions a byte that they make."""
    b = WideBuilder(seed=3)
    x = b.transpose_conv(b.transpose_conv(b.input((1, 6, 10, 12)), 16, 3, 2), 8, 4, 2)
    for name, content in ("upsampled", b.file(x)), ("LSTM", wide_file("LSTM")):
        path = tmp_path / f"{name}.tflite"
        path.write_bytes(content)
        made = onchip.mcu(path, "nucleo-f411re", run=True, runs=1)
        about = reckoned_instructions(made.model, "cortex-m4")
        assert about is not None
        assert made.run is not None
        assert 0.6 < about / made.run.total.instructions < 1.6


def wide_file(name: str) -> bytes:
    b = WideBuilder(3)
    return b.file(*WIDE[name](b))


def wide_model(name: str) -> Int8Model:
    return model_of(wide_file(name), name="wide", where="wide")


def sixteen_model(name: str) -> Int8Model:
    net = Net(1)
    return model_of(net.file(*SIXTEEN[name](net)), name="sixteen", where="sixteen")


def test_outputs_and_accuracy_are_the_reference_s_and_the_interpreter_stands_beside(
    no_tools: None, model: Path, tmp_path: Path
) -> None:
    read = model_of(model.read_bytes(), name="small", where="small")
    given = np.random.default_rng(0).integers(-128, 128, (12, 6, 6, 3)).astype(np.int8)
    expected = np.stack([run(read, [x])[0].reshape(-1) for x in given])
    labels = expected.argmax(axis=1)
    labels[:3] = (labels[:3] + 1) % 5
    np.save(tmp_path / "x.npy", given)
    np.save(tmp_path / "y.npy", labels)
    made = onchip.mcu(model, inputs=tmp_path / "x.npy", labels=tmp_path / "y.npy")
    assert made.tried is not None
    assert np.array_equal(made.tried.outputs, expected)
    assert made.tried.right == 9
    assert any("9 of 12 right, 75.00 %" in line for line in made.tried.sentences())
    if not isinstance(made.tried.other, str):
        apart = np.abs(made.tried.other.astype(int) - expected)
        assert np.median(apart) <= 1  # its own kernels round otherwise
    json.dumps(made.data())


def test_images_and_real_numbers_become_the_network_s_bytes(tmp_path: Path) -> None:
    read = model_of(small_file(), name="small", where="small")
    tensor = read.tensors[read.inputs[0]]
    given = np.random.default_rng(1).integers(-128, 128, (4, 108)).astype(np.int8)
    path = tmp_path / "x.npy"
    for values in (
        given,
        given.reshape(4, 6, 6, 3),
        (given.astype(np.int16) + 128).astype(np.uint8),
        ((given.astype(np.float64) - tensor.zero_point) * tensor.scale),
    ):
        np.save(path, values)
        assert np.array_equal(read_inputs(path, read), given)
    np.save(path, np.full((1, 108), 1e9, np.float32))
    assert (read_inputs(path, read) == 127).all()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.zeros((2, 107), np.int8), "not a number of inputs of 108"),
        (np.zeros(108, np.int8), "not a number of inputs of 108"),
        (np.zeros((0, 108), np.int8), "not a number of inputs of 108"),
        (np.zeros((1, 108), np.int32), "not int8, uint8 or floats"),
        (np.full((1, 108), np.nan), "not finite"),
        (np.array([[None]]), "no array in numpy's .npy form"),
    ],
)
def test_inputs_that_are_none_are_refused_by_name(values: Any, reason: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", values, allow_pickle=True)
    with pytest.raises(InputError, match=reason):
        read_inputs(tmp_path / "x.npy", model_of(small_file(), name="small", where="small"))


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (("--fit", "--run"), "--run: is not for --fit"),
        (("--fit", "--ram", "1KiB"), "--ram: is not for --fit"),
        (("--labels", "y.npy"), "--labels: needs --inputs"),
        (("--inputs", "missing.npy"), "missing.npy: no such file"),
    ],
)
def test_every_refusal_is_one_line(
    args: tuple[str, ...], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "mcu", "made:ad01", *args) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert line in said
