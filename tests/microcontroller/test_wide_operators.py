"""Operators beyond windows and sums, from a `.tflite` file to C: every byte is the interpreters'."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native import SANITIZED, made_of, needs_compiler

from microcontroller.interpreters import Tflm, litert, tflm
from microcontroller.wide_networks import WIDE, image
from onchip.base.errors import ModelError
from onchip.check import check
from onchip.machines.board import Board
from onchip.microcontroller.emulator.verify import inputs_of, verify
from onchip.microcontroller.int8.factors import Scale
from onchip.microcontroller.int8.model import Int8, Int8Model
from onchip.microcontroller.int8.move import MOVES
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.read_tables import TABLES
from onchip.microcontroller.int8.reference import Session, run
from onchip.microcontroller.made import Map, WideBuilder
from onchip.microcontroller.made.flatbuffer import FileOperator, FileTensor, write
from onchip.microcontroller.network import network_of, states_of
from onchip.microcontroller.project import sources_of
from onchip.microcontroller.result.microcontroller_plan import planned_for
from onchip.microcontroller.segments import SegmentOptions
from onchip.plans import Plan

RUNS = 4


def read(name: str) -> tuple[bytes, Int8Model]:
    b = WideBuilder(3)
    content = b.file(*WIDE[name](b))
    return content, model_of(content, name=name, where="test")


def planned(model: Int8Model) -> Plan:
    plan = planned_for(network_of(model), 1 << 22, SegmentOptions(), states_of(model)).plan
    assert check(plan) == plan.result
    return plan


def split(model: Int8Model, x: Int8) -> list[Int8]:
    """All inputs of a run, which lie one behind the other."""
    sizes = [model.tensors[t].bytes for t in model.inputs]
    return np.split(x.reshape(-1), np.cumsum(sizes)[:-1])


@needs_compiler
@pytest.mark.parametrize("name", WIDE)
def test_c_makes_what_tensorflow_lite_micro_makes(name: str, tmp_path: Path) -> None:
    content, model = read(name)
    inputs = inputs_of(model, RUNS)
    made = made_of(planned(model), model, tmp_path / "net", inputs, flags=SANITIZED)
    interpreter, session = Tflm(content, model), Session(model)
    theirs = [[y.copy() for y in interpreter.run(split(model, x))] for x in inputs]
    assert made == b"".join(y.tobytes() for outputs in theirs for y in outputs)
    assert made == b"".join(session.bytes_of(model, x) for x in inputs)
    assert len({y[0].tobytes() for y in theirs}) == RUNS


@pytest.mark.thorough
@pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("arm-none-eabi-gcc", "qemu-system-arm", "cc")),
    reason="needs gcc-arm-none-eabi and qemu-system-arm",
)
@pytest.mark.parametrize("name", ["several of both", "streaming", "LSTM"])
def test_so_does_the_emulated_core(name: str, tmp_path: Path) -> None:
    _, model = read(name)
    board = Board("any", "cortex-m4", 1 << 20, 1 << 20)
    made = verify(sources_of(planned(model), model), model, board, tmp_path, runs=2)
    assert made.match, f"{made.different} bytes differ"


def test_what_is_kept_begins_anew_with_each_session() -> None:
    _, model = read("streaming")
    one, two = inputs_of(model, 2)
    session = Session(model)
    first, second = (session.bytes_of(model, x) for x in (one, two))
    assert Session(model).bytes_of(model, one) == first
    assert Session(model).bytes_of(model, two) != second


SINGLE: dict[str, Callable[[WideBuilder, Map], Map]] = {
    "BROADCAST_TO": lambda b, x: b.moved("BROADCAST_TO", b.mean(x), (1, 2, 3, 6), (1, 2, 3, 6)),
    "DEPTH_TO_SPACE": lambda b, x: b.moved(
        "DEPTH_TO_SPACE", b.conv(x, 8), (1, 14, 16, 2), table="DepthToSpaceOptions", BlockSize=2
    ),
    "GATHER": lambda b, x: b.moved("GATHER", x, (1, 7, 3, 6), (7, 0, 2), table="GatherOptions", Axis=2),
    "MIRROR_PAD": lambda b, x: b.moved(
        "MIRROR_PAD", x, (1, 10, 9, 6), ((0, 0), (2, 1), (1, 0), (0, 0)), table="MirrorPadOptions", Mode=0
    ),
    "REVERSE_V2": lambda b, x: b.moved("REVERSE_V2", x, x.shape, (1,), table="ReverseV2Options"),
    "SLICE": lambda b, x: b.moved(
        "SLICE", x, (1, 3, 8, 2), (0, 2, 0, 1), (1, 3, -1, 2), table="SliceOptions"
    ),
    "SPACE_TO_DEPTH": lambda b, x: b.moved(
        "SPACE_TO_DEPTH", b.resize(x, (6, 8)), (1, 3, 4, 24), table="SpaceToDepthOptions", BlockSize=2
    ),
    "STRIDED_SLICE": lambda b, x: b.moved(
        "STRIDED_SLICE", x, (7, 3, 6), (0, 0, 6, 0), (1, 7, 0, 6), (1, 1, -2, 1),
        table="StridedSliceOptions", ShrinkAxisMask=1,
    ),
    "TILE": lambda b, x: b.moved("TILE", x, (1, 7, 16, 18), (1, 1, 2, 3), table="TileOptions"),
}  # fmt: skip


@pytest.mark.parametrize("kind", SINGLE)
def test_bytes_move_as_in_the_interpreter(kind: str) -> None:
    b = WideBuilder(5)
    content = b.file(SINGLE[kind](b, image(b)))
    model = model_of(content, name=kind, where="test")
    assert any(layer.name.startswith(kind) for layer in model.layers)
    inputs = inputs_of(model, 1)
    [theirs] = tflm(content, model, inputs) if kind == "BROADCAST_TO" else litert(content, model, inputs)[0]
    assert np.array_equal(run(model, inputs)[0].reshape(-1), theirs.reshape(-1))


def test_every_operator_that_moves_bytes_is_in_a_network() -> None:
    b = WideBuilder(3)
    for make in WIDE.values():
        make(b)
    used = {op.type for op in b.operators}
    assert used | SINGLE.keys() | {"SPLIT", "UNPACK"} >= MOVES.keys()


def unary(kind: str) -> tuple[bytes, Int8Model]:
    """A network of one table over all bytes, on scales at which it does not saturate everywhere."""
    inner, out = (0.03, -5), {"TANH": (1 / 128, 0), "EXP": (0.2, -128)}.get(kind, (0.021, -9))
    if kind == "RSQRT":  # of numbers that are not negative
        inner, out = (0.03, -128), (0.012, -128)
    tables = {"ABS": "AbsOptions", "EXP": "ExpOptions", "LEAKY_RELU": "LeakyReluOptions"}
    options: dict[str, Any] = {"Alpha": 0.2} if kind == "LEAKY_RELU" else {}
    tensors = [
        FileTensor("x", (1, 16, 16, 1), "INT8", None, (inner[0],), (inner[1],)),
        FileTensor("y", (1, 16, 16, 1), "INT8", None, (out[0],), (out[1],)),
    ]
    content = write(tensors, [FileOperator(kind, (0,), (1,), tables.get(kind, ""), options)], [0], [1])
    return content, model_of(content, name=kind, where="test")


@pytest.mark.parametrize("kind", sorted(TABLES))
def test_every_entry_of_a_table_is_the_interpreter_s(kind: str) -> None:
    content, model = unary(kind)
    every = np.arange(-128, 128).astype(np.int8).reshape(1, 16, 16, 1)
    [theirs] = tflm(content, model, [every]) if kind == "ELU" else litert(content, model, [every])[0]
    made = run(model, [every])[0]
    assert np.array_equal(made.reshape(-1), theirs.reshape(-1))
    assert len(np.unique(made)) > (20 if kind == "RSQRT" else 50)


def shapes_computed_in_the_file() -> tuple[list[FileTensor], list[FileOperator]]:
    """A reshape whose shape is packed of a part of its input's shape and a constant."""

    def whole(name: str, values: Any) -> FileTensor:
        data = np.asarray(values, np.int32)
        return FileTensor(name, data.shape, "INT32", data)

    scale: tuple[Any, ...] = ((0.5,), (3,))
    tensors = [
        FileTensor("x", (1, 6, 4), "INT8", None, *scale),
        FileTensor("shape", (3,), "INT32"),
        whole("zero", [0]),
        whole("one", [1]),
        FileTensor("batch", (), "INT32"),
        whole("rest", -1),
        FileTensor("packed", (2,), "INT32"),
        FileTensor("y", (1, 24), "INT8", None, *scale),
        FileTensor("z", (1, 24), "INT8", None, (0.25,), (1,)),
    ]
    operators = [
        FileOperator("SHAPE", (0,), (1,), "ShapeOptions"),
        FileOperator("STRIDED_SLICE", (1, 2, 3, 3), (4,), "StridedSliceOptions", {"ShrinkAxisMask": 1}),
        FileOperator("PACK", (4, 5), (6,), "PackOptions", {"ValuesCount": 2}),
        FileOperator("RESHAPE", (0, 6), (7,), "ReshapeOptions"),
        FileOperator("QUANTIZE", (7,), (8,), "QuantizeOptions"),
    ]
    return tensors, operators


def test_shapes_that_a_file_computes_are_known_when_it_is_read() -> None:
    tensors, operators = shapes_computed_in_the_file()
    content = write(tensors, operators, [0], [8])
    model = model_of(content, name="net", where="net.tflite")
    assert [layer.name for layer in model.layers] == ["QUANTIZE.4"]
    x = inputs_of(model, 1)
    assert np.array_equal(run(model, x)[0].reshape(-1), tflm(content, model, x)[0].reshape(-1))


def test_unsigned_bytes_on_another_scale_are_turned_over_at_the_edge_and_rescaled_inside() -> None:
    def tensor(name: str, element: str, scale: float, zero: int) -> FileTensor:
        return FileTensor(name, (1, 4, 4, 2), element, None, (scale,), (zero,))

    rows = [
        ("in", "UINT8", 0.5, 100),
        ("x", "INT8", 0.7, -20),
        ("y", "INT8", 0.7, -20),
        ("out", "UINT8", 0.3, 9),
    ]
    options = {"Padding": 0, "StrideH": 1, "StrideW": 1, "FilterHeight": 3, "FilterWidth": 3}
    operators = [
        FileOperator("QUANTIZE", (0,), (1,), "QuantizeOptions"),
        FileOperator("MAX_POOL_2D", (1,), (2,), "Pool2DOptions", {**options}),
        FileOperator("QUANTIZE", (2,), (3,), "QuantizeOptions"),
    ]
    content = write([tensor(*row) for row in rows], operators, [0], [3])
    model = model_of(content, name="net", where="net.tflite")
    ends = (*model.inputs, *model.outputs)
    assert [(model.tensors[t].zero_point, model.originals[t].element) for t in ends] == [
        (-28, "UINT8"),
        (-119, "UINT8"),
    ]
    x = inputs_of(model, 1)
    assert np.array_equal(run(model, x)[0], tflm(content, model, x)[0].reshape(1, 4, 4, 2))


def test_floats_behind_the_last_bytes_are_left_to_the_caller_and_named() -> None:
    b = WideBuilder(0)
    x = b.fully_connected(b.input((1, 8)), 4)
    b.tensors += [FileTensor("real", x.shape, "FLOAT32"), FileTensor("logs", x.shape, "FLOAT32")]
    real = len(b.tensors) - 2
    b.operators.append(FileOperator("DEQUANTIZE", (x.index,), (real,), "DequantizeOptions"))
    b.operators.append(FileOperator("LOG_SOFTMAX", (real,), (real + 1,), "LogSoftmaxOptions"))
    model = model_of(write(b.tensors, b.operators, b.inputs, [real + 1]), name="net", where="net.tflite")
    [output] = model.outputs
    assert model.originals[output].through == ("LOG_SOFTMAX.2",)
    header = sources_of(planned(model), model).files["model.h"]
    assert "In the file FLOAT32, by LOG_SOFTMAX.2, left to the caller." in header


def begin_without_a_constant(b: WideBuilder) -> str:
    b.variables[0] = (b.variables[0][0], FileTensor("variable0", (1, 2, 2, 4), "INT8", None, (1.0,), (0,)))
    return "CALL_ONCE.0: sets up variable0 with no constant of INT8"


def never_written(b: WideBuilder) -> str:
    b.operators = [op for op in b.operators if op.type != "ASSIGN_VARIABLE"]
    return "variable0: is kept between inferences and never written"


def no_handle(b: WideBuilder) -> str:
    at = next(i for i, op in enumerate(b.operators) if op.type == "VAR_HANDLE")
    del b.operators[at]
    return "READ_VARIABLE.1: has no handle of a variable"


@pytest.mark.parametrize("spoil", [begin_without_a_constant, never_written, no_handle])
def test_states_that_are_not_sound_are_refused(spoil: Callable[[WideBuilder], str]) -> None:
    b = WideBuilder(1)
    end = b.conv(b.delayed(b.input((1, 3, 2, 4)), 2), 6, 3)
    message = spoil(b)
    with pytest.raises(ModelError) as caught:
        model_of(b.file(end), name="net", where="net.tflite")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_zeros_need_no_scale() -> None:
    """Some files multiply by a first state of zeros of scale 0; the product's scale is next to nothing."""
    b = WideBuilder(3)
    x, shape = b.input((1, 2, 3, 4)), (1, 2, 3, 4)
    zeros = FileTensor("zeros", shape, "INT8", np.zeros(shape, np.int8), (0.0,), (0,))
    product = b._made(FileOperator("MUL", (), (), "MulOptions"), [x], shape, Scale(3.6e-43, 0), [zeros])
    content = b.file(b.add(product, x))
    model = model_of(content, name="zeros", where="zeros")
    for seed in range(3):
        inputs = split(model, inputs_of(model, 1, seed=seed)[0])
        assert [y.tobytes() for y in run(model, inputs)] == [
            y.tobytes() for y in tflm(content, model, inputs)
        ]
    ones = replace(zeros, data=np.ones(shape, np.int8))
    b = WideBuilder(3)
    b._append(FileOperator("MUL", (), (), "MulOptions"), [b.input(shape)], shape, Scale(3.6e-43, 0), [ones])
    with pytest.raises(ModelError, match="has zeros1 with scale 0"):
        model_of(b.file(), name="ones", where="ones")
    b = WideBuilder(3)
    b._append(FileOperator("RSQRT", (), ()), [], shape, Scale(0.1, 0), [zeros])
    with pytest.raises(ModelError, match="which is a constant"):
        model_of(b.file(), name="roots", where="roots")
