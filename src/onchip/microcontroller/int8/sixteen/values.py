"""Numbers of 16 bits as bytes and back, and their scaling."""

from __future__ import annotations

from typing import Any

import numpy as np

from onchip.microcontroller.int8.arithmetic import Whole, wrapped
from onchip.microcontroller.int8.model import Int8, Shape

__all__ = ["HIGHEST", "LOWEST", "clamped_bytes", "in_bytes", "numbers", "reduced", "scaled_wide", "to_bytes"]

LOWEST, HIGHEST = -(1 << 15), (1 << 15) - 1


def numbers(values: Int8) -> Whole:
    """Return the numbers of bytes whose last axis holds two for each."""
    found: Whole = np.ascontiguousarray(values).view("<i2").astype(np.int64)
    return found


def to_bytes(values: Any) -> Int8:
    """Return numbers of 16 bits as bytes, two for each along the last axis."""
    found: Int8 = np.ascontiguousarray(values).astype("<i2").view(np.int8)
    return found


def clamped_bytes(values: Any, low: int = LOWEST, high: int = HIGHEST) -> Int8:
    """Return the values, clamped, as bytes."""
    return to_bytes(np.clip(values, low, high))


def in_bytes(shape: Shape) -> Shape:
    """Return the shape of a map of numbers, counted in bytes."""
    return shape[0], shape[1], shape[2], 2 * shape[3]


def reduced(multiplier: int) -> int:
    """Return a multiplier of 31 bits in 15, which sums of 64 bits are scaled by."""
    return (multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF


def scaled_wide(values: Any, multiplier: Any, shift: Any) -> Whole:
    """Return sums below 2**47 times multiplier * 2**(shift - 31), the multiplier of 15 bits, rounded once.

    `multiplier` and `shift` are numbers, or arrays along the last axis.
    """
    factor = np.vectorize(reduced, otypes=[np.int64])(multiplier)
    right = 15 - np.asarray(shift, np.int64)
    product = np.asarray(values, np.int64) * factor + (np.int64(1) << (right - 1))
    return wrapped(product >> right)
