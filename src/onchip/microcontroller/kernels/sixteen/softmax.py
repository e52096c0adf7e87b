"""The kernels of softmax of 16-bit numbers, and of bytes to 16-bit numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onchip.microcontroller.int8.sixteen.softmax import (
    Softmax16,
    SoftmaxTo16,
    exponential_table,
    reciprocal_table,
)
from onchip.microcontroller.int8.sixteen.values import HIGHEST, LOWEST
from onchip.microcontroller.int8.softmax import SUM_BITS, exponentials
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr, Var
from onchip.microcontroller.kernels.numbers import number_at, put_number
from onchip.microcontroller.kernels.own_use import OwnUse
from onchip.microcontroller.kernels.softmax import reciprocal

__all__ = ["softmax16_use", "softmax_to16_use"]

HEAD = 2


@dataclass(frozen=True, kw_only=True)
class SoftmaxRow:
    """The parameters that a kernel is specialised on."""

    columns: int
    channels: int


def softmax16_use(layer: Softmax16) -> OwnUse:
    """Return the kernel of a layer."""
    _, _, columns, wide = layer.output_shape
    words = [layer.multiplier, layer.shift, *exponential_table(), *reciprocal_table()]
    return OwnUse("softmax16", _wide, SoftmaxRow(columns=columns, channels=wide // 2), words)


def _looked_up(k: Kernel, weights: Var, place: Expr, table: int) -> Expr:
    """Return a table's value at a place of 16 bits, on the line between two entries."""
    at = k.let("at", (place >> 7) + (256 + table))
    low, behind = k.constant(weights, at, "low"), k.constant(weights, at + 1, "behind")
    return k.let("value", low + (((behind - low) * (place & 0x7F) + 64) >> 7))


def _wide(name: str, shape: SoftmaxRow) -> Function:
    k = Kernel(name, f"Softmax of 16-bit numbers over {shape.channels} channels: pixels [x0, x1) of row y.")
    lines, out, x0, x1, y = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1"), k.number("y")
    weights = k.flash("weights")
    multiplier, shift = k.constant(weights, 0, "multiplier"), k.constant(weights, 1, "shift")
    for x in k.loop(x0, x1, name="x"):
        source = k.let("source", k.line(lines, 0) + (y * shape.columns + x) * (2 * shape.channels))
        made = k.let("made", out + x * (2 * shape.channels))
        greatest, total = k.RegAlloc("greatest", LOWEST), k.RegAlloc("total", 0)
        for c in k.loop(0, shape.channels, name="c"):
            k.set(greatest, k.most(greatest, number_at(k, source, c)))
        for c in k.loop(0, shape.channels, name="c"):
            apart = k.let(
                "apart", call("scaled", number_at(k, source, c) - greatest, multiplier, shift) + HIGHEST
            )
            place = k.let("place", k.least(k.most(apart, LOWEST), HIGHEST))
            value = _looked_up(k, weights, place, HEAD)
            k.set(total, total + value)
            put_number(k, made, c, value)
        headroom = k.let("headroom", call("leading_zeros", total))
        unit = k.let("unit", ((total << (headroom - 1)) + (1 << 13) >> 14) - ((1 << 15) + (1 << 16)))
        inside = k.let("inside", k.least(k.most(unit, LOWEST), HIGHEST))
        inverse = _looked_up(k, weights, inside, HEAD + len(exponential_table()))
        right = k.let("right", 31 - headroom)
        for c in k.loop(0, shape.channels, name="c"):
            share = k.let(
                "share", (number_at(k, made, c) * inverse + (k.let("one", 1) << (right - 1))) >> right
            )
            put_number(k, made, c, k.least(k.most(share, 0), HIGHEST))
    return k.finish()


def softmax_to16_use(layer: SoftmaxTo16) -> OwnUse:
    """Return the kernel of a layer; its constants are those of int8's softmax."""
    counted = min(255, -layer.diff_min) + 1
    table = exponentials(-np.arange(counted), layer.multiplier, layer.shift)
    _, _, columns, wide = layer.output_shape
    shape = SoftmaxRow(columns=columns, channels=wide // 2)
    return OwnUse("softmax_to16", _to16, shape, [counted, 0, *(int(value) for value in table)])


def _to16(name: str, shape: SoftmaxRow) -> Function:
    k = Kernel(name, f"Softmax over {shape.channels} channels, shares of 16 bits: pixels [x0, x1) of row y.")
    lines, out, x0, x1, y = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1"), k.number("y")
    weights = k.flash("weights")
    counted = k.constant(weights, 0, "counted")
    for x in k.loop(x0, x1, name="x"):
        source = k.let("source", k.line(lines, 0) + (y * shape.columns + x) * shape.channels)
        made = k.let("made", out + x * (2 * shape.channels))
        greatest, total = k.RegAlloc("greatest", -128), k.RegAlloc("total", 0)
        for c in k.loop(0, shape.channels, name="c"):
            k.set(greatest, k.most(greatest, k.RAMLoad(source, c, Kind.BYTE, name="byte")))
        for c in k.loop(0, shape.channels, name="c"):
            below = k.let("below", greatest - k.RAMLoad(source, c, Kind.BYTE, name="byte"))
            with k.when(below < counted):
                e = k.constant(weights, below + HEAD, "e")
                k.set(total, total + call("divide_by_power", e, SUM_BITS))
        headroom = k.let("headroom", call("leading_zeros", total))
        inverse = k.let("inverse", reciprocal(k, total, headroom))
        right = k.let("right", SUM_BITS + 31 - 16 - headroom)
        for c in k.loop(0, shape.channels, name="c"):
            below = k.let("below", greatest - k.RAMLoad(source, c, Kind.BYTE, name="byte"))
            share = k.RegAlloc("share", 0)
            with k.when((below < counted) & (right < 32)):
                product = call("doubled_high", inverse, k.constant(weights, below + HEAD, "e"))
                k.set(share, call("divide_by_power", product, right))
            put_number(k, made, c, k.least(k.most(share + LOWEST, LOWEST), HIGHEST))
    return k.finish()
