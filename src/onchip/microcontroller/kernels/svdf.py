"""The kernels of SVDF: the new state of a step, and the sums over it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.arithmetic import wrapped
from onchip.microcontroller.int8.svdf import SvdfState, SvdfSum
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr, Type, as_expr
from onchip.microcontroller.kernels.numbers import number_at, put_number
from onchip.microcontroller.kernels.own_use import OwnUse
from onchip.microcontroller.kernels.runs import QUAD, one_sum, one_words, padded_rows, quad_sums, quad_words

__all__ = ["svdf_state_use", "svdf_sum_use"]

STATE_WORDS, SUM_WORDS = 3, 3
"""Words in front of the weights."""


@dataclass(frozen=True, kw_only=True)
class SvdfShape:
    """The parameters that both kernels are specialised on."""

    inputs: int
    filters: int
    memory: int
    width: int
    small: bool = False
    """True if no sum reaches 2**30, and the factor is no shift to the left."""
    forms: Forms = "packed"


def _small(rows: Any, first: Any, most: int, shift: int) -> bool:
    """Return whether sums of rows of weights by numbers up to `most` stay below 2**30, with such a shift."""
    bound = np.abs(rows.astype(np.int64)).sum(axis=1) * most + np.abs(first.astype(np.int64))
    return shift <= 0 and bool((bound < 1 << 30).all())


def _scaled(shape: SvdfShape, value: Expr, multiplier: Expr, shift: Expr) -> Expr:
    return call("scaled_down" if shape.small else "scaled", value, multiplier, shift)


def svdf_state_use(layer: SvdfState, forms: Forms = "packed") -> OwnUse:
    """Return the kernel of a step: sums by fours, the input's zero point in what they begin with."""
    filters, inputs = layer.weights.shape
    rows = padded_rows(layer.weights)
    first = wrapped(layer.input_offset * rows.astype(np.int64).sum(axis=1))
    small = _small(rows, first, 128, layer.shift)
    words = [layer.multiplier, -layer.shift if small else layer.shift, layer.zero_point]
    for f in range(0, filters, QUAD):
        words += [*(int(v) for v in first[f : f + QUAD]), *quad_words(rows[f : f + QUAD], forms)]
    shape = SvdfShape(
        inputs=inputs, filters=filters, memory=layer.memory, width=layer.width, small=small, forms=forms
    )
    return OwnUse("svdf_state", _state, shape, words, by_forms=partial(svdf_state_use, layer))


def _state(name: str, shape: SvdfShape) -> Function:
    k = Kernel(name, f"The state of {shape.filters} filters: the old one without the oldest, and the newest.")
    lines, out, weights = k.lines("lines"), k.output("out"), k.flash("weights")
    multiplier, shift, zero = (
        k.constant(weights, i, name) for i, name in enumerate(("multiplier", "shift", "zero_point"))
    )
    x, old = k.let("x", k.line(lines, 0)), k.let("old", k.line(lines, 1))
    w = k.RegAlloc("w", weights + STATE_WORDS)
    size = shape.memory * shape.width

    def filters(f: Expr, count: int) -> None:
        first = k.FlashLoad(w, *(f"first{c}" for c in range(QUAD)))
        sums = quad_sums(k, shape.forms, x, w, shape.inputs, first)
        for c in range(count):
            result = k.let("result", _scaled(shape, sums[c], multiplier, shift))
            most = (1 << (8 * shape.width - 1)) - 1
            held = k.let("held", k.least(k.most(result, -most - 1), most) + zero)
            row = k.let("row", (f + c) * size)
            moved = size - shape.width
            for i in k.loop(0, moved - moved % 4, 4, name="i"):
                four = k.RAMLoad(old, row + i + shape.width, Kind.INT, name="four")
                k.RAMStore(out, row + i, four, Kind.INT)
            for last in range(moved - moved % 4, moved):
                k.RAMStore(out, row + last, k.RAMLoad(old, row + last + shape.width, Kind.BYTE, name="byte"))
            put_number(k, out + row, shape.memory - 1, held, shape.width)

    whole = shape.filters - shape.filters % QUAD
    for f in k.loop(0, whole, QUAD, name="f"):
        filters(f, QUAD)
    if shape.filters % QUAD:
        filters(as_expr(whole), shape.filters % QUAD)
    return k.finish()


def svdf_sum_use(layer: SvdfSum, forms: Forms = "packed") -> OwnUse:
    """Return the kernel of the sums over the state; its zero point is in what they begin with."""
    filters, memory = layer.weights.shape
    units = layer.bias.size
    rows = layer.weights.reshape(units, -1)
    first = wrapped(layer.bias + layer.state_offset * rows.astype(np.int64).sum(axis=1))
    small = _small(rows, first, 1 << (8 * layer.width - 1), layer.shift)
    words = [layer.multiplier, -layer.shift if small else layer.shift, layer.output_offset]
    for start, row in zip(first, rows, strict=True):
        words.append(int(start))
        if layer.width == 1:
            words += one_words(row.astype(np.int8))
        else:
            even = row.size - row.size % 2
            words += [int(v) for v in row[:even].astype("<i2").view("<i4")]
            words += [int(v) for v in row[even:]]
    shape = SvdfShape(
        inputs=units, filters=filters, memory=memory, width=layer.width, small=small, forms=forms
    )
    return OwnUse("svdf_sum", _sum, shape, words, by_forms=partial(svdf_sum_use, layer))


def _sum(name: str, shape: SvdfShape) -> Function:
    units, each = shape.inputs, shape.filters // shape.inputs * shape.memory
    k = Kernel(name, f"The sums over the state of {shape.filters} filters: {units} units.")
    lines, out, weights = k.lines("lines"), k.output("out"), k.flash("weights")
    multiplier, shift, output_offset = (
        k.constant(weights, i, name) for i, name in enumerate(("multiplier", "shift", "output_offset"))
    )
    state, w = k.RegAlloc("state", k.line(lines, 0)), k.RegAlloc("w", weights + SUM_WORDS)
    for u in k.loop(0, units, name="u"):
        (first,) = k.FlashLoad(w, "first")
        if shape.width == 1:
            total = one_sum(k, shape.forms, state, w, each, first)
            k.set(state, state + each)
        else:
            total = k.RegAlloc("total", first)
            for _ in k.loop(0, each // 2, name="pair", unroll=4):
                (pair,) = k.FlashLoad(w, "w2", type=Type.PAIR)
                if shape.forms == "narrow":
                    for i, half in enumerate(("low_half", "high_half")):
                        k.set(total, call("mla", number_at(k, state, i), call(half, pair), total))
                else:
                    k.set(total, call("dot2", k.RAMLoad(state, 0, Kind.PAIR, name="kept"), pair, total))
                k.set(state, state + 4)
            if each % 2:
                (last,) = k.FlashLoad(w, "last")
                k.set(total, call("mla", number_at(k, state, 0), last, total))
                k.set(state, state + 2)
        y = k.let("y", _scaled(shape, total, multiplier, shift) + output_offset)
        k.RAMStore(out, u, k.least(k.most(y, -128), 127))
    return k.finish()
