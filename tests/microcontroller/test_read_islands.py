"""Floats between bytes are read as tables of bytes, equal to the interpreters that compute them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from native import made_of

from microcontroller.interpreters import tflm
from onchip.base.errors import ModelError
from onchip.microcontroller.int8.lookup_two import LookupTwo
from onchip.microcontroller.int8.model import Int8Model, kind
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import run
from onchip.microcontroller.made.flatbuffer import FileOperator, FileTensor, write
from onchip.microcontroller.network import network_of
from onchip.microcontroller.result.microcontroller_plan import planned_for
from onchip.microcontroller.segments import SegmentOptions
from onchip.plans import Plan


def planned(model: Int8Model) -> Plan:
    return planned_for(network_of(model), 1 << 22, SegmentOptions()).plan


SHAPE = 1, 1, 16, 16
"""An element for every byte."""

MODEL = "net.tflite"


def floats_between(
    *middle: tuple[str, Sequence[float | str]],
    table: str = "",
    options: dict[str, int | float] | None = None,
    out: tuple[float, int] = (1 / 16, -3),
) -> bytes:
    """A maximum, floats through these operators, bytes again, and another maximum.

    Operands of an operator are "x", its predecessor's output, "first", what all begins with, and constants.
    """
    tensors = [
        FileTensor("given", SHAPE, scales=(1 / 32,), zero_points=(5,)),
        FileTensor("bytes", SHAPE, scales=(1 / 32,), zero_points=(5,)),
        FileTensor("floats", SHAPE, "FLOAT32"),
    ]
    pool = ("Pool2DOptions", {"FilterHeight": 1, "FilterWidth": 1, "StrideH": 1, "StrideW": 1})
    operators = [
        FileOperator("MAX_POOL_2D", (0,), (1,), *pool),
        FileOperator("DEQUANTIZE", (1,), (2,), "DequantizeOptions"),
    ]
    x = first = 2
    for name, operands in middle:
        read = []
        for operand in operands:
            if isinstance(operand, str):
                read.append(x if operand == "x" else first)
                continue
            tensors.append(FileTensor(f"c{len(tensors)}", (1,), "FLOAT32", np.array([operand], np.float32)))
            read.append(len(tensors) - 1)
        tensors.append(FileTensor(f"f{len(tensors)}", SHAPE, "FLOAT32"))
        x = len(tensors) - 1
        own = (
            (f"{name.title()}Options", {}) if name in ("ADD", "SUB", "MUL", "DIV") else (table, options or {})
        )
        operators.append(FileOperator(name, tuple(read), (x,), *own))
    tensors += [
        FileTensor("again", SHAPE, scales=(out[0],), zero_points=(out[1],)),
        FileTensor("last", SHAPE, scales=(out[0],), zero_points=(out[1],)),
    ]
    again = len(tensors) - 2
    operators += [
        FileOperator("QUANTIZE", (x,), (again,), "QuantizeOptions"),
        FileOperator("MAX_POOL_2D", (again,), (again + 1,), *pool),
    ]
    return write(tensors, operators, [0], [again + 1])


def every_byte(content: bytes) -> tuple[Int8Model, bytes]:
    """The model, and what it makes of all bytes, equal to TFLM's."""
    model = model_of(content, name="net", where=MODEL)
    inputs = [np.arange(-128, 128, dtype=np.int8).reshape(SHAPE)]
    [ours] = run(model, inputs)
    [theirs] = tflm(content, model, inputs)
    assert np.array_equal(ours.reshape(-1), theirs.reshape(-1))
    return model, ours.tobytes()


@pytest.mark.parametrize(
    "name",
    ["ABS", "COS", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LOGISTIC", "NEG", "RELU", "RELU6", "SIN", "TANH"],
)
def test_a_function_of_a_float_is_a_table(name: str) -> None:
    model, made = every_byte(floats_between((name, "x")))
    assert "Lookup" in {kind(layer) for layer in model.layers}
    assert len(set(made)) > 2


@pytest.mark.parametrize("name", ["LOG", "RSQRT", "SQRT"])
def test_a_function_of_positive_floats_is_a_table(name: str) -> None:
    every_byte(floats_between(("ABS", "x"), ("ADD", ("x", 0.125)), (name, "x")))


@pytest.mark.parametrize("name", ["ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL", "SQUARED_DIFFERENCE", "SUB"])
def test_a_constant_beside_it_may_stand_on_either_side(name: str) -> None:
    every_byte(floats_between(("EXP", "x"), (name, ("x", 1.25))))
    every_byte(floats_between(("EXP", "x"), (name, (1.25, "x"))))


def test_a_share_in_floats_from_its_parts() -> None:
    """As a network for hands has it: 1 / (1 + exp(-x)); and x times that."""
    share = ("NEG", "x"), ("EXP", "x"), ("ADD", ("x", 1.0)), ("DIV", (1.0, "x"))
    model, _ = every_byte(floats_between(*share, out=(1 / 256, -128)))
    assert [kind(layer) for layer in model.layers].count("Lookup") == 1
    every_byte(floats_between(*share, ("MUL", ("x", "first"))))


def test_a_scale_that_stays_is_no_layer() -> None:
    model, _ = every_byte(floats_between(("RELU", "x"), out=(1 / 32, 5)))
    assert "Lookup" in {kind(layer) for layer in model.layers}
    model, _ = every_byte(floats_between(out=(1 / 32, 5)))
    assert "Lookup" not in {kind(layer) for layer in model.layers}


def test_elements_that_move_as_floats_move_as_bytes() -> None:
    tensors = [
        FileTensor("given", (1, 4, 5, 3), scales=(1 / 32,), zero_points=(5,)),
        FileTensor("floats", (1, 4, 5, 3), "FLOAT32"),
        FileTensor("amounts", (4, 2), "INT32", np.array([[0, 0], [1, 2], [2, 1], [0, 0]], np.int32)),
        FileTensor("wider", (1, 7, 8, 3), "FLOAT32"),
        FileTensor("power", (1, 7, 8, 3), "FLOAT32"),
        FileTensor("made", (1, 7, 8, 3), scales=(1 / 8,), zero_points=(-100,)),
    ]
    content = write(
        tensors,
        [
            FileOperator("DEQUANTIZE", (0,), (1,), "DequantizeOptions"),
            FileOperator("MIRROR_PAD", (1, 2), (3,), "MirrorPadOptions", {"Mode": 0}),
            FileOperator("EXP", (3,), (4,)),
            FileOperator("QUANTIZE", (4,), (5,), "QuantizeOptions"),
        ],
        [0],
        [5],
    )
    model = model_of(content, name="net", where=MODEL)
    inputs = [np.random.default_rng(1).integers(-128, 128, (1, 4, 5, 3)).astype(np.int8)]
    [theirs] = tflm(content, model, inputs)
    assert np.array_equal(run(model, inputs)[0].reshape(-1), theirs.reshape(-1))


def floats_of_two(shapes: Sequence[tuple[int, ...]], *names: str) -> bytes:
    """Floats of two inputs, made by operators that each read what was made and the second input."""
    tensors = [
        FileTensor("given0", shapes[0], scales=(1 / 32,), zero_points=(5,)),
        FileTensor("given1", shapes[1], scales=(1 / 4096,), zero_points=(-90,)),
        *(FileTensor(f"floats{i}", shapes[i], "FLOAT32") for i in range(2)),
    ]
    operators = [FileOperator("DEQUANTIZE", (i,), (2 + i,), "DequantizeOptions") for i in range(2)]
    x = 2
    for name in names:
        tensors.append(FileTensor(f"floats{len(tensors)}", shapes[2], "FLOAT32"))
        operands = (x, 3) if len(operators) > 2 or "turned" not in name else (3, x)
        name = name.removeprefix("turned ")
        x = len(tensors) - 1
        if name in ("ABS", "EXP"):
            operators.append(FileOperator(name, operands[:1], (x,)))
            continue
        table = f"{name.title()}Options" if name in ("ADD", "SUB", "MUL", "DIV") else ""
        operators.append(FileOperator(name, operands, (x,), table))
    tensors.append(FileTensor("made", shapes[2], scales=(1 / 16,), zero_points=(-30,)))
    operators.append(FileOperator("QUANTIZE", (x,), (len(tensors) - 1,), "QuantizeOptions"))
    return write(tensors, operators, [0, 1], [len(tensors) - 1])


WHOLE, PIXEL, NUMBER = (1, 5, 6, 7), (1, 1, 1, 7), (1, 1, 1, 1)


@pytest.mark.parametrize("shapes", [(WHOLE, WHOLE), (WHOLE, PIXEL), (WHOLE, NUMBER), (PIXEL, WHOLE)])
@pytest.mark.parametrize("names", [("SQUARED_DIFFERENCE",), ("turned SUB", "ABS"), ("MUL", "ADD", "EXP")])
def test_a_function_of_two_floats_is_a_table_of_pairs(
    shapes: tuple[tuple[int, ...], ...], names: tuple[str, ...], tmp_path: Path
) -> None:
    content = floats_of_two((*shapes, WHOLE), *names)
    model = model_of(content, name="net", where=MODEL)
    assert [kind(layer) for layer in model.layers] == ["LookupTwo"]
    rng = np.random.default_rng(3)
    inputs = [rng.integers(-128, 128, model.tensors[t].bytes).astype(np.int8) for t in model.inputs]
    [theirs] = tflm(content, model, inputs)
    [ours] = run(model, inputs)
    assert np.array_equal(ours.reshape(-1), theirs.reshape(-1))
    made = made_of(planned(model), model, tmp_path / "net", [np.concatenate(inputs)])
    assert made == theirs.tobytes()


def test_equal_rows_of_pairs_are_kept_once() -> None:
    """A mean's scale is so fine beside its map's that its 256 bytes say little."""
    [layer] = model_of(floats_of_two((WHOLE, NUMBER, WHOLE), "SUB"), name="net", where=MODEL).layers
    assert isinstance(layer, LookupTwo)
    assert len(layer.rows) < 16


def test_floats_of_three_tensors_are_refused() -> None:
    tensors = [
        *(FileTensor(f"given{i}", SHAPE, scales=(1 / 32,), zero_points=(5,)) for i in range(3)),
        *(FileTensor(f"floats{i}", SHAPE, "FLOAT32") for i in range(5)),
        FileTensor("made", SHAPE, scales=(1 / 8,), zero_points=(0,)),
    ]
    content = write(
        tensors,
        [
            *(FileOperator("DEQUANTIZE", (i,), (3 + i,), "DequantizeOptions") for i in range(3)),
            FileOperator("SUB", (3, 4), (6,), "SubOptions"),
            FileOperator("ADD", (6, 5), (7,), "AddOptions"),
            FileOperator("QUANTIZE", (7,), (8,), "QuantizeOptions"),
        ],
        [0, 1, 2],
        [8],
    )
    with pytest.raises(ModelError, match=r"QUANTIZE\.5: reads floats4 of FLOAT32, made of bytes"):
        model_of(content, name="net", where=MODEL)
