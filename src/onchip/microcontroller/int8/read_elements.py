"""Element-wise functions as layers: of two maps, by a table, over channels."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from onchip.microcontroller.int8.arithmetic import quantised_multiplier
from onchip.microcontroller.int8.factors import (
    Scale,
    add_factors,
    channel_factor,
    hard_swish_table,
    logistic_table,
    mul_factor,
    prelu_factors,
    quantise_table,
    softmax_factors,
)
from onchip.microcontroller.int8.model import (
    Add,
    Extremum,
    HardSwish,
    Int8,
    Layer,
    Logistic,
    Mul,
    PReLU,
    Quantize,
    Shape,
    Softmax,
    SquaredDifference,
    Sub,
    frozen_array,
)
from onchip.microcontroller.int8.read_site import INT8, Site, Value

__all__ = [
    "add",
    "hard_swish",
    "logistic",
    "maximum",
    "minimum",
    "mul",
    "prelu",
    "quantize",
    "quantize_from",
    "softmax",
    "squared_difference",
    "sub",
]

SHARE = 1 / 256  # the scale of values between 0 and 1
MOST_CLASSES = 4095
"""The most channels of a softmax: it sums exponentials in 12 bits before the point."""


def _pair(site: Site) -> tuple[dict[str, Any], tuple[int, int]]:
    """Return the head of a layer of two operands, and their positions, the broadcast one last."""
    made = site.made()
    held = [p for p in (0, 1) if site.row(p).data is not None]
    if len(held) == 2:
        raise site.refuse("has two constant operands")
    if held:
        [small] = held
        values = whole(site, site.constant(small, INT8, "a constant operand"), made)
        _spread(site, site.shape(values.shape, site.row(small).name), made)
        head = site.head(1 - small)
        head["constant"] = frozen_array(values.reshape(four_axes(values.shape)), np.int8)
    else:
        small = 0 if site.seen(0) != made else 1
        _spread(site, site.seen(small), made)
        head = site.head(1 - small, small)
    if head["input_shapes"][0] != made:
        raise site.refuse(f"makes {list(made)} of {list(head['input_shapes'][0])} and a smaller operand")
    return head, (1 - small, small)


def whole(site: Site, values: Int8, made: Shape) -> Int8:
    """Return a constant operand in the result's shape, unless it is a pixel or a number for all."""
    shape = site.shape(values.shape, "a constant operand")
    if shape in (made, (1, 1, 1, made[3]), (1, 1, 1, 1)):
        return values
    if any(size not in (1, full) for size, full in zip(shape, made, strict=True)):
        return values
    return np.broadcast_to(values.reshape(shape), made)


def four_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * (4 - len(shape)) + shape


def _spread(site: Site, small: Shape, made: Shape) -> None:
    if small not in (made, (1, 1, 1, made[3]), (1, 1, 1, 1)):
        raise site.refuse(
            f"spreads an operand of shape {list(small)} over {list(made)}: only one pixel or element can be"
        )


def _sum(site: Site, head: dict[str, Any], first: int, second: int) -> dict[str, Any]:
    """Return the fields of a sum of the operands at two positions."""
    a, b, out = site.scale(first), site.scale(second), site.out_scale()
    found = add_factors(a.scale, b.scale, out.scale)
    if found.output[1] > 0:
        raise site.refuse(f"adds operands of scale {max(a.scale, b.scale):g} to one of {out.scale:g}")
    low, high = site.bounds()
    return dict(
        **head,
        input_offsets=(-a.zero_point, -b.zero_point),
        multipliers=(found.inputs[0][0], found.inputs[1][0]),
        shifts=(found.inputs[0][1], found.inputs[1][1]),
        left_shift=found.left_shift,
        multiplier=found.output[0],
        shift=found.output[1],
        output_offset=out.zero_point,
        low=low,
        high=high,
    )


def add(site: Site) -> Layer:
    head, (first, second) = _pair(site)
    return Add(**_sum(site, head, first, second))


def sub(site: Site) -> Layer:
    head, (first, second) = _pair(site)
    return Sub(**_sum(site, head, first, second), turned=first == 1)


def squared_difference(site: Site) -> Layer:
    """Return a square of a difference: operands on twice the larger scale, 7 bits up, then squared."""
    head, (first, second) = _pair(site)
    a, b, out = site.scale(first), site.scale(second), site.out_scale()
    twice = 2 * max(a.scale, b.scale)
    factors = [quantised_multiplier(x.scale / twice) for x in (a, b)]
    output = site.factor(
        quantised_multiplier(twice * twice / float(np.float32((1 << 14) * np.float32(out.scale))))
    )
    return SquaredDifference(
        **head,
        input_offsets=(-a.zero_point, -b.zero_point),
        multipliers=(factors[0][0], factors[1][0]),
        shifts=(factors[0][1], factors[1][1]),
        left_shift=7,
        multiplier=output[0],
        shift=output[1],
        output_offset=out.zero_point,
        low=-128,
        high=127,
    )


def _extremum(site: Site, greatest: bool) -> Layer:
    """Return the smaller or greater of two: bytes are compared as they are, whatever their scales."""
    head, _ = _pair(site)
    return Extremum(**head, greatest=greatest)


def maximum(site: Site) -> Layer:
    return _extremum(site, True)


def minimum(site: Site) -> Layer:
    return _extremum(site, False)


def mul(site: Site) -> Layer:
    head, (first, second) = _pair(site)
    a, b, out = site.scale(first), site.scale(second), site.out_scale()
    multiplier, shift = site.factor(mul_factor(site.scale(0).scale, site.scale(1).scale, out.scale))
    low, high = site.bounds()
    return Mul(
        **head,
        input_offsets=(-a.zero_point, -b.zero_point),
        multiplier=multiplier,
        shift=shift,
        output_offset=out.zero_point,
        low=low,
        high=high,
    )


def softmax(site: Site) -> Layer:
    seen = site.seen(0)
    if site.out_scale() != (SHARE, -128):
        raise site.refuse(f"makes shares on scale {site.out_scale().scale:g}, not 1/256 from -128")
    if seen[3] > MOST_CLASSES:
        raise site.refuse(f"is over {seen[3]:,} channels; its sums hold {MOST_CLASSES:,}")
    beta = site.node.reals.get("Beta", 0.0)
    try:
        multiplier, shift, diff_min = softmax_factors(site.scale(0).scale, beta)
    except ValueError as problem:
        raise site.refuse(str(problem)) from None
    return Softmax(**site.head(0), multiplier=multiplier, shift=shift, diff_min=diff_min)


def logistic(site: Site) -> Layer:
    if site.out_scale() != (SHARE, -128):
        raise site.refuse(f"makes shares on scale {site.out_scale().scale:g}, not 1/256 from -128")
    return Logistic(**site.head(0), table=logistic_table(site.scale(0)))


def hard_swish(site: Site) -> Layer:
    try:
        table = hard_swish_table(site.scale(0), site.out_scale())
    except ValueError as problem:
        raise site.refuse(str(problem)) from None
    return HardSwish(**site.head(0), table=table)


def quantize(site: Site) -> Layer:
    """Return a change of scale; from and to floats it stands at the network's edge and is no layer."""
    return quantize_from(site, site.value(0), site.scale(0), site.out_scale())


def quantize_from(site: Site, value: Value, inner: Scale, out: Scale) -> Quantize:
    """Return the change of a value from one scale to another."""
    site.factor(channel_factor(inner.scale, 1.0, out.scale))
    shape = site.made()
    if prod(value.shape) != prod(shape):
        raise site.refuse(f"makes {list(site.out.shape)} of {list(value.shape)}")
    return Quantize(
        name=site.node.label,
        inputs=(value.tensor,),
        output=site.output,
        input_shapes=(shape,),
        output_shape=shape,
        table=quantise_table(inner, out),
    )


def prelu(site: Site) -> Layer:
    seen = site.seen(0)
    alpha = site.constant(1, INT8, "slopes")
    if alpha.size not in (1, seen[3]) or prod(alpha.shape[:-1]) != 1:
        raise site.refuse(
            f"has slopes of shape {list(alpha.shape)}: one for all or one a channel can be read"
        )
    inner, slope, out = site.scale(0), site.scale(1), site.out_scale()
    above, below = prelu_factors(inner.scale, slope.scale, out.scale)
    above, below = site.factor(above), site.factor(below)
    return PReLU(
        **site.head(0),
        alpha=frozen_array(alpha.reshape(-1), np.int8),
        input_offset=-inner.zero_point,
        alpha_offset=-slope.zero_point,
        multiplier=above[0],
        shift=above[1],
        multiplier_below=below[0],
        shift_below=below[1],
        output_offset=out.zero_point,
    )
