"""The kernels of functions of one map of 16-bit numbers element by element."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from onchip.microcontroller.int8.sigmoid import sigmoid_table
from onchip.microcontroller.int8.sixteen.elements import Curve16, Linear16
from onchip.microcontroller.int8.sixteen.values import HIGHEST, LOWEST
from onchip.microcontroller.kernel_language import Function, Kernel
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr, Var, as_expr
from onchip.microcontroller.kernels.elements_vector import By, by_shift
from onchip.microcontroller.kernels.numbers import number_at, put_number
from onchip.microcontroller.kernels.own_use import OwnUse

__all__ = ["curve16_use", "linear16_use"]

CURVE_WORDS = 2
BITS = 15
"""Bits of a number of 16 behind its sign."""


@dataclass(frozen=True, kw_only=True)
class LinearShape:
    """The parameters that a kernel is specialised on."""

    row: int
    channels: int
    read: int
    made: int
    by: tuple[By, By]
    """The scales of numbers from zero on, and of those below it."""
    bent: bool = False
    turned: bool = False
    moved: bool = False
    """True if the input or the output has a zero point."""
    clamped: bool = True
    """False if the bounds are those of 16 bits."""
    wide: bool = False
    """True for numbers of more than 16 bits, with their zero point, or a factor of 2**15 and more."""


def linear16_use(layer: Linear16) -> OwnUse:
    """Return the kernel of a layer."""
    channels = layer.output_shape[3] // layer.made
    factors = (layer.above, layer.below)
    wide = (layer.read == 2 and layer.zero != 0) or any(shift >= BITS for _, shift in factors)
    by = tuple(by_shift(shift) for _, shift in factors)
    words = [layer.zero]
    for multiplier, shift in factors:
        words += [multiplier, shift if wide else -shift if shift < 0 else BITS - shift]
    words += [layer.output_zero, layer.low, layer.high]
    shape = LinearShape(
        row=layer.output_shape[2] * channels,
        channels=channels,
        read=layer.read,
        made=layer.made,
        by=(by[0], by[1]),
        bent=layer.above != layer.below or layer.turned,
        turned=layer.turned,
        moved=layer.zero != 0 or layer.output_zero != 0,
        clamped=(layer.low, layer.high) != (LOWEST, HIGHEST),
        wide=wide,
    )
    return OwnUse("linear16", _linear, shape, words)


def _linear(name: str, shape: LinearShape) -> Function:
    k = Kernel(name, f"Numbers on another scale, of {shape.channels} channels: pixels [x0, x1) of row y.")
    lines, out, x0, x1, y = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1"), k.number("y")
    weights = k.flash("weights")
    names = "zero above above_shift below below_shift output_zero low high"
    of = {name: k.constant(weights, i, name) for i, name in enumerate(names.split())}
    row = k.let("row", k.line(lines, 0) + y * (shape.row * shape.read))
    above = _scaling(k, shape, shape.by[0], of["above"], of["above_shift"])
    below = _scaling(k, shape, shape.by[1], of["below"], of["below_shift"]) if shape.bent else above
    for i in k.loop(x0 * shape.channels, x1 * shape.channels, name="i"):
        x = number_at(k, row, i, shape.read)
        if shape.moved:
            x = k.let("x", x - of["zero"])
        if shape.bent:
            made = k.RegAlloc("made", 0)
            with k.when(x < 0):
                k.set(made, -below(x) if shape.turned else below(x))
            with k.otherwise():
                k.set(made, above(x))
        else:
            made = k.let("made", above(x))
        moved = k.let("moved", made + of["output_zero"]) if shape.moved else made
        bound = k.least(k.most(moved, of["low"]), of["high"]) if shape.clamped else call("saturate16", moved)
        put_number(k, out, i, bound, shape.made)
    return k.finish()


def _scaling(k: Kernel, shape: LinearShape, by: By, multiplier: Var, shift: Var) -> Callable[[Var], Expr]:
    """Return the scaling of a number, whatever it needs in registers.

    A number of 16 bits times a multiplier of 31, without the lowest 16 bits, is still to be divided by
    2**(15 - left), halves up: `shift` holds that or, for a factor to the right, its own shift.
    """
    if shape.wide:
        return lambda x: call("scaled", x, multiplier, shift)
    if by is not By.RIGHT:
        half = k.let("half", (as_expr(1) << shift) >> 1)
        return lambda x: call("number_floor", x, multiplier, half) >> shift
    half = k.let("half", as_expr(1) << (shift - 1))

    def scaled(x: Var) -> Expr:
        first = k.let("doubled", call("number_floor", x, multiplier, 1 << (BITS - 1)) >> BITS)
        return (first + half + (first >> 31)) >> shift

    return scaled


@dataclass(frozen=True, kw_only=True)
class CurveShape:
    """The parameters that a kernel is specialised on."""

    does: Literal["sigmoid", "tanh"]
    row: int
    channels: int
    right: int


def curve16_use(layer: Curve16) -> OwnUse:
    """Return the kernel of a layer."""
    channels = layer.output_shape[3] // 2
    shape = CurveShape(
        does=layer.does, row=layer.output_shape[2] * channels, channels=channels, right=layer.right
    )
    return OwnUse("curve16", _curve, shape, [layer.multiplier, 0, *sigmoid_table()])


def _curve(name: str, shape: CurveShape) -> Function:
    k = Kernel(
        name, f"The {shape.does} of 16-bit numbers of {shape.channels} channels: pixels [x0, x1) of row y."
    )
    lines, out, x0, x1, y = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1"), k.number("y")
    weights = k.flash("weights")
    multiplier = k.constant(weights, 0, "multiplier")
    row = k.let("row", k.line(lines, 0) + y * (shape.row * 2))
    bits, most = (9, 0x7FFF << 10) if shape.does == "sigmoid" else (8, 0xFFFF << 8)
    half = 1 << (shape.right - 1) if shape.right else 0
    for i in k.loop(x0 * shape.channels, x1 * shape.channels, name="i"):
        x = k.let("x", (number_at(k, row, i) * multiplier + half) >> shape.right)
        place = k.let("place", k.most(x, -x))
        found = k.RegAlloc("found", most)
        with k.when(place < 255 << bits):
            entry = k.let("entry", (place >> bits) + CURVE_WORDS)
            low, high = k.constant(weights, entry, "low"), k.constant(weights, entry + 1, "high")
            k.set(found, (low << bits) + (place & ((1 << bits) - 1)) * (high - low))
        if shape.does == "sigmoid":
            made = k.RegAlloc("made", found + (1 << 9))
            with k.when(x < 0):
                k.set(made, ((1 << 25) + (1 << 9) - 1) - found)
            put_number(k, out, i, made >> 10)
        else:
            made = k.RegAlloc("made", found + ((1 << 7) - (1 << 23)))
            with k.when(x < 0):
                k.set(made, ((1 << 23) + (1 << 7) - 1) - found)
            put_number(k, out, i, made >> 8)
    return k.finish()
