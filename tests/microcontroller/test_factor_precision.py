"""Factors of scales are computed in double precision, as TensorFlow Lite Micro does: scales where that shows.

At each of these scales a number lies so near to half a step that a quotient or product of scales in single
precision makes another byte.
"""

from __future__ import annotations

import numpy as np
import pytest

from microcontroller.interpreters import tflm
from onchip.microcontroller.int8.factors import Scale
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import run
from onchip.microcontroller.made import Map, WideBuilder
from onchip.microcontroller.made.flatbuffer import FileOperator

QUOTIENTS = (
    (0.012343092821538448, 0.02922038361430168, 29, 12),
    (0.0122008565813303, 0.04239129647612572, 119, 35),
    (0.013599325902760029, 0.011803188361227512, 69, 80),
)
"""(the input's scale, the output's, the input, the output)."""
LEAKY = (
    (0.010808710008859634, 0.012545191682875156, -59, -16),
    (0.017538858577609062, 0.005532257258892059, -92, -88),
    (0.01606478914618492, 0.018948214128613472, -115, -29),
)
"""The same below zero, for a slope of 0.3."""
PRODUCTS = (
    (0.007766949012875557, 0.011248246766626835, 0.006224305834621191, 67, -126, -118),
    (0.006658708676695824, 0.013868633657693863, 0.006610918790102005, 66, 109, 101),
    (0.019382404163479805, 0.005558921955525875, 0.018333470448851585, 105, -111, -69),
)
"""(the scales of both maps, the output's, the two numbers, the output)."""

ONE = (1, 1, 1, 1)


def made(
    b: WideBuilder, operator: FileOperator, maps: list[Map], scale: float, given: tuple[int, ...]
) -> int:
    """Return what an operator makes of one number each; both interpreters make the same."""
    content = b.file(b._made(operator, maps, ONE, Scale(scale, 0)))
    model = model_of(content, name="one", where="one")
    inputs = [np.full(ONE, value, np.int8) for value in given]
    (ours,), (theirs,) = run(model, inputs), tflm(content, model, inputs)
    assert ours.tobytes() == theirs.tobytes()
    return int(ours.reshape(-1)[0])


@pytest.mark.parametrize(
    ("name", "table"), [("ABS", "AbsOptions"), ("RELU", ""), ("QUANTIZE", "QuantizeOptions")]
)
def test_quotients_of_scales(name: str, table: str) -> None:
    for inner, out, given, wanted in QUOTIENTS:
        b = WideBuilder(1)
        assert made(b, FileOperator(name, (), (), table), [b.input(ONE, inner)], out, (given,)) == wanted


def test_the_slope_of_a_leaky_relu() -> None:
    for inner, out, given, wanted in LEAKY:
        b = WideBuilder(1)
        operator = FileOperator("LEAKY_RELU", (), (), "LeakyReluOptions", {"Alpha": 0.3})
        assert made(b, operator, [b.input(ONE, inner)], out, (given,)) == wanted


def test_products_of_the_scales_of_two_maps() -> None:
    for first, second, out, x, y, wanted in PRODUCTS:
        b = WideBuilder(1)
        operator = FileOperator("BATCH_MATMUL", (), (), "BatchMatMulOptions", {"AdjX": 0, "AdjY": 0})
        maps = [b.input(ONE, first), b.input(ONE, second)]
        assert made(b, operator, maps, out, (x, y)) == wanted
