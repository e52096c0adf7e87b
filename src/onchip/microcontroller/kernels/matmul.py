"""The kernel of BATCH_MATMUL: a row of the product from a row of one matrix and all of the other."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.microcontroller.int8.matmul import MatMul
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernels.own_use import OwnUse

__all__ = ["matmul_use"]


@dataclass(frozen=True, kw_only=True)
class MatMulShape:
    """The parameters that a kernel is specialised on."""

    rows: int
    inner: int
    columns: int
    first: bool = False
    second: bool = False
    shared: bool = False


def matmul_use(layer: MatMul) -> OwnUse:
    """Return the kernel of a layer."""
    shape = MatMulShape(
        rows=layer.rows,
        inner=layer.inner,
        columns=layer.columns,
        first=layer.turned[0],
        second=layer.turned[1],
        shared=layer.shared,
    )
    return OwnUse(
        "matmul", _kernel, shape, [*layer.offsets, layer.multiplier, layer.shift, layer.output_offset]
    )


def _kernel(name: str, shape: MatMulShape) -> Function:
    k = Kernel(
        name, f"Product of matrices {shape.rows}x{shape.inner} and {shape.inner}x{shape.columns}: row y."
    )
    lines, out, y, weights = k.lines("lines"), k.output("out"), k.number("y"), k.flash("weights")
    names = ("first_offset", "second_offset", "multiplier", "shift", "output_offset")
    one, other, multiplier, shift, offset = (k.constant(weights, i, name) for i, name in enumerate(names))
    batch, row = k.let("batch", y // shape.rows), k.let("row", y % shape.rows)
    first = k.let("first", k.line(lines, 0) + batch * (shape.rows * shape.inner))
    second = k.let(
        "second", k.line(lines, 1) + (0 if shape.shared else batch * (shape.inner * shape.columns))
    )
    for j in k.loop(0, shape.columns, name="j"):
        total = k.RegAlloc("total", 0)
        for i in k.loop(0, shape.inner, name="i"):
            at = i * shape.rows + row if shape.first else row * shape.inner + i
            a = k.RAMLoad(first, at, Kind.BYTE, name="a") + one
            b = k.RAMLoad(
                second, j * shape.inner + i if shape.second else i * shape.columns + j, Kind.BYTE, name="b"
            )
            k.set(total, total + a * (b + other))
        made = k.let("made", call("scaled", total, multiplier, shift) + offset)
        k.RAMStore(out, j, k.least(k.most(made, -128), 127))
    return k.finish()
