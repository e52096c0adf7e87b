"""Depthwise convolutions with vectors: eight channels of a pixel at a time, tap by tap.

A product of two bytes fits sixteen bits, and so do two of them as long as no weight is -128: taps are made in
pairs, eight products at a time, and added to sums of 32 bits, those of even channels apart from those of odd
ones. Of a window that hangs over an edge only the taps inside are made, one by one, the input's zero point
added to each byte. Channels beyond whole eights are made as the last eight once more: a plan lets a step
write over its own input only with its last four channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from onchip.microcontroller.kernel_language import Kernel, Kind
from onchip.microcontroller.kernel_language.builder import Value
from onchip.microcontroller.kernel_language.ir import Expr, Var, as_expr
from onchip.microcontroller.kernels.depthwise_constants import DEPTHWISE_HEAD, VECTOR_CHUNK, DepthwiseShape
from onchip.microcontroller.kernels.scale import Scaler

__all__ = ["Parts", "by_vectors"]

LANES = 4
TAPS = 4 * LANES
"""Words of a chunk in front of its weights: biases and biases of whole windows."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A kernel under construction: its parameters, and bytes from a pixel to the next."""

    k: Kernel
    shape: DepthwiseShape
    scaler: Scaler
    lines: Var
    out: Var
    weights: Var
    first: Var
    last: Var
    outputs: Value
    step: Value
    out_step: Value


def by_vectors(d: Parts, x: Expr, left: Expr, part: tuple[Var, Var] | None) -> None:
    """Emit a pixel, chunk by chunk: of the whole window, or of its taps [begin, end)."""
    k, shape = d.k, d.shape
    outputs = as_expr(d.outputs)
    whole = outputs >> 3
    turn = -1 if shape.reverse else 1
    begin, target = k.let("pixel", left * d.step), k.let("target", d.out + x * d.out_step)

    def beyond() -> None:
        w = k.RegAlloc("w", d.weights + (whole * shape.chunk_words + DEPTHWISE_HEAD))
        at = k.let("at", begin + (outputs - VECTOR_CHUNK))
        _chunk(d, w, at, target + (outputs - VECTOR_CHUNK), part)

    if shape.rest and shape.reverse:
        beyond()
    place = (whole - 1) * VECTOR_CHUNK if shape.reverse else as_expr(0)
    behind = (whole - 1) * shape.chunk_words if shape.reverse else as_expr(0)
    w = k.RegAlloc("w", d.weights + (behind + DEPTHWISE_HEAD))
    at, o = k.RegAlloc("at", begin + place), k.RegAlloc("o", target + place)
    for _ in k.loop(0, whole, name="chunk"):
        _chunk(d, w, at, o, part)
        k.set(w, w + turn * shape.chunk_words)
        k.set(o, o + turn * VECTOR_CHUNK)
        k.set(at, at + turn * VECTOR_CHUNK)
    if shape.rest and not shape.reverse:
        beyond()


def _chunk(d: Parts, w: Var, at: Expr, o: Expr, part: tuple[Var, Var] | None) -> None:
    """Emit eight channels of a pixel, which lie at `at` of the window's first tap."""
    k, taps = d.k, d.shape.taps
    bias = 2 * LANES if part is None else 0
    even = k.RegAlloc("even", k.flash4(w, bias, "bias_even", words=True))
    odd = k.RegAlloc("odd", k.flash4(w, bias + LANES, "bias_odd", words=True))
    if part is None:
        _whole_window(d, (even, odd), k.RegAlloc("v", w + TAPS), at)
    else:
        _part_of_window(d, (even, odd), w, at, *part)
    factors = TAPS + 2 * taps
    made = [
        d.scaler.scaled(
            total,
            k.flash4(w, factors + LANES * half, "multipliers", words=True),
            k.flash4(w, factors + 2 * LANES + half, "shifts"),
        )
        for half, total in enumerate((even, odd))
    ]
    k.RAMStore(o, 0, d.scaler.eight(*made), Kind.HALVES)


def _whole_window(d: Parts, sums: tuple[Var, Var], v: Var, at: Expr) -> None:
    """Emit all taps, two at a time where their products fit."""
    k, shape = d.k, d.shape

    def places() -> Iterator[Expr]:
        for line in range(shape.kernel[0]):
            row = k.let("row", k.line(d.lines, line) + at)
            yield row
            for _ in range(1, shape.kernel[1]):
                row = k.let("row", row + as_expr(d.step) * shape.dilation)
                yield row

    found = places()
    while some := list(islice(found, 1 if shape.lone else 2)):
        k.taps(sums, some, v)


def _part_of_window(d: Parts, sums: tuple[Var, Var], w: Var, at: Expr, begin: Var, end: Var) -> None:
    """Emit the taps [begin, end) of the lines that are inside the map."""
    k, shape = d.k, d.shape
    apart = as_expr(d.step) * shape.dilation
    for line in k.loop(d.first, d.last, name="line"):
        v = k.RegAlloc("v", w + ((line * shape.kernel[1] + begin) * 2 + TAPS))
        row = k.RegAlloc("row", k.line(d.lines, line) + (at + begin * apart))
        for _ in k.loop(begin, end, name="tap"):
            k.taps(sums, [row], v, d.scaler.input_offset)
            k.set(row, row + apart)
