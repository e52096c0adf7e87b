"""Fixed-point arithmetic against its definition, number by number."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onchip.microcontroller.int8.arithmetic import (
    divided_by_power,
    high_product,
    quantised_multiplier,
    scaled,
    wrapped,
)
from onchip.microcontroller.int8.softmax import exponentials, softmax

WORD = st.integers(-(1 << 31), (1 << 31) - 1)
EDGES = st.sampled_from((-(1 << 31), -(1 << 31) + 1, -1, 0, 1, (1 << 30), (1 << 31) - 1))


def truncated(number: Fraction) -> int:
    return floor(number) if number >= 0 else -floor(-number)


def as_word(number: int) -> int:
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def high(a: int, b: int) -> int:
    """The instruction that the interpreters' arithmetic is defined by: rounded doubling high multiply."""
    if a == b == -(1 << 31):
        return (1 << 31) - 1
    nudge = 1 << 30 if a * b >= 0 else 1 - (1 << 30)
    return truncated(Fraction(a * b + nudge, 1 << 31))


def divided(x: int, exponent: int) -> int:
    half = Fraction(1, 2) if x >= 0 else -Fraction(1, 2)
    return truncated(Fraction(x, 1 << exponent) + half)


@given(WORD | EDGES, WORD | EDGES)
def test_the_high_product_is_the_instructions(a: int, b: int) -> None:
    assert int(high_product(a, b)) == high(a, b)


@given(WORD | EDGES, st.integers(0, 31))
def test_division_rounds_halves_away_from_zero(x: int, exponent: int) -> None:
    assert int(divided_by_power(x, exponent)) == divided(x, exponent)


@given(st.integers(-(1 << 40), 1 << 40))
def test_accumulators_wrap(x: int) -> None:
    assert int(wrapped(x)) == as_word(x)


@given(WORD | EDGES, st.integers(-(1 << 31) + 1, (1 << 31) - 1), st.integers(-31, 30))
def test_scaling_rounds_twice(x: int, multiplier: int, shift: int) -> None:
    expected = divided(high(as_word(x << max(shift, 0)), multiplier), max(-shift, 0))
    assert int(scaled(x, multiplier, shift)) == expected


@given(st.lists(st.tuples(WORD, WORD, st.integers(-31, 8)), min_size=1, max_size=5))
def test_channels_are_scaled_each_by_its_own_factor(rows: list[tuple[int, int, int]]) -> None:
    xs, multipliers, shifts = (np.array(column) for column in zip(*rows, strict=True))
    together = scaled(xs, multipliers, shifts)
    assert together.tolist() == [int(scaled(*row)) for row in rows]


@given(st.floats(2**-31, 2**30), st.booleans())
def test_a_factor_is_near_the_real_one(real: float, negative: bool) -> None:
    value = -real if negative else real
    multiplier, shift = quantised_multiplier(value)
    assert abs(multiplier) >= 1 << 30
    assert -(1 << 31) <= multiplier < 1 << 31
    assert abs(multiplier * 2.0 ** (shift - 31) - value) <= abs(value) * 2**-31


def test_what_is_far_too_small_is_nothing() -> None:
    assert quantised_multiplier(0.0) == quantised_multiplier(2.0**-40) == (0, 0)


@given(st.integers(-255, 0), st.floats(1e-3, 2.0))
def test_exponentials_are_near_the_real_ones(difference: int, scale: float) -> None:
    multiplier, shift = quantised_multiplier(scale * (1 << 26))
    within = max(difference, -((31 << 26) >> shift))
    found = int(exponentials(np.array([within]), multiplier, shift)[0])
    assert abs(found / (1 << 31) - np.exp(within * scale)) < 1e-6


@given(st.lists(st.integers(-128, 127), min_size=1, max_size=40))
def test_shares_add_up(row: list[int]) -> None:
    multiplier, shift = quantised_multiplier(0.05 * (1 << 26))
    shares = softmax(np.array([row], np.int8), multiplier, shift, -((31 << 26) >> shift)).astype(int) + 128
    exact = np.exp(0.05 * np.array(row, float))
    assert np.abs(shares / 256 - exact / exact.sum()).max() < 1 / 200
