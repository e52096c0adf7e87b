"""Operands of which neither has the result's shape, and constants of any shape that fits it."""

from __future__ import annotations

import numpy as np
import pytest

from microcontroller.interpreters import tflm
from onchip.base.errors import ModelError
from onchip.microcontroller.int8.model import kind
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import run
from onchip.microcontroller.made.flatbuffer import FileOperator, FileTensor, write

Shape = tuple[int, ...]
WHOLE = 1, 4, 5, 6


def pair(name: str, first: Shape, second: Shape, made: Shape, constant: bool) -> bytes:
    """One operator on two inputs, or on one and a constant."""
    rng = np.random.default_rng(1)
    held = rng.integers(-128, 128, second).astype(np.int8) if constant else None
    tensors = [
        FileTensor("first", first, scales=(1 / 32,), zero_points=(5,)),
        FileTensor("second", second, data=held, scales=(1 / 64,), zero_points=(-9,)),
        FileTensor("made", made, scales=(1 / 16,), zero_points=(3,)),
    ]
    operator = FileOperator(name, (0, 1), (2,), f"{name.title()}Options")
    return write(tensors, [operator], [0] if constant else [0, 1], [2])


@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
@pytest.mark.parametrize(
    ("first", "second", "made", "constant"),
    [
        ((1, 1, 1, 1), (1, 1, 1, 6), (1, 1, 1, 6), True),
        ((1, 1, 1, 6), WHOLE, WHOLE, True),
        (WHOLE, (1, 4, 1, 6), WHOLE, True),
        (WHOLE, (4, 1, 1), WHOLE, True),
        (WHOLE, (1, 4, 5, 1), WHOLE, False),
        ((1, 4, 1, 6), (1, 1, 1, 6), (1, 4, 1, 6), False),
        ((1, 4, 5, 1), (1, 1, 1, 6), WHOLE, False),
    ],
)
def test_operands_are_spread(name: str, first: Shape, second: Shape, made: Shape, constant: bool) -> None:
    content = pair(name, first, second, made, constant)
    model = model_of(content, name="net", where="net.tflite")
    rng = np.random.default_rng(2)
    inputs = [rng.integers(-128, 128, model.tensors[t].bytes).astype(np.int8) for t in model.inputs]
    [theirs], [ours] = tflm(content, model, inputs), run(model, inputs)
    assert np.array_equal(ours.reshape(-1), theirs.reshape(-1))


def test_an_operand_of_the_results_shape_needs_no_other_layer() -> None:
    content = pair("MUL", WHOLE, (1, 1, 1, 6), WHOLE, False)
    assert [kind(layer) for layer in model_of(content, name="net", where="net").layers] == ["Mul"]


def test_shapes_that_fit_no_result_are_refused() -> None:
    content = pair("MUL", (1, 4, 5, 2), (1, 1, 1, 6), WHOLE, False)
    with pytest.raises(ModelError, match=r"MUL\.0: (spreads|makes)"):
        model_of(content, name="net", where="net.tflite")
