"""The kernel of functions of two bytes: a row of results for the second, a place in it for the first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Literal

from onchip.microcontroller.int8.lookup_two import BYTES, LookupTwo
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.ir import Expr, Var
from onchip.microcontroller.kernels.elements import packed
from onchip.microcontroller.kernels.own_use import OwnUse

__all__ = ["lookup_two_use"]


ZERO = BYTES // 2
"""The place of 0 in a table of bytes from -128 on."""


@dataclass(frozen=True, kw_only=True)
class LookupTwoShape:
    """The parameters that a kernel is specialised on; the second operand has `spread` bytes."""

    columns: int
    channels: int
    spread: Literal["map", "pixel", "one"]


def lookup_two_use(layer: LookupTwo) -> OwnUse:
    """Return the kernel of a layer: numbers of rows, and the rows themselves, are its constants."""
    _, _, columns, channels = layer.output_shape
    size = prod(layer.input_shapes[1])
    spread: Literal["map", "pixel", "one"] = "map"
    if size != prod(layer.output_shape):
        spread = "one" if size == 1 else "pixel"
    shape = LookupTwoShape(columns=columns, channels=channels, spread=spread)
    return OwnUse("lookup_two", _kernel, shape, [*packed(layer.row_of), *packed(layer.rows)])


def _kernel(name: str, shape: LookupTwoShape) -> Function:
    k = Kernel(name, f"A function of two bytes of {shape.channels} channels: pixels [x0, x1) of row y.")
    lines, out, x0, x1, y = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1"), k.number("y")
    weights = k.flash("weights")
    row = k.let("row", y * (shape.columns * shape.channels))
    first = k.let("first_map", k.line(lines, 0) + row)
    second = k.let("second_map", k.line(lines, 1) + (row if shape.spread == "map" else 0))
    results = _results(k, weights, second, 0) if shape.spread == "one" else None
    for i, c in _places(k, shape, x0, x1):
        found = results or _results(k, weights, second, c if shape.spread == "pixel" else i)
        a = k.RAMLoad(first, i, Kind.BYTE, name="a")
        k.RAMStore(out, i, k.constant_byte(weights, found + a))
    return k.finish()


def _results(k: Kernel, weights: Var, second: Expr, at: Expr | int) -> Var:
    """Return the place of 0's result in the row for a byte of the second operand, counted in bytes."""
    b = k.RAMLoad(second, at, Kind.BYTE, name="b")
    return k.let(
        "results", (k.constant_byte(weights, b + BYTES // 2) + BYTES // 2) * BYTES + (BYTES + BYTES // 2)
    )


def _places(k: Kernel, shape: LookupTwoShape, x0: Var, x1: Var) -> Iterator[tuple[Expr, Expr]]:
    """Yield, inside loops, the place of a byte in its row and its channel."""
    if shape.spread != "pixel":
        for i in k.loop(x0 * shape.channels, x1 * shape.channels, name="i"):
            yield i, i
        return
    for x in k.loop(x0, x1, name="x"):
        begin = k.let("begin", x * shape.channels)
        for c in k.loop(0, shape.channels, name="c"):
            yield k.let("i", begin + c), c
