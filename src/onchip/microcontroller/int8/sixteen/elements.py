"""Functions of 16-bit numbers element by element: of two maps, piecewise linear, and of a curve's table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log2, prod
from typing import Any, Literal

import numpy as np

from onchip.microcontroller.int8.arithmetic import Whole, quantised_multiplier, scaled, wrapped
from onchip.microcontroller.int8.factors import Factor, activation_bounds, add_factors, mul_factor
from onchip.microcontroller.int8.model import Int8, Own, Shape, frozen_array
from onchip.microcontroller.int8.read_site import INT8, INT16, Site
from onchip.microcontroller.int8.sigmoid import sigmoid_table
from onchip.microcontroller.int8.sixteen.values import (
    HIGHEST,
    LOWEST,
    clamped_bytes,
    in_bytes,
    numbers,
    to_bytes,
)

__all__ = ["Curve16", "Does16", "Linear16", "Pair16", "curve", "leaky_relu", "pair", "quantize", "relu"]

Does16 = Literal["add", "sub", "sub_turned", "mul", "least", "most"]
UP = 15
"""Bits by which operands of a sum are moved up: 65,535 moved by them fits 32 bits."""
SAME: Factor = (1 << 30, 1)
"""The factor that changes nothing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pair16(Own):
    """A function of two maps, computed as in `Add` and `Mul` of int8, with 15 bits up in sums.

    The second operand may be `constant` (then there is one input), one pixel or one number for all.
    """

    does: Does16
    first: Factor = SAME
    second: Factor = SAME
    factor: Factor = SAME
    low: int = LOWEST
    high: int = HIGHEST
    constant: Int8 | None = None

    def compute(self, seen: Sequence[Int8]) -> Int8:
        a, b = numbers(seen[0]), numbers(seen[1] if self.constant is None else self.constant)
        match self.does:
            case "mul":
                found = scaled(a * b, *self.factor)
            case "least":
                return to_bytes(np.minimum(a, b))
            case "most":
                return to_bytes(np.maximum(a, b))
            case _:
                one, other = scaled(a << UP, *self.first), scaled(b << UP, *self.second)
                total = {"add": one + other, "sub": one - other, "sub_turned": other - one}[self.does]
                found = scaled(wrapped(total), *self.factor)
        return clamped_bytes(found, self.low, self.high)


def pair(site: Site) -> Pair16:
    """Return an ADD, SUB, MUL, MAXIMUM or MINIMUM as a layer."""
    made = site.made()
    held = [p for p in (0, 1) if site.row(p).data is not None]
    if len(held) == 2:
        raise site.refuse("has two constant operands")
    constant = None
    if held:
        [small] = held
        values = site.constant(small, INT16, "a constant operand")
        shape = site.shape(values.shape, site.row(small).name)
        constant = frozen_array(to_bytes(values.reshape(shape)), np.int8)
    else:
        small = 0 if site.seen(0) != made else 1
        shape = site.seen(small)
    if site.seen(1 - small) != made or shape not in (made, (1, 1, 1, made[3]), (1, 1, 1, 1)):
        raise site.refuse(
            f"makes {list(made)} of {list(site.seen(1 - small))} and {list(shape)}: only one pixel or number"
            " can be spread"
        )
    positions = (1 - small,) if held else (1 - small, small)
    return Pair16(
        name=site.node.label,
        inputs=tuple(site.value(p).tensor for p in positions),
        output=site.output,
        input_shapes=tuple(in_bytes(site.seen(p)) for p in positions),
        output_shape=in_bytes(made),
        constant=constant,
        **_factors(site, 1 - small, small),
    )


def _factors(site: Site, first: int, second: int) -> dict[str, Any]:
    a, b, out = (s.scale for s in (site.scale(first), site.scale(second), site.out_scale()))
    match site.node.type:
        case "MAXIMUM" | "MINIMUM":
            site.same_scale(first, second)
            return {"does": "most" if site.node.type == "MAXIMUM" else "least"}
        case "MUL":
            low, high = site.bounds()
            return {"does": "mul", "factor": site.factor(mul_factor(a, b, out)), "low": low, "high": high}
        case _:
            sums = add_factors(a, b, out, UP)
            last, does = sums.output, "add"
            if site.node.type == "SUB":
                does = "sub" if first == 0 else "sub_turned"
    if last[1] > 0:
        raise site.refuse(f"adds operands of scale {max(a, b):g} to one of {out:g}")
    low, high = site.bounds()
    return {
        "does": does,
        "first": sums.inputs[0],
        "second": sums.inputs[1],
        "factor": last,
        "low": low,
        "high": high,
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class Linear16(Own):
    """y = clamp(scaled(x - zero) + output zero): one factor from zero on, another below it.

    `read` and `made` are the bytes of a number of the input and of the output; `turned` below zero means that
    the result there is negated.
    """

    read: int
    made: int
    zero: int
    above: Factor
    below: Factor
    turned: bool
    output_zero: int
    low: int
    high: int

    def compute(self, seen: Sequence[Int8]) -> Int8:
        x = (numbers(seen[0]) if self.read == 2 else seen[0].astype(np.int64)) - self.zero
        down = scaled(x, *self.below)
        found = np.where(x >= 0, scaled(x, *self.above), -down if self.turned else down) + self.output_zero
        if self.made == 2:
            return clamped_bytes(found, self.low, self.high)
        held: Int8 = np.clip(found, self.low, self.high).astype(np.int8)
        return held


def _linear(site: Site, above: Factor, below: Factor, low: int, high: int) -> Linear16:
    read, made = (2 if row.element == INT16 else 1 for row in (site.row(0), site.out))
    value, shape = site.value(0), site.made()
    if prod(value.shape) != prod(shape):
        raise site.refuse(f"makes {list(site.out.shape)} of {list(value.shape)}")
    multiplier, shift = site.factor(below)
    return Linear16(
        name=site.node.label,
        inputs=(value.tensor,),
        output=site.output,
        input_shapes=(_bytes_of(shape, read),),
        output_shape=_bytes_of(shape, made),
        read=read,
        made=made,
        zero=site.row_scale(site.row(0)).zero_point,
        above=site.factor(above),
        below=(abs(multiplier), shift),
        turned=multiplier < 0,
        output_zero=site.row_scale(site.out).zero_point,
        low=low,
        high=high,
    )


def _bytes_of(shape: Shape, width: int) -> Shape:
    return in_bytes(shape) if width == 2 else shape


def quantize(site: Site) -> Linear16:
    """Return a change of scale, from or to numbers of 16 bits."""
    if {site.row(0).element, site.out.element} - {INT8, INT16}:
        raise site.refuse(f"makes {site.out.stated} of {site.row(0).stated}, which no kernel does")
    factor = quantised_multiplier(site.row_scale(site.row(0)).scale / site.row_scale(site.out).scale)
    low, high = (LOWEST, HIGHEST) if site.out.element == INT16 else (-128, 127)
    return _linear(site, factor, factor, low, high)


def leaky_relu(site: Site) -> Linear16:
    inner, out = site.scale(0).scale, site.out_scale().scale
    alpha = float(np.float32(site.node.reals.get("Alpha", 0.0)))
    return _linear(
        site, quantised_multiplier(inner / out), quantised_multiplier(inner * alpha / out), LOWEST, HIGHEST
    )


def relu(site: Site) -> Linear16:
    """Return a RELU, which changes scale, or a RELU6, which leaves numbers between 0 and 6 as they are."""
    name = site.node.type
    if name == "RELU6":
        site.same_scale(0)
    ratio = site.scale(0).scale / site.out_scale().scale
    try:
        low, high = activation_bounds(name, site.out_scale(), LOWEST, HIGHEST)
    except (ValueError, OverflowError) as problem:
        raise site.refuse(str(problem)) from None
    factor = SAME if name == "RELU6" else quantised_multiplier(ratio)
    return _linear(site, factor, factor, low, high)


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve16(Own):
    """A sigmoid or a tanh by one table of 256 and the line between two entries.

    The place in the table is (x * multiplier + half) >> right, with half of 2**right.
    """

    does: Literal["sigmoid", "tanh"]
    multiplier: int
    right: int

    def compute(self, seen: Sequence[Int8]) -> Int8:
        half = 1 << (self.right - 1) if self.right else 0
        x = wrapped(numbers(seen[0]) * self.multiplier + half) >> self.right
        return to_bytes(_sigmoid(x) if self.does == "sigmoid" else _tanh(x))


def _line(place: Whole, bits: int, most: int) -> Whole:
    table = np.array([*sigmoid_table(), 0], np.int64)
    entry = np.minimum(place >> bits, 255)
    low, high = table[entry], table[entry + 1]
    return np.where(entry >= 255, most, (low << bits) + (place & ((1 << bits) - 1)) * (high - low))


def _sigmoid(x: Whole) -> Whole:
    found = _line(np.abs(x), 9, 0x7FFF << 10)
    return np.where(x >= 0, found + (1 << 9), (1 << 25) - found + (1 << 9) - 1) >> 10


def _tanh(x: Whole) -> Whole:
    found = _line(np.abs(x), 8, 0xFFFF << 8)
    return np.where(x >= 0, found - (1 << 23) + (1 << 7), -found + (1 << 23) + (1 << 7) - 1) >> 8


def curve(site: Site) -> Curve16:
    """Return a LOGISTIC or a TANH as a layer."""
    if abs(site.out_scale().scale * (1 << 15) - 1) > 1e-3:
        raise site.refuse(f"makes its values on scale {site.out_scale().scale:g}, not 1/32768")
    does: Literal["sigmoid", "tanh"] = "sigmoid" if site.node.type == "LOGISTIC" else "tanh"
    multiplier, right = _place(site, 1 if does == "tanh" else 0)
    shape = in_bytes(site.made())
    head = {**site.head(0), "input_shapes": (in_bytes(site.seen(0)),), "output_shape": shape}
    return Curve16(**head, does=does, multiplier=multiplier, right=right)


def _place(site: Site, most_up: int) -> tuple[int, int]:
    """Return the multiplier and the shift from the input's scale to the table's, 1 / (3 * 4096)."""
    scale = site.scale(0).scale
    power = log2(scale)
    up = 12 + round(power)
    if isfinite(power) and abs(power - round(power)) < 1e-3 and 0 <= up <= most_up:
        return 3 << up, 0
    wanted, right = scale * 4096.0 * 3.0, 0
    while wanted <= 32767.0 / 2.0 and right <= 30:
        right, wanted = right + 1, wanted * 2.0
    if wanted > 32767:
        raise site.refuse(f"has an input of scale {scale:g}, which its table does not reach")
    return int(wanted), right
