"""The kernels of functions of 16-bit numbers element by element."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from onchip.microcontroller.int8.sigmoid import sigmoid_table
from onchip.microcontroller.int8.sixteen.elements import UP, Curve16, Does16, Linear16, Pair16
from onchip.microcontroller.kernel_language import Function, Kernel
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr, Var
from onchip.microcontroller.kernels.elements import packed
from onchip.microcontroller.kernels.numbers import number_at, put_number
from onchip.microcontroller.kernels.own_use import OwnUse

__all__ = ["curve16_use", "linear16_use", "pair16_use"]

PAIR_WORDS = 8
CURVE_WORDS = 2
LINEAR_WORDS = 8


@dataclass(frozen=True, kw_only=True)
class PairShape:
    """The parameters that a kernel is specialised on; the second operand has `spread` numbers."""

    does: Does16
    columns: int
    channels: int
    spread: Literal["map", "pixel", "one"]
    constant: bool = False


def pair16_use(layer: Pair16) -> OwnUse:
    """Return the kernel of a layer."""
    _, _, columns, wide = layer.output_shape
    size = prod(layer.input_shapes[1]) if layer.constant is None else layer.constant.size
    spread: Literal["map", "pixel", "one"] = "one" if size == 2 else "pixel" if size == wide else "map"
    words = [*layer.first, *layer.second, *layer.factor, layer.low, layer.high]
    if layer.constant is not None:
        words += packed(layer.constant)
    shape = PairShape(
        does=layer.does,
        columns=columns,
        channels=wide // 2,
        spread=spread if size != prod(layer.output_shape) or spread == "one" else "map",
        constant=layer.constant is not None,
    )
    return OwnUse("pair16", _pair, shape, words)


def _pair(name: str, shape: PairShape) -> Function:
    k = Kernel(
        name, f"{shape.does} of 16-bit numbers of {shape.channels} channels: pixels [x0, x1) of row y."
    )
    lines, out, x0, x1, y = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1"), k.number("y")
    weights = k.flash("weights")
    names = "first first_shift second second_shift multiplier shift low high"
    of = {name: k.constant(weights, i, name) for i, name in enumerate(names.split())}
    row = k.let("row", y * (shape.columns * shape.channels))
    first = k.let("first_map", k.line(lines, 0) + row * 2)
    if not shape.constant:
        second = k.let("second_map", k.line(lines, 1) + (row * 2 if shape.spread == "map" else 0))
    for i in k.loop(x0 * shape.channels, x1 * shape.channels, name="i"):
        a = number_at(k, first, i, name="a")
        at: Expr | int = {"map": i, "pixel": i % shape.channels, "one": 0}[shape.spread]
        if shape.constant:
            place = (row + i if shape.spread == "map" else at) * 2 + 4 * PAIR_WORDS
            place = k.let("place", place)
            high = k.constant_byte(weights, place + 1)
            b = k.let("b", high * 256 + (k.constant_byte(weights, place) & 255))
        else:
            b = number_at(k, second, at, name="b")
        put_number(k, out, i, _computed(k, shape, of, a, b))
    return k.finish()


def _computed(k: Kernel, shape: PairShape, of: dict[str, Var], a: Expr, b: Expr) -> Expr:
    match shape.does:
        case "least":
            return k.least(a, b)
        case "most":
            return k.most(a, b)
        case "mul":
            total = a * b
        case _:
            one = k.let("one", call("scaled", a << UP, of["first"], of["first_shift"]))
            other = k.let("other", call("scaled", b << UP, of["second"], of["second_shift"]))
            total = {"add": one + other, "sub": one - other, "sub_turned": other - one}[shape.does]
    made = k.let("made", call("scaled", total, of["multiplier"], of["shift"]))
    return k.least(k.most(made, of["low"]), of["high"])


@dataclass(frozen=True, kw_only=True)
class LinearShape:
    """The parameters that a kernel is specialised on."""

    row: int
    channels: int
    read: int
    made: int
    bent: bool = False
    turned: bool = False


def linear16_use(layer: Linear16) -> OwnUse:
    """Return the kernel of a layer."""
    channels = layer.output_shape[3] // layer.made
    words = [layer.zero, *layer.above, *layer.below, layer.output_zero, layer.low, layer.high]
    shape = LinearShape(
        row=layer.output_shape[2] * channels,
        channels=channels,
        read=layer.read,
        made=layer.made,
        bent=layer.above != layer.below or layer.turned,
        turned=layer.turned,
    )
    return OwnUse("linear16", _linear, shape, words)


def _linear(name: str, shape: LinearShape) -> Function:
    k = Kernel(name, f"Numbers on another scale, of {shape.channels} channels: pixels [x0, x1) of row y.")
    lines, out, x0, x1, y = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1"), k.number("y")
    weights = k.flash("weights")
    names = "zero above above_shift below below_shift output_zero low high"
    of = {name: k.constant(weights, i, name) for i, name in enumerate(names.split())}
    row = k.let("row", k.line(lines, 0) + y * (shape.row * shape.read))
    for i in k.loop(x0 * shape.channels, x1 * shape.channels, name="i"):
        x = k.let("x", number_at(k, row, i, shape.read) - of["zero"])
        made = k.RegAlloc("made", call("scaled", x, of["above"], of["above_shift"]))
        if shape.bent:
            with k.when(x < 0):
                below = call("scaled", x, of["below"], of["below_shift"])
                k.set(made, -below if shape.turned else below)
        moved = k.let("moved", made + of["output_zero"])
        put_number(k, out, i, k.least(k.most(moved, of["low"]), of["high"]), shape.made)
    return k.finish()


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
