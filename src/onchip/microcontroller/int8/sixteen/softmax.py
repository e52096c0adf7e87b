"""Softmax of 16-bit numbers by two tables, and of bytes to 16-bit numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from onchip.microcontroller.int8.arithmetic import Whole, quantised_multiplier, scaled
from onchip.microcontroller.int8.factors import softmax_factors
from onchip.microcontroller.int8.model import Int8, Own
from onchip.microcontroller.int8.read_elements import MOST_CLASSES
from onchip.microcontroller.int8.read_site import INT8, Site
from onchip.microcontroller.int8.sixteen.values import (
    HIGHEST,
    LOWEST,
    clamped_bytes,
    in_bytes,
    numbers,
    to_bytes,
)
from onchip.microcontroller.int8.softmax import shares

__all__ = ["Softmax16", "SoftmaxTo16", "exponential_table", "reciprocal_table", "softmax"]

STEPS = 512
SUM_CLASSES = 1 << 16
"""The most channels whose exponentials a sum of 32 bits holds."""
_SPAN = np.float32(HIGHEST - LOWEST)


def _table(input_scale: np.float32, zero: int, function: str) -> tuple[int, ...]:
    """Return 513 entries of a function in single precision, moved by half of the error of lines between."""
    single = np.float32
    two, out = single(2), single(2) / _SPAN
    low, high = input_scale * single(LOWEST - zero), input_scale * single(HIGHEST - zero)
    step = (high - low) / single(STEPS)
    half = step / two
    inverse = single(65536) / (out * single(HIGHEST) - out * single(LOWEST))

    def value(x: np.float32) -> np.float32:
        if function == "exp":
            return single(np.exp(np.float64(x)))  # the nearest float, as a good library gives
        return single(1) / (single(1) + x)

    found = []
    for i in range(STEPS):
        here, middle, behind = (
            value(single(low + single(i) * step)),
            value(single(single(low + single(i) * step) + half)),
            value(single(low + single(i + 1) * step)),
        )
        sample = _rounded(here * inverse)
        line = _rounded(single(single(behind * inverse) + sample) / two)
        error = single(line - _rounded(middle * inverse))
        found.append(int(np.clip(single(sample - _rounded(error / two)), LOWEST, HIGHEST)))
    found.append(int(np.clip(_rounded(value(high) * inverse), LOWEST, HIGHEST)))
    return tuple(found)


def _rounded(value: np.float32) -> np.float32:
    """Return the nearest whole number, halves away from zero."""
    return np.float32(np.copysign(np.floor(np.abs(np.float64(value)) + 0.5), value))


@cache
def exponential_table() -> tuple[int, ...]:
    """Return exp(x) for x from -10 to 0, in 15 bits behind the point."""
    return _table(np.float32(10) / _SPAN, HIGHEST, "exp")


@cache
def reciprocal_table() -> tuple[int, ...]:
    """Return 1 / (1 + x) for x from 0 to 1, in 15 bits behind the point."""
    return _table(np.float32(1) / _SPAN, LOWEST, "reciprocal")


def _looked_up(values: Whole, table: tuple[int, ...]) -> Whole:
    """Return a table's values at places of 16 bits, on the line between two entries."""
    entries = np.array(table, np.int64)
    at = 256 + (values >> 7)
    base = entries[at]
    found: Whole = base + (((entries[at + 1] - base) * (values & 0x7F) + 64) >> 7)
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Softmax16(Own):
    """A softmax over each pixel's numbers; differences are scaled so that 65,535 of them are 10."""

    multiplier: int
    shift: int

    def compute(self, seen: Sequence[Int8]) -> Int8:
        x = numbers(seen[0])
        apart = scaled(x - x.max(axis=-1, keepdims=True), self.multiplier, self.shift) + HIGHEST
        exponentials = _looked_up(np.clip(apart, LOWEST, HIGHEST), exponential_table())
        total = np.sum(exponentials, axis=-1, keepdims=True)
        headroom = 32 - np.frexp(total.astype(np.float64))[1].astype(np.int64)
        place = ((total << (headroom - 1)) + (1 << 13) >> 14) - ((1 << 15) + (1 << 16))
        inverse = _looked_up(np.clip(place, LOWEST, HIGHEST), reciprocal_table())
        right = 31 - headroom
        found = (exponentials * inverse + (np.int64(1) << (right - 1))) >> right
        return clamped_bytes(found, 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class SoftmaxTo16(Own):
    """A softmax of bytes with 16 bits of its shares, from -32768 on; its factors are those of `Softmax`."""

    multiplier: int
    shift: int
    diff_min: int

    def compute(self, seen: Sequence[Int8]) -> Int8:
        counts, found = shares(seen[0], self.multiplier, self.shift, self.diff_min, 16)
        return to_bytes(np.where(counts, np.clip(found + LOWEST, LOWEST, HIGHEST), LOWEST))


def softmax(site: Site) -> Softmax16 | SoftmaxTo16:
    """Return a softmax whose output has 16 bits, and whose input has 8 or 16."""
    seen, made = site.seen(0), site.made()
    beta = site.node.reals.get("Beta", 0.0)
    inner, out = site.scale(0), site.row_scale(site.out)
    wide = site.row(0).element != INT8
    wanted = (2.0**-15, 0) if wide else (2.0**-16, LOWEST)
    if abs(out.scale - wanted[0]) > 1e-3 * wanted[0] or out.zero_point != wanted[1]:
        raise site.refuse(
            f"makes shares on scale {out.scale:g} from {out.zero_point}, not {wanted[0]:g} from {wanted[1]}"
        )
    most = SUM_CLASSES if wide else MOST_CLASSES
    if seen[3] > most:
        raise site.refuse(f"is over {seen[3]:,} channels; its sums hold {most:,}")
    head = {**site.head(0), "output_shape": in_bytes(made)}
    if wide:
        multiplier, shift = site.factor(quantised_multiplier(inner.scale * beta / (10.0 / 65535.0)))
        return Softmax16(**{**head, "input_shapes": (in_bytes(seen),)}, multiplier=multiplier, shift=shift)
    try:
        multiplier, shift, diff_min = softmax_factors(inner.scale, beta)
    except ValueError as problem:
        raise site.refuse(str(problem)) from None
    return SoftmaxTo16(**head, multiplier=multiplier, shift=shift, diff_min=diff_min)
