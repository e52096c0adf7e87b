"""Element-wise kernels: sums, products, tables and PReLU.

Bytes are processed in the order of the line (from its end in reverse), and each is written at or behind the
place where it was read: an output may overlap an input at any distance at which it does not run ahead of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import (
    Add,
    Extremum,
    Int8,
    Mul,
    Pairwise,
    PReLU,
    SquaredDifference,
    Sub,
    Table,
)
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr, Var
from onchip.microcontroller.kernels.elements_vector import (
    VECTOR_FORMS,
    By,
    Operands,
    VectorElements,
    by_of,
)

__all__ = ["ElementShape", "Operand", "element_shape", "element_words", "elements"]

Operand = Literal["none", "map", "pixel", "one", "constant pixel", "constant one"]
"""The second operand: another map, one pixel or one byte for all, in RAM or among the constants."""
Elementwise = Pairwise | Table | PReLU
Does = Literal["add", "sub", "sub_turned", "square", "mul", "least", "most", "table", "prelu"]
FOUR = 4
ADD_WORDS, MUL_WORDS, PRELU_WORDS = 13, 8, 7
"""Words in front of the bytes of a constant operand."""


@dataclass(frozen=True, kw_only=True)
class ElementShape:
    """The parameters that a kernel is specialised on."""

    does: Does
    channels: int
    second: Operand = "none"
    exact: bool = False
    """True if some factor is above one, or some value too large for the short form of scaling."""
    by: tuple[By, ...] = ()
    """With vectors, how factors scale."""
    vector: bool = False
    fours: Literal["", "packed", "plain"] = ""
    """For the extremes of two maps without gaps: four bytes at a time, as a word or byte by byte."""
    reverse: bool = False
    in_step: int = 0
    out_step: int = 0


def packed(values: Int8) -> list[int]:
    """Return bytes as words, the last filled with zeros."""
    flat = np.zeros(-(-values.size // 4) * 4, np.int8)
    flat[: values.size] = values.ravel()
    return [int(word) for word in flat.view("<i4")]


def element_shape(
    layer: Elementwise,
    *,
    reverse: bool = False,
    in_step: int = 0,
    out_step: int = 0,
    forms: Forms = "packed",
) -> ElementShape:
    """Return the shape of the kernel that a layer needs."""
    channels = layer.output_shape[3]
    does = _does(layer)
    second: Operand = "none"
    exact = False
    if isinstance(layer, Pairwise):
        shape = layer.input_shapes[1] if layer.constant is None else layer.constant.shape
        size = int(np.prod(shape))
        second = "map"
        if size == 1 or (size == channels and (layer.constant is not None or shape != layer.output_shape)):
            second = "one" if size == 1 else "pixel"
            if layer.constant is not None:
                second = "constant one" if size == 1 else "constant pixel"
        if isinstance(layer, Add):
            exact = max(layer.shift, *layer.shifts) > 0 or layer.left_shift > 20
        elif isinstance(layer, Mul):
            exact = layer.shift > 0
    elif isinstance(layer, PReLU):
        second = "constant one" if layer.alpha.size == 1 else "constant pixel"
        exact = max(layer.shift, layer.shift_below) > 0
    vector = forms == "vector" and does in VECTOR_FORMS
    close = {in_step, out_step} <= {0, channels} and second == "map" and isinstance(layer, Extremum)
    return ElementShape(
        does=does,
        channels=channels,
        second=second,
        exact=exact,
        by=by_of(layer) if vector and isinstance(layer, Pairwise) else (),
        vector=vector,
        fours=forms if close and (forms == "packed" or forms == "plain") else "",
        reverse=reverse,
        in_step=in_step,
        out_step=out_step,
    )


def _does(layer: Elementwise) -> Does:
    match layer:
        case Sub():
            return "sub_turned" if layer.turned else "sub"
        case SquaredDifference():
            return "square"
        case Add():
            return "add"
        case Mul():
            return "mul"
        case Extremum():
            return "most" if layer.greatest else "least"
        case PReLU():
            return "prelu"
    return "table"


def element_words(layer: Elementwise) -> list[int]:
    """Return the layer's constants: its factors, then the bytes of a constant operand or a table."""
    if isinstance(layer, Table):
        return packed(layer.table)
    sign = 1 if element_shape(layer).exact else -1
    words: list[int] = []
    if isinstance(layer, Add):
        (a, b), (ma, mb), (sa, sb) = layer.input_offsets, layer.multipliers, layer.shifts
        words = [a, ma, sign * sa, b, mb, sign * sb, 1 << layer.left_shift]
        words += [layer.multiplier, sign * layer.shift, layer.output_offset, layer.low, layer.high, 0]
    elif isinstance(layer, Mul):
        words = [*layer.input_offsets, layer.multiplier, sign * layer.shift]
        words += [layer.output_offset, layer.low, layer.high, 0]
    elif isinstance(layer, PReLU):
        words = [layer.input_offset, layer.alpha_offset, layer.multiplier, sign * layer.shift]
        words += [layer.multiplier_below, sign * layer.shift_below, layer.output_offset]
        return words + packed(layer.alpha)
    if layer.constant is not None and element_shape(layer).second != "map":
        words += packed(layer.constant)
    return words


def elements(name: str, shape: ElementShape) -> Function:
    """Return the kernel: output pixels [x0, x1) of a line from the same pixels of one or two lines."""
    k = Kernel(
        name,
        f"{shape.does} of {shape.channels} channels, element by element: pixels [x0, x1) of a line"
        + (", from the last." if shape.reverse else "."),
    )
    lines, out, x0, x1 = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1")
    weights = k.flash("weights")
    if shape.vector:
        _vector_lines(k, shape, (lines, out, x0, x1, weights))
        return k.finish()
    if shape.fours:
        _extreme_lines(k, shape, (lines, out, x0, x1))
        return k.finish()
    compute = _COMPUTE[shape.does](k, shape, weights)
    step = shape.in_step or shape.channels
    for x in k.span(x0, x1, reverse=shape.reverse, name="x"):
        first = k.let("first_map", k.line(lines, 0) + x * step)
        if shape.second == "map":
            second: Expr = k.let("second_map", k.line(lines, 1) + x * step)
        elif shape.second in ("pixel", "one"):
            second = k.line(lines, 1)
        o = k.let("o", out + x * (shape.out_step or shape.channels))
        for c in k.span(0, shape.channels, reverse=shape.reverse, name="c"):
            a = k.RAMLoad(first, c, Kind.BYTE, name="a")
            at = 0 if shape.second.endswith("one") else c
            if shape.second in ("map", "pixel", "one"):
                b: Expr = k.RAMLoad(second, at, Kind.BYTE, name="b")
            elif shape.second.startswith("constant"):
                b = k.let("b", k.constant_byte(weights, at + 4 * _HEAD.get(shape.does, 0)))
            else:
                b = a
            k.RAMStore(o, c, compute(a, b))
    return k.finish()


def _extreme_lines(k: Kernel, shape: ElementShape, given: tuple[Var, Var, Var, Var]) -> None:
    """Emit the line as one run; four bytes are read before the first of them is written."""
    lines, out, x0, x1 = given
    begin = k.let("begin", x0 * shape.channels)
    count = k.let("count", (x1 - x0) * shape.channels)
    first, second = (k.let(f"map{i}", k.line(lines, i) + begin) for i in (0, 1))
    o, whole = k.let("o", out + begin), k.let("whole", count & -FOUR)
    compute = _extremum(k, shape, lines)

    def byte(c: Expr) -> Expr:
        a, b = (k.RAMLoad(m, c, Kind.BYTE, name="byte") for m in (first, second))
        return k.let("made", compute(a, b))

    def four(c: Expr) -> None:
        if shape.fours == "packed":
            a, b = (k.RAMLoad(m, c, name="word") for m in (first, second))
            k.RAMStore(o, c, call(f"{shape.does}_bytes", a, b), Kind.WORD)
            return
        made = [byte(c + i) for i in range(FOUR)]
        for i, value in enumerate(made):
            k.RAMStore(o, c + i, value)

    def rest() -> None:
        for c in k.span(whole, count, reverse=shape.reverse, name="c"):
            k.RAMStore(o, c, byte(c))

    if shape.reverse:
        rest()
        for c in k.loop(whole - FOUR, -1, -FOUR, name="c"):
            four(c)
        return
    for c in k.loop(0, whole, FOUR, name="c"):
        four(c)
    rest()


def _vector_lines(k: Kernel, shape: ElementShape, given: tuple[Var, Var, Var, Var, Var]) -> None:
    """Emit the line in runs: one where nothing lies between its pixels, else one a pixel."""
    lines, out, x0, x1, weights = given
    channels, head = shape.channels, _HEAD.get(shape.does, 0)
    made = VectorElements(k, weights, shape.does, shape.second, shape.by, shape.exact, head)
    step, out_step = shape.in_step or channels, shape.out_step or channels
    if step == out_step == channels and not shape.second.endswith("pixel"):
        begin = k.let("begin", x0 * channels)
        second = k.line(lines, 1) if shape.second in ("map", "one") else None
        second = second + begin if second is not None and shape.second == "map" else second
        at = Operands(
            k.let("first_map", k.line(lines, 0) + begin),
            second if second is None else k.let("second_map", second),
            k.let("o", out + begin),
        )
        made.run(at, (x1 - x0) * channels, reverse=shape.reverse)
        return
    for x in k.span(x0, x1, reverse=shape.reverse, name="x"):
        second = k.line(lines, 1) if shape.second in ("map", "pixel", "one") else None
        second = second + x * step if second is not None and shape.second == "map" else second
        at = Operands(
            k.let("first_map", k.line(lines, 0) + x * step),
            second if second is None else k.let("second_map", second),
            k.let("o", out + x * out_step),
        )
        made.run(at, channels, reverse=shape.reverse)


_Compute = Callable[[Expr, Expr], Expr]
_SUMS: tuple[Does, ...] = ("add", "sub", "sub_turned", "square")
_HEAD: dict[Does, int] = {**dict.fromkeys(_SUMS, ADD_WORDS), "mul": MUL_WORDS, "prelu": PRELU_WORDS}


def _names(k: Kernel, weights: Var, names: str) -> list[Var]:
    return [k.constant(weights, i, name) for i, name in enumerate(names.split())]


def _scaled(shape: ElementShape, value: Expr, multiplier: Expr, shift: Expr) -> Expr:
    return call("scaled" if shape.exact else "scaled_down", value, multiplier, shift)


def _add(k: Kernel, shape: ElementShape, weights: Var) -> _Compute:
    a_offset, a_factor, a_shift, b_offset, b_factor, b_shift, unit, factor, shift, offset, low, high = _names(
        k,
        weights,
        "a_offset a_multiplier a_shift b_offset b_multiplier b_shift unit"
        " multiplier shift output_offset low high",
    )

    def compute(a: Expr, b: Expr) -> Expr:
        left = k.let("left", _scaled(shape, (a + a_offset) * unit, a_factor, a_shift))
        right = k.let("right", _scaled(shape, (b + b_offset) * unit, b_factor, b_shift))
        total = left + right
        if shape.does != "add":
            total = k.let("apart", right - left if shape.does == "sub_turned" else left - right)
        if shape.does == "square":
            total = total * total
        y = k.let("y", _scaled(shape, total, factor, shift) + offset)
        return k.least(k.most(y, low), high)

    return compute


def _mul(k: Kernel, shape: ElementShape, weights: Var) -> _Compute:
    a_offset, b_offset, factor, shift, offset, low, high = _names(
        k, weights, "a_offset b_offset multiplier shift output_offset low high"
    )

    def compute(a: Expr, b: Expr) -> Expr:
        y = k.let("y", _scaled(shape, (a + a_offset) * (b + b_offset), factor, shift) + offset)
        return k.least(k.most(y, low), high)

    return compute


def _prelu(k: Kernel, shape: ElementShape, weights: Var) -> _Compute:
    offset, alpha_offset, factor, shift, below_factor, below_shift, output_offset = _names(
        k,
        weights,
        "input_offset alpha_offset multiplier shift multiplier_below shift_below output_offset",
    )

    def compute(a: Expr, b: Expr) -> Expr:
        value = k.let("value", a + offset)
        y = k.RegAlloc("y", 0)
        with k.when(value >= 0):
            k.set(y, _scaled(shape, value, factor, shift))
        with k.otherwise():
            k.set(y, _scaled(shape, value * (b + alpha_offset), below_factor, below_shift))
        return k.saturate(y + output_offset)

    return compute


def _table(k: Kernel, shape: ElementShape, weights: Var) -> _Compute:
    return lambda a, b: k.constant_byte(weights, a + 128)


def _extremum(k: Kernel, shape: ElementShape, weights: Var) -> _Compute:
    return k.most if shape.does == "most" else k.least


_COMPUTE: dict[Does, Callable[[Kernel, ElementShape, Var], _Compute]] = {
    **dict.fromkeys(_SUMS, _add),
    "mul": _mul,
    "most": _extremum,
    "least": _extremum,
    "prelu": _prelu,
    "table": _table,
}
