"""The kernel of sums and extremes over any axes: a row of the output by tables of places."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.microcontroller.int8.reduce import Does, Reduce
from onchip.microcontroller.kernel_language import Function, Kernel
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernels.move import place_at, step_of
from onchip.microcontroller.kernels.numbers import number_at, put_number
from onchip.microcontroller.kernels.own_use import OwnUse

__all__ = ["reduce_use"]

HEAD = 5


@dataclass(frozen=True, kw_only=True)
class ReduceShape:
    """The parameters that a kernel is specialised on; steps are None for those of a table."""

    does: Does
    rows: int
    columns: int
    channels: int
    count: int
    column: int | None
    channel: int | None
    inner: int | None
    width: int = 1


def reduce_use(layer: Reduce) -> OwnUse:
    """Return the kernel of a layer."""
    words = [layer.input_offset * layer.inner.size, layer.multiplier, layer.shift, layer.output_offset, 0]
    for part in (layer.rows, layer.columns, layer.channels, layer.inner):
        words += [int(at) for at in part]
    shape = ReduceShape(
        does=layer.does,
        rows=layer.rows.size,
        columns=layer.columns.size,
        channels=layer.channels.size,
        count=layer.inner.size,
        column=step_of(layer.columns),
        channel=step_of(layer.channels),
        inner=step_of(layer.inner),
        width=layer.width,
    )
    return OwnUse("reduce", _kernel, shape, words)


def _kernel(name: str, shape: ReduceShape) -> Function:
    k = Kernel(name, f"The {shape.does} of {shape.count} numbers each: pixels [x0, x1) of row y.")
    lines, out, x0, x1, y = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1"), k.number("y")
    weights = k.flash("weights")
    names = ("moved", "multiplier", "shift", "output_offset")
    moved, multiplier, shift, offset = (k.constant(weights, i, name) for i, name in enumerate(names))
    low, high = -(1 << (8 * shape.width - 1)), (1 << (8 * shape.width - 1)) - 1
    columns = HEAD + shape.rows
    channels = columns + shape.columns
    inner = channels + shape.channels
    row = k.let("row", k.line(lines, 0) + k.constant(weights, y + HEAD, "place") * shape.width)
    for x in k.loop(x0, x1, name="x"):
        pixel = k.let("pixel", row + place_at(k, weights, shape.column, columns, x) * shape.width)
        for c in k.loop(0, shape.channels, name="c"):
            source = k.let("source", pixel + place_at(k, weights, shape.channel, channels, c) * shape.width)
            total = k.RegAlloc("total", {"sum": 0, "greatest": low, "smallest": high}[shape.does])
            for i in k.loop(0, shape.count, name="i"):
                at = place_at(k, weights, shape.inner, inner, i)
                byte = number_at(k, source, at, shape.width)
                match shape.does:
                    case "sum":
                        k.set(total, total + byte)
                    case "greatest":
                        k.set(total, k.most(total, byte))
                    case "smallest":
                        k.set(total, k.least(total, byte))
            if shape.does == "sum":
                made = k.let("made", call("scaled", total + moved, multiplier, shift) + offset)
                k.set(total, k.least(k.most(made, low), high))
            put_number(k, out, x * shape.channels + c, total, shape.width)
    return k.finish()
