"""TensorFlow Lite's fixed-point arithmetic on whole arrays, exact to the last bit.

Accumulators have 32 bits and wrap. A real factor is an integer of 31 bits and a power of two, and a product
with it is rounded twice, as the interpreters do: the doubled high word to the nearest (halves up), then the
division by the power of two to the nearest (halves away from zero).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onchip.microcontroller.int8.model import Int8

__all__ = ["clamped", "divided_by_power", "high_product", "quantised_multiplier", "scaled", "wrapped"]

Whole = NDArray[np.int64]

BEYOND = 1000
"""A shift larger than any that can be applied (30), of a factor that no float holds."""


def wrapped(values: Any) -> Whole:
    """Return the values wrapped to 32 bits."""
    return np.asarray(values, np.int64).astype(np.int32).astype(np.int64)


def high_product(a: Any, b: Any) -> Whole:
    """Return a * b / 2**31 to the nearest, halves up; saturate in the one case that overflows."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    product += 1 << 30
    product >>= 31
    return np.minimum(product, (1 << 31) - 1)


def divided_by_power(values: Any, exponent: Any) -> Whole:
    """Return values / 2**exponent to the nearest, halves away from zero; each exponent is 0 to 31."""
    x, e = np.asarray(values, np.int64), np.asarray(exponent, np.int64)
    below = (np.int64(1) << e) - 1
    rest = x & below
    return (x >> e) + (rest > (below >> 1) + (x < 0))


def scaled(values: Any, multiplier: Any, shift: Any) -> Whole:
    """Return values * multiplier * 2**(shift - 31) for values of 32 bits, rounded twice.

    A shift to the left wraps. `multiplier` and `shift` are numbers or arrays along the last axis.
    """
    left, right = np.maximum(shift, 0), np.maximum(np.negative(shift), 0)
    x = np.asarray(values, np.int64)
    if np.any(left):
        x = wrapped(x << left)
    return divided_by_power(high_product(x, multiplier), right)


def clamped(values: Any, low: int = -128, high: int = 127) -> Int8:
    """Return the values, clamped to [low, high], as bytes."""
    held: Int8 = np.clip(values, low, high).astype(np.int8)
    return held


def quantised_multiplier(real: float) -> tuple[int, int]:
    """Return a real factor as (multiplier, shift): multiplier * 2**(shift - 31), 2**30 <= abs(multiplier).

    The factor may be negative (some files fold a negative gain into the scale of weights). A magnitude below
    about 2**-32 becomes (0, 0); infinities and NaN give a shift beyond any that can be applied.
    """
    if real == 0.0:
        return 0, 0
    if not math.isfinite(real):
        return (1 << 31) - 1, BEYOND
    fraction, shift = math.frexp(real)
    multiplier = int(math.copysign(math.floor(abs(fraction) * (1 << 31) + 0.5), fraction))
    if multiplier == 1 << 31:
        multiplier, shift = multiplier // 2, shift + 1
    return (0, 0) if shift < -31 else (multiplier, shift)
