"""Floats between bytes are read as tables of bytes, equal to the interpreters that compute them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from microcontroller.interpreters import tflm
from onchip.base.errors import ModelError
from onchip.microcontroller.int8.model import Int8Model, kind
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import run
from onchip.microcontroller.made.flatbuffer import FileOperator, FileTensor, write

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


def test_floats_of_two_tensors_are_refused() -> None:
    tensors = [
        *(FileTensor(f"given{i}", SHAPE, scales=(1 / 32,), zero_points=(5,)) for i in range(2)),
        *(FileTensor(f"floats{i}", SHAPE, "FLOAT32") for i in range(3)),
        FileTensor("made", SHAPE, scales=(1 / 8,), zero_points=(0,)),
    ]
    content = write(
        tensors,
        [
            FileOperator("DEQUANTIZE", (0,), (2,), "DequantizeOptions"),
            FileOperator("DEQUANTIZE", (1,), (3,), "DequantizeOptions"),
            FileOperator("SUB", (2, 3), (4,), "SubOptions"),
            FileOperator("QUANTIZE", (4,), (5,), "QuantizeOptions"),
        ],
        [0, 1],
        [5],
    )
    with pytest.raises(ModelError, match=r"QUANTIZE\.3: reads floats2 of FLOAT32, made of bytes"):
        model_of(content, name="net", where=MODEL)
