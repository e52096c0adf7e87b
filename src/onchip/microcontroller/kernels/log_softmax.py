"""The kernel of LOG_SOFTMAX, with a table of the exponentials of all differences that two bytes can have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onchip.microcontroller.int8.log_softmax import (
    ALPHA,
    LOG_2,
    QUARTER,
    ROOT_HALF,
    ROOT_ROOT_HALF,
    LogSoftmax,
)
from onchip.microcontroller.int8.softmax import ONE, SUM_BITS, exponentials
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr, Var
from onchip.microcontroller.kernels.own_use import OwnUse
from onchip.microcontroller.kernels.softmax import inverse_of_half

__all__ = ["log_softmax_use"]

HEAD = 6


@dataclass(frozen=True, kw_only=True)
class LogSoftmaxShape:
    """The parameters that a kernel is specialised on."""

    columns: int
    channels: int


def log_softmax_use(layer: LogSoftmax) -> OwnUse:
    """Return the kernel of a layer."""
    counted = min(255, -layer.diff_min) + 1
    table = exponentials(-np.arange(counted), layer.multiplier, layer.shift)
    words = [counted, layer.multiplier, layer.shift, *layer.back, layer.diff_min - 1]
    _, _, columns, channels = layer.output_shape
    shape = LogSoftmaxShape(columns=columns, channels=channels)
    return OwnUse("log_softmax", _kernel, shape, [*words, *(int(value) for value in table)])


def _kernel(name: str, shape: LogSoftmaxShape) -> Function:
    k = Kernel(name, f"Logarithms of a softmax over {shape.channels} channels: pixels [x0, x1) of row y.")
    lines, out, x0, x1, y = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1"), k.number("y")
    weights = k.flash("weights")
    names = "counted multiplier shift back back_shift below_all"
    counted, multiplier, shift, back, back_shift, below_all = (
        k.constant(weights, i, name) for i, name in enumerate(names.split())
    )
    for x in k.loop(x0, x1, name="x"):
        row = k.let("row", k.line(lines, 0) + (y * shape.columns + x) * shape.channels)
        greatest, total = k.RegAlloc("greatest", -128), k.RegAlloc("total", 0)
        for c in k.loop(0, shape.channels, name="c"):
            k.set(greatest, k.most(greatest, k.RAMLoad(row, c, Kind.BYTE, name="byte")))
        for c in k.loop(0, shape.channels, name="c"):
            below = k.let("below", greatest - k.RAMLoad(row, c, Kind.BYTE, name="byte"))
            with k.when(below < counted):
                e = k.constant(weights, below + HEAD, "e")
                k.set(total, total + call("divide_by_power", e, SUM_BITS))
        log = _log(k, total)
        least = k.let("least", k.most(below_all, call("scaled", log + -(1 << 31), back, back_shift)))
        for c in k.loop(0, shape.channels, name="c"):
            apart = k.let("apart", k.RAMLoad(row, c, Kind.BYTE, name="byte") - greatest)
            made = k.RegAlloc("made", -128)
            with k.when(apart > least):
                moved = call("scaled", apart, multiplier, shift) - log
                k.set(made, k.saturate(call("divide_by_power", moved, 22) + 127))
            k.RAMStore(out, x * shape.channels + c, made)
    return k.finish()


def _log(k: Kernel, total: Var) -> Expr:
    """Emit the logarithm of a Q12.19 number from 1 on, in Q5.26."""

    def product(name: str, a: Expr | int, b: Expr | int) -> Var:
        return k.let(name, call("doubled_high", a, b))

    def bounded(name: str, value: Expr, fits: Expr, moved: Expr) -> Var:
        """Emit `moved`, or the greatest number where it does not fit."""
        found = k.RegAlloc(name, ONE)
        with k.when(fits):
            k.set(found, moved)
        return found

    above = k.let("above", call("leading_zeros", total))
    half = product("half", total << (above - 1), ROOT_HALF)
    first = bounded("first", half, half < 1 << 30, half << 1)
    below = k.let("below_one", call("leading_zeros", product("other", total, ROOT_HALF)) - 1)
    second = bounded("second", total, total <= (k.let("one", ONE) >> below), total << below)
    r = k.let("r", k.least(first, second))
    power = k.let("power", k.most(((12 - above) << 25) + QUARTER, ((12 - below) << 25) - QUARTER))
    p = k.let("p", (r >> 1) + (ROOT_ROOT_HALF >> 1) + (((r & 1) + (ROOT_ROOT_HALF & 1) + 1) >> 1))
    q = k.let("q", (r - ROOT_ROOT_HALF) << 1)
    square = product("square", q, q)
    number = k.let("number", product("n", q, r) + product("m", product("l", q, square), ALPHA["n"]))
    inner = k.let("inner", q + ALPHA["i"] + product("d", square, ALPHA["d"]))
    less_one = k.let("less_one", product("e", p, inner) + product("f", q, ALPHA["f"]))
    inverse = inverse_of_half(k, k.let("half_more", (less_one >> 1) + (1 << 30)))
    rest = product("rest", call("divide_by_power", number, 6), inverse)
    return k.let("log", (product("powers", power, LOG_2) + rest) << 1)
