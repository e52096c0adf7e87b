"""LOG_SOFTMAX in integers, as TensorFlow Lite's reference kernel computes it: logarithms in Q5.26."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onchip.microcontroller.int8.arithmetic import (
    Whole,
    clamped,
    divided_by_power,
    high_product,
    quantised_multiplier,
    scaled,
    wrapped,
)
from onchip.microcontroller.int8.factors import softmax_factors
from onchip.microcontroller.int8.model import Int8, Own
from onchip.microcontroller.int8.read_elements import MOST_CLASSES
from onchip.microcontroller.int8.read_site import Site
from onchip.microcontroller.int8.softmax import ONE, SUM_BITS, exponentials, inverse_of_half

__all__ = [
    "ALPHA",
    "LOG_2",
    "QUARTER",
    "ROOT_HALF",
    "ROOT_ROOT_HALF",
    "LogSoftmax",
    "log_softmax",
]

LOG_2, ROOT_HALF, ROOT_ROOT_HALF = 1488522236, 1518500250, 1805811301  # Q0.31
ALPHA = {"n": 117049297, "d": 127690142, "i": 1057819769, "f": 638450708}
"""The constants of a rational function near 1, Q0.31."""
QUARTER = 1 << 23  # 1/4, Q6.25
SIXTEENTH = 1 / 16


def _log(total: Whole) -> Whole:
    """Return the logarithm of a Q12.19 number from 1 on, in Q5.26."""

    def zeros(x: Whole) -> Whole:
        found: Whole = 32 - np.frexp(x.astype(np.float64))[1].astype(np.int64)
        return found

    above = zeros(total)
    first = np.minimum(high_product(total << (above - 1), ROOT_HALF) << 1, ONE)
    first_power = ((12 - above) << 25) + QUARTER
    below = zeros(high_product(total, ROOT_HALF)) - 1
    second = np.minimum(total << below, ONE)
    second_power = ((12 - below) << 25) - QUARTER
    r, power = np.minimum(first, second), np.maximum(first_power, second_power)
    p = (r + ROOT_ROOT_HALF + 1) >> 1
    q = wrapped((r - ROOT_ROOT_HALF) * 2)
    square = high_product(q, q)
    number = high_product(q, r) + high_product(high_product(q, square), ALPHA["n"])
    less_one = high_product(p, ALPHA["i"] + q + high_product(ALPHA["d"], square)) + high_product(
        ALPHA["f"], q
    )
    inverse = np.minimum(inverse_of_half(less_one) << 1, ONE)
    found = high_product(power, LOG_2) + high_product(divided_by_power(number, 6), inverse)
    held: Whole = np.clip(found << 1, -(1 << 31), ONE)
    return held


@dataclass(frozen=True, kw_only=True, eq=False)
class LogSoftmax(Own):
    """The logarithms of a softmax over each pixel's channels, on a scale of 1/16 from 127.

    Differences to the greatest channel are scaled; those below `diff_min` are not added up. `back` leads from
    Q5.26 to differences.
    """

    multiplier: int
    shift: int
    diff_min: int
    back: tuple[int, int]

    def compute(self, seen: Sequence[Int8]) -> Int8:
        x = seen[0]
        apart = x.astype(np.int64) - x.max(axis=-1, keepdims=True)
        counts = apart >= self.diff_min
        each = exponentials(np.where(counts, apart, 0), self.multiplier, self.shift)
        total = np.sum(np.where(counts, divided_by_power(each, SUM_BITS), 0), axis=-1, keepdims=True)
        log = _log(total)
        least = np.maximum(self.diff_min - 1, scaled(log - (1 << 31), *self.back))
        moved = scaled(apart, self.multiplier, self.shift) - log
        return np.where(apart > least, clamped(divided_by_power(moved, 22) + 127), np.int8(-128))


def log_softmax(site: Site) -> LogSoftmax:
    """Return the operator as a layer."""
    seen = site.seen(0)
    if site.out_scale() != (SIXTEENTH, 127):
        raise site.refuse(f"makes logarithms on scale {site.out_scale().scale:g}, not 1/16 from 127")
    if seen[3] > MOST_CLASSES:
        raise site.refuse(f"is over {seen[3]:,} channels; its sums hold {MOST_CLASSES:,}")
    try:
        multiplier, shift, diff_min = softmax_factors(site.scale(0).scale, 1.0)
    except ValueError as problem:
        raise site.refuse(str(problem)) from None
    head: dict[str, Any] = site.head(0)
    back = quantised_multiplier((1 << (31 - shift)) / multiplier)
    return LogSoftmax(**head, multiplier=multiplier, shift=shift, diff_min=diff_min, back=back)
