"""Softmax in integers, with a table of the exponentials of all differences that two bytes can have.

The reciprocal of their sum is three steps of Newton's method in fixed point. The bytes are those of
`onchip.microcontroller.int8.softmax`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onchip.microcontroller.int8.model import Softmax
from onchip.microcontroller.int8.softmax import (
    FORTY_EIGHT_17THS,
    MINUS_THIRTY_TWO_17THS,
    ONE,
    SUM_BITS,
    exponentials,
)
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr

__all__ = ["SoftmaxShape", "inverse_of_half", "reciprocal", "softmax_kernel", "softmax_words"]

HEAD = 1


@dataclass(frozen=True, kw_only=True)
class SoftmaxShape:
    """The parameters that a kernel is specialised on."""

    channels: int
    reverse: bool = False
    in_step: int = 0
    out_step: int = 0


def softmax_words(layer: Softmax) -> list[int]:
    """Return the layer's constants: the number of differences that count, then the exponential of each."""
    counted = min(255, -layer.diff_min) + 1
    table = exponentials(-np.arange(counted), layer.multiplier, layer.shift)
    return [counted, *(int(value) for value in table)]


def softmax_kernel(name: str, shape: SoftmaxShape) -> Function:
    """Return the kernel: output pixels [x0, x1) of a line, each over its channels."""
    k = Kernel(name, f"Softmax over {shape.channels} channels: pixels [x0, x1) of a line.")
    lines, out, x0, x1 = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1")
    weights = k.flash("weights")
    counted = k.constant(weights, 0, "counted")
    for x in k.span(x0, x1, reverse=shape.reverse, name="x"):
        row = k.let("row", k.line(lines, 0) + x * (shape.in_step or shape.channels))
        o = k.let("o", out + x * (shape.out_step or shape.channels))
        greatest = k.RegAlloc("greatest", -128)
        for c in k.loop(0, shape.channels, name="c"):
            k.set(greatest, k.most(greatest, k.RAMLoad(row, c, Kind.BYTE, name="byte")))
        total = k.RegAlloc("total", 0)
        for c in k.loop(0, shape.channels, name="c"):
            below = k.let("below", greatest - k.RAMLoad(row, c, Kind.BYTE, name="byte"))
            with k.when(below < counted):
                k.set(
                    total, total + call("divide_by_power", k.constant(weights, below + HEAD, "e"), SUM_BITS)
                )
        headroom = k.let("headroom", call("leading_zeros", total))
        inverse = k.let("inverse", reciprocal(k, total, headroom))
        right = k.let("right", SUM_BITS + 31 - 8 - headroom)
        for c in k.span(0, shape.channels, reverse=shape.reverse, name="c"):
            below = k.let("below", greatest - k.RAMLoad(row, c, Kind.BYTE, name="byte"))
            share = k.RegAlloc("share", 0)
            with k.when((below < counted) & (right < 32)):
                product = call("doubled_high", inverse, k.constant(weights, below + HEAD, "e"))
                k.set(share, call("divide_by_power", product, right))
            k.RAMStore(o, c, k.saturate(share - 128))
    return k.finish()


def reciprocal(k: Kernel, total: Expr, headroom: Expr) -> Expr:
    """Return 1 / total, from 1/2 to 1, in 31 bits."""
    # total << headroom has its highest bit set: (1 + x) / 2 of it is half of the 32 bits.
    return inverse_of_half(k, k.let("half", (((total << headroom) & 0x7FFFFFFF) >> 1) + (1 << 30)))


def inverse_of_half(k: Kernel, half: Expr) -> Expr:
    """Return 1 / (1 + x) in 31 bits, of (1 + x) / 2 from 1/2 to 1."""
    guess = k.RegAlloc("guess", call("doubled_high", half, MINUS_THIRTY_TWO_17THS) + FORTY_EIGHT_17THS)
    for _ in k.loop(0, 3, name="turn"):
        error = k.let("error", (1 << 29) - call("doubled_high", half, guess))
        k.set(guess, guess + (call("doubled_high", guess, error) * 4))
    result = k.RegAlloc("result", ONE)
    with k.when(guess < 1 << 30):
        k.set(result, guess << 1)
    return result
