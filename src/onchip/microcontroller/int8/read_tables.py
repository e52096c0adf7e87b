"""Functions of one byte as tables of 256: a table of names, and what each operator makes of every byte.

Two forms of arithmetic occur. Functions that the interpreters scale in integers follow them to the last bit;
functions that they look up themselves are computed in single precision, as their tables are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onchip.microcontroller.int8.arithmetic import (
    Whole,
    clamped,
    divided_by_power,
    high_product,
    quantised_multiplier,
    scaled,
)
from onchip.microcontroller.int8.factors import Scale, activation_bounds, fixed_table
from onchip.microcontroller.int8.model import Int8, Lookup, frozen_array
from onchip.microcontroller.int8.read_site import Site
from onchip.microcontroller.int8.softmax import fixed_tanh

__all__ = ["TABLES", "island", "lookup"]

INT8 = 3  # ONNX's element type

Single = np.ndarray[Any, np.dtype[np.float32]]


def lookup(site: Site) -> Lookup:
    """Return an operator of `TABLES` as a layer."""
    head = site.head(0)  # first: a constant, which is refused here, may have scale 0
    with np.errstate(all="ignore"):
        table = TABLES[site.node.type](site, site.scale(0), site.out_scale())
    return Lookup(**head, table=frozen_array(table, np.int8))


def island(site: Site) -> Lookup:
    """Return floats between bytes, whose table `read_islands` has made, as a layer."""
    table = site.constant(1, INT8, "results")
    if table.size != 256:
        raise site.refuse(f"has {table.size} results, not one for each of 256 bytes")
    return Lookup(**site.head(0), table=frozen_array(table.reshape(-1), np.int8))


def _bytes() -> Whole:
    return np.arange(-128, 128, dtype=np.int64)


def _leaky_relu(site: Site, inner: Scale, out: Scale) -> Int8:
    """Scale by one factor from zero on and by another below it."""
    alpha = float(np.float32(site.node.reals.get("Alpha", 0.0)))
    above = site.factor(quantised_multiplier(inner.scale / out.scale))
    below = quantised_multiplier(inner.scale * alpha / out.scale)
    multiplier, shift = site.factor(below)
    x = _bytes() - inner.zero_point
    down = scaled(x, abs(multiplier), shift) * (1 if multiplier >= 0 else -1)
    return clamped(np.where(x >= 0, scaled(x, *above), down) + out.zero_point)


def _relu(name: str) -> Callable[[Site, Scale, Scale], Int8]:
    def table(site: Site, inner: Scale, out: Scale) -> Int8:
        factor = quantised_multiplier(inner.scale / out.scale)
        try:
            low, high = activation_bounds(name, out)
        except (ValueError, OverflowError) as problem:
            raise site.refuse(str(problem)) from None
        moved = scaled(_bytes() - inner.zero_point, *site.factor(factor)) + out.zero_point
        return clamped(moved, low, high)

    return table


def _tanh(site: Site, inner: Scale, out: Scale) -> Int8:
    if out != (1 / 128, 0):
        raise site.refuse(f"makes its values on scale {out.scale:g} from {out.zero_point}, not 1/128 from 0")
    return fixed_table(inner, fixed_tanh, 7, 0)


def _looked_up(function: Callable[[Single], Any]) -> Callable[[Site, Scale, Scale], Int8]:
    """Return the maker of a table of a real function, in single precision."""

    def table(site: Site, inner: Scale, out: Scale) -> Int8:
        x = np.float32(inner.scale) * (_bytes() - inner.zero_point).astype(np.float32)
        y = np.asarray(function(x)).astype(np.float32) * (np.float32(1) / np.float32(out.scale))
        held = np.clip(np.nan_to_num(y, posinf=1e9, neginf=-1e9), -1e9, 1e9).astype(np.float64)
        return clamped(np.copysign(np.floor(np.abs(held) + 0.5), held) + out.zero_point)

    return table


def _gelu(x: Single) -> Any:
    wide = x.astype(np.float64)
    return 0.5 * wide * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))


def _gelu_by_tanh(x: Single) -> Any:
    wide = x.astype(np.float64)
    return 0.5 * wide * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))


def _either_gelu(site: Site, inner: Scale, out: Scale) -> Int8:
    found = _gelu_by_tanh if site.option("Approximate", 0) else _gelu
    return _looked_up(found)(site, inner, out)


def _elu(x: Single) -> Any:
    return np.where(x < 0, np.expm1(x.astype(np.float64)), x)


def _abs(site: Site, inner: Scale, out: Scale) -> Int8:
    factor = site.factor(quantised_multiplier(inner.scale / out.scale))
    x = np.abs(_bytes() - inner.zero_point)
    return clamped((x if inner.scale == out.scale else scaled(x, *factor)) + out.zero_point)


def _inverse_root(value: int) -> tuple[int, int]:
    """Return 1 / sqrt(value) of a whole number above 0 as (multiplier, shift), by Newton's method."""
    if value == 1:
        return (1 << 31) - 1, 0
    pairs = (31 - value.bit_length()) // 2 - 1
    right = 11 - pairs
    scaled_up = (value << 2 * pairs) >> 1  # Q3.28, from 1/4 to 1
    half = divided_by_power(scaled_up, 1)
    x: Any = 1 << 28
    for _ in range(5):
        cube = _rescaled(high_product(high_product(x, x), x), 6)
        x = _rescaled(high_product((1 << 28) + (1 << 27), x) - high_product(half, cube), 3)
    found = int(high_product(x, 1518500250))
    return (found << -right, 0) if right < 0 else (found, -right)


def _rescaled(value: Any, bits: int) -> Any:
    """Return a product of Q3.28 numbers, with 3 more bits in front of the point for each, as Q3.28."""
    return np.clip(np.asarray(value) << bits, -(1 << 31), (1 << 31) - 1)


def _rsqrt(site: Site, inner: Scale, out: Scale) -> Int8:
    """Scale the inverse root of whole numbers; 0 has the greatest byte, what is below it the least."""
    multiplier, shift = site.factor(quantised_multiplier(1.0 / (math.sqrt(inner.scale) * out.scale)))
    made = []
    for value in range(-128 - inner.zero_point, 128 - inner.zero_point):
        if value <= 0:
            made.append(127 if value == 0 else -128)
            continue
        root, right = _inverse_root(value)
        data = scaled(1, root, right + _ROOT_BITS)
        made.append(int(np.clip(scaled(data, multiplier, shift - _ROOT_BITS) + out.zero_point, -128, 127)))
    return np.array(made, np.int8)


_ROOT_BITS = 20
"""The bits behind the point of an inverse root before it is scaled."""

TABLES: Mapping[str, Callable[[Site, Scale, Scale], Int8]] = {
    "ABS": _abs,
    "ELU": _looked_up(_elu),
    "EXP": _looked_up(lambda x: np.exp(x.astype(np.float64))),
    "GELU": _either_gelu,
    "LEAKY_RELU": _leaky_relu,
    "RELU": _relu("RELU"),
    "RELU6": _relu("RELU6"),
    "RELU_N1_TO_1": _relu("RELU_N1_TO_1"),
    "RSQRT": _rsqrt,
    "TANH": _tanh,
}
"""The maker of each operator's table, from its site and the scales of its input and output."""
