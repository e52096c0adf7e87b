"""From scales to integers: the factors, bounds and tables that layers carry.

Each function follows the interpreter that is its layer's reference (docs/mcu-reference.md), down to whether
a product of scales is taken in single or double precision: the last bit of a multiplier depends on it.
Scales are the file's 32-bit floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from onchip.microcontroller.int8.arithmetic import (
    Whole,
    clamped,
    divided_by_power,
    quantised_multiplier,
    scaled,
)
from onchip.microcontroller.int8.model import Int8, frozen_array
from onchip.microcontroller.int8.softmax import fixed_logistic

__all__ = [
    "ACTIVATIONS",
    "AddFactors",
    "Scale",
    "activation_bounds",
    "add_factors",
    "channel_factor",
    "fixed_table",
    "hard_swish_table",
    "logistic_table",
    "mean_factor",
    "mul_factor",
    "prelu_factors",
    "quantise_table",
    "softmax_factors",
]

ACTIVATIONS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6")
"""The supported fused activations by the schema's number."""

INTEGER_BITS = 4
"""Bits in front of the point of the inputs of fixed-point functions."""

Factor = tuple[int, int]
"""(multiplier, shift)."""

_EXTREME = np.errstate(over="ignore", under="ignore")
"""Scales of any size make infinities and zeros of single precision, which the callers refuse or keep."""


class Scale(NamedTuple):
    """The quantisation of a tensor: real = scale * (byte - zero_point); the scale has 32 bits."""

    scale: float
    zero_point: int


class AddFactors(NamedTuple):
    """The factors of an `Add`, beside its offsets and bounds."""

    inputs: tuple[Factor, Factor]
    output: Factor
    left_shift: int


def _halves_away(value: float) -> int:
    """Return the nearest integer, halves away from zero."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


@_EXTREME
def activation_bounds(activation: str, out: Scale, least: int = -128, most: int = 127) -> tuple[int, int]:
    """Return (low, high) of a fused activation on numbers of this scale; raises `ValueError` for none."""

    def place(real: float) -> int:
        return out.zero_point + _halves_away(float(np.float32(real) / np.float32(out.scale)))

    match activation:
        case "RELU":
            low, high = place(0.0), most
        case "RELU6":
            low, high = place(0.0), place(6.0)
        case "RELU_N1_TO_1":
            low, high = place(-1.0), place(1.0)
        case _:
            low, high = least, most
    low, high = max(low, least), min(high, most)
    if low > high:
        raise ValueError(f"activation {activation} leaves no value between {low} and {high}")
    return low, high


def channel_factor(inner: float, weight: float, out: float) -> Factor:
    """Return the factor of an output channel of a sum of products, in double precision throughout."""
    return quantised_multiplier(inner * weight / out)


def add_factors(first: float, second: float, out: float, up: int = 20) -> AddFactors:
    """Return the factors of a sum: operands on twice the larger scale, so many bits up; the sum on `out`."""
    twice = 2 * max(first, second)
    return AddFactors(
        (quantised_multiplier(first / twice), quantised_multiplier(second / twice)),
        quantised_multiplier(twice / ((1 << up) * out)),
        up,
    )


def mul_factor(first: float, second: float, out: float) -> Factor:
    """Return the factor of a product of two maps, in double precision."""
    return quantised_multiplier(first * second / out)


def mean_factor(inner: float, out: float, count: int) -> Factor:
    """Return the factor of a mean over `count` places: the ratio of the scales over the integer count."""
    multiplier, shift = quantised_multiplier(inner / out)
    up = min(count.bit_length() - 1, 32, 31 + shift)
    return (multiplier << up) // count, shift - up


def prelu_factors(inner: float, alpha: float, out: float) -> tuple[Factor, Factor]:
    """Return the factors of values above zero and of products with alpha below, in double precision."""
    return quantised_multiplier(inner / out), quantised_multiplier(inner * alpha / out)


def softmax_factors(inner: float, beta: float) -> tuple[int, int, int]:
    """Return (multiplier, shift, diff_min) for differences in Q5.26.

    Raises `ValueError` for too small a scale.
    """
    real = min(beta * inner * (1 << 26), (1 << 31) - 1.0)
    if real <= 1.0:
        raise ValueError(f"beta {beta} times the input's scale {inner} is too small for a softmax")
    multiplier, shift = quantised_multiplier(real)
    return multiplier, shift, -math.floor(31 * (1 << 26) / (1 << shift))


def _bytes() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.arange(-128, 128, dtype=np.int64)


def quantise_table(inner: Scale, out: Scale) -> Int8:
    """Return the table from bytes of one scale to bytes of another."""
    factor = quantised_multiplier(inner.scale / out.scale)
    moved = scaled(_bytes() - inner.zero_point, *factor) + out.zero_point
    table: Int8 = frozen_array(clamped(moved), np.int8)
    return table


def fixed_table(inner: Scale, function: Callable[[Whole], Whole], bits: int, zero_point: int) -> Int8:
    """Return a table of a function of fixed-point numbers; its results have so many bits after the point.

    The input has 4 bits in front of the point; beyond the range that these hold the function is constant.
    """
    multiplier, shift = quantised_multiplier(inner.scale * (1 << (31 - INTEGER_BITS)))
    radius = math.floor(((1 << INTEGER_BITS) - 1) * (1 << (31 - INTEGER_BITS)) / 2.0**shift)
    x = _bytes() - inner.zero_point
    inside = np.abs(x) < radius
    made = divided_by_power(function(scaled(np.where(inside, x, 0), multiplier, shift)), 31 - bits)
    return np.where(inside, clamped(made + zero_point), np.where(x > 0, 127, -128)).astype(np.int8)


def logistic_table(inner: Scale) -> Int8:
    """Return the table of 1 / (1 + exp(-x)) in fixed point, on a scale of 1/256 from -128."""
    table: Int8 = frozen_array(fixed_table(inner, fixed_logistic, 8, -128), np.int8)
    return table


def hard_swish_table(inner: Scale, out: Scale) -> Int8:
    """Return the table of x * min(max(x + 3, 0), 6) / 6 in 16-bit fixed point.

    Raises `ValueError` for too fine an output.
    """
    fine = inner.scale / 128
    multiplier, shift = quantised_multiplier(fine / out.scale)
    reluish, reluish_shift = quantised_multiplier(fine / (3 / 32768))
    if shift > 0:
        raise ValueError(f"the output's scale {out.scale} is too fine for the input's {inner.scale}")
    if max(-shift, abs(reluish_shift)) > 15:
        raise ValueError(f"no table of 16-bit numbers leads from scale {inner.scale} to {out.scale}")
    x = (_bytes() - inner.zero_point) << 7
    value = _high_product_16(x, _high_half(multiplier))
    relu = x
    if reluish_shift > 0:
        relu = _saturated_16(relu << (reluish_shift - 1))
    relu = _high_product_16(relu, _high_half(reluish))
    if reluish_shift > 0:
        relu = _saturated_16(relu << 1)
    if reluish_shift < 0:
        relu = divided_by_power(relu, -reluish_shift)
    relu = (relu + (1 << 15)) >> 1
    product = relu * value
    product = np.sign(product) * (np.abs(product) >> 15)
    table: Int8 = frozen_array(clamped(divided_by_power(product, -shift) + out.zero_point), np.int8)
    return table


def _high_half(multiplier: int) -> int:
    """Return a multiplier of 31 bits in 15."""
    return min((multiplier + (1 << 15)) >> 16, (1 << 15) - 1)


def _high_product_16(
    a: np.ndarray[tuple[int], np.dtype[np.int64]], b: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return a * b / 2**15 to the nearest, halves up, for 16-bit numbers."""
    return (a * b + (1 << 14)) >> 15


def _saturated_16(
    a: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.clip(a, -(1 << 15), (1 << 15) - 1)
