"""Softmax in integers, as TensorFlow Lite's reference kernel computes it.

Fixed-point numbers are 32-bit integers with a stated number of integer bits: Q5.26 is an input difference,
Q0.31 an exponential, Q12.19 a sum of them. The exponential of a negative number is a polynomial on
[-1/4, 0) times constants for the powers of two in the rest; the reciprocal is three steps of Newton's method.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onchip.microcontroller.int8.arithmetic import (
    Whole,
    clamped,
    divided_by_power,
    high_product,
    scaled,
    wrapped,
)
from onchip.microcontroller.int8.model import Int8

__all__ = ["exponentials", "fixed_logistic", "fixed_tanh", "inverse_of_half", "shares", "softmax"]

ONE = (1 << 31) - 1
EXP_OF_EIGHTH = 1895147668  # exp(-1/8), Q0.31
THIRD = 715827883  # 1/3, Q0.31
EXP_OF_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""exp(-2**k) for k = -2 .. 4, Q0.31."""
FORTY_EIGHT_17THS, MINUS_THIRTY_TWO_17THS = 1515870810, -1010580540  # Q2.29
SUM_BITS = 12


def exponentials(differences: Any, multiplier: int, shift: int) -> Whole:
    """Return exp of differences (none positive) times a factor, in Q0.31."""
    return _exp(scaled(differences, multiplier, shift))


def softmax(x: Int8, multiplier: int, shift: int, diff_min: int) -> Int8:
    """Return the softmax along the last axis; the result's scale is 1/256, its zero point -128."""
    counts, found = shares(x, multiplier, shift, diff_min, 8)
    return np.where(counts, clamped(found - 128), np.int8(-128))


def shares(x: Int8, multiplier: int, shift: int, diff_min: int, bits: int) -> tuple[Any, Whole]:
    """Return which places count, and the shares of each with so many bits behind the point."""
    differences = x.astype(np.int64) - x.max(axis=-1, keepdims=True)
    counts = differences >= diff_min
    exps = np.where(counts, exponentials(np.where(counts, differences, 0), multiplier, shift), 0)
    total = wrapped(np.sum(divided_by_power(exps, SUM_BITS), axis=-1, keepdims=True))
    reciprocal, above = _reciprocal(total)
    return counts, divided_by_power(high_product(reciprocal, exps), above + 31 - bits)


def _shifted_left(x: Whole, bits: int) -> Whole:
    """Return x * 2**bits, saturated to 32 bits."""
    held: Whole = np.clip(x << bits, -(1 << 31), ONE)
    return held


def _exp(a: Whole, integer_bits: int = 5) -> Whole:
    """Return exp(a) for a <= 0, in Q0.31; `a` has so many bits in front of the point."""
    quarter = 1 << (29 - integer_bits)
    part = (a & (quarter - 1)) - quarter
    result = _exp_of_part(_shifted_left(part, integer_bits))
    rest = part - a
    for k, constant in enumerate(EXP_OF_POWERS[: 2 + integer_bits]):
        result = np.where(rest & (quarter << k), high_product(result, constant), result)
    return np.where(a == 0, ONE, result)


def _exp_of_part(a: Whole) -> Whole:
    """Return exp(a) for a in [-1/4, 0), Q0.31: Taylor's polynomial around -1/8."""
    x = a + (1 << 28)
    x2 = high_product(x, x)
    x3, x4 = high_product(x2, x), high_product(x2, x2)
    higher = divided_by_power(high_product(divided_by_power(x4, 2) + x3, THIRD) + x2, 1)
    return wrapped(EXP_OF_EIGHTH + high_product(EXP_OF_EIGHTH, x + higher))


def _reciprocal(total: Whole) -> tuple[Whole, Whole]:
    """Return 1 / total as (a number in (1/2, 1] in Q0.31, the bits by which Q12.19 `total` exceeds one)."""
    headroom = 32 - np.frexp(total.astype(np.float64))[1].astype(np.int64)
    x = wrapped((total << headroom) - (1 << 31))
    return _shifted_left(inverse_of_half(x), 1), SUM_BITS - headroom


def inverse_of_half(x: Whole) -> Whole:
    """Return 2 / (1 + x) for x in [0, 1) in Q0.31, in Q2.29."""
    half = (x + ONE + 1) >> 1
    guess = wrapped(FORTY_EIGHT_17THS + high_product(half, MINUS_THIRTY_TWO_17THS))
    for _ in range(3):
        error = (1 << 29) - high_product(half, guess)
        guess = wrapped(guess + _shifted_left(high_product(guess, error), 2))
    return guess


def fixed_logistic(a: Whole) -> Whole:
    """Return 1 / (1 + exp(-a)) in Q0.31, for a in Q4.27."""
    share = _shifted_left(inverse_of_half(_exp(-np.abs(a), 4)), 1)
    return np.where(a == 0, 1 << 30, np.where(a > 0, share, ONE - share))


def fixed_tanh(a: Whole) -> Whole:
    """Return tanh(a) in Q0.31, for a in Q4.27."""
    doubled = -np.abs(a)  # of twice the value, with one more bit in front of the point
    found = _shifted_left(inverse_of_half(_exp(doubled, 5)) - (1 << 29), 2)
    return np.where(a == 0, 0, np.where(a < 0, -found, found))
