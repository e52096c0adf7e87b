"""Layers that move bytes: padding, concatenation, resizing.

A pixel is made in the workspace (`patch`) and then copied: the output may overlap everything that no later
pixel reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import Concat, Pad, Resize
from onchip.microcontroller.int8.reference import bilinear_places, nearest_places
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.ir import Expr, Var
from onchip.microcontroller.kernels.copies import copied, copied_by_vectors

__all__ = [
    "ConcatShape",
    "PadShape",
    "ResizeShape",
    "concat",
    "concat_shape",
    "pad",
    "pad_shape",
    "pad_words",
    "resize",
    "resize_shape",
    "resize_words",
]

FINE = 10
"""Bits of a bilinear weight."""


@dataclass(frozen=True, kw_only=True)
class PadShape:
    """The parameters of a padding kernel: channels of the map, in front of them and behind."""

    vector: bool = False
    """True where pixels are copied by vectors."""

    channels: int
    front: int = 0
    back: int = 0
    before: int = 0
    """Pixels in front of a line."""
    reverse: bool = False
    in_step: int = 0
    out_step: int = 0


@dataclass(frozen=True, kw_only=True)
class ConcatShape:
    """The parameters of a concatenation: the axis in the kernel's own terms, and every part's size."""

    vector: bool = False
    """True where pixels are copied by vectors."""

    axis: Literal["lines", "pixels", "channels"]
    channels: tuple[int, ...]
    lengths: tuple[int, ...]
    """Pixels of a line of every part."""
    reverse: bool = False
    out_step: int = 0


@dataclass(frozen=True, kw_only=True)
class ResizeShape:
    """The parameters of a resizing."""

    vector: bool = False
    """True where pixels are copied by vectors."""

    channels: int
    bilinear: bool
    rows: int
    """Rows of the output; the columns' constants begin behind theirs."""
    reverse: bool = False
    in_step: int = 0
    out_step: int = 0


def pad_shape(
    layer: Pad,
    *,
    reverse: bool = False,
    columns: bool = False,
    in_step: int = 0,
    out_step: int = 0,
    forms: Forms = "packed",
) -> PadShape:
    """Return the shape of the kernel that a padding needs."""
    front, back = layer.channels
    before = layer.padding[0 if columns else 1]
    return PadShape(
        channels=layer.input_shapes[0][3],
        front=front,
        back=back,
        before=before,
        vector=forms == "vector",
        reverse=reverse,
        in_step=in_step,
        out_step=out_step,
    )


def pad_words(layer: Pad) -> list[int]:
    """Return the layer's constant: the padding value."""
    return [layer.value]


def pad(name: str, shape: PadShape) -> Function:
    """Return the kernel: output pixels [x0, x1) of a line; the input line exists if `first` < `last`."""
    k = Kernel(name, f"Padding of {shape.channels} channels: pixels [x0, x1) of a line.")
    lines, out, x0, x1 = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1")
    first, last, width = k.number("first"), k.number("last"), k.number("width")
    patch = k.output("patch")
    value = k.constant(k.flash("weights"), 0, "value")
    outputs = shape.front + shape.channels + shape.back
    if outputs == shape.channels == (shape.in_step or outputs) == (shape.out_step or outputs):
        _padded_line(k, shape, k.line(lines, 0), out, (x0, x1), first < last, width, value)
        return k.finish()
    copied = _copy(shape)
    for x in k.span(x0, x1, reverse=shape.reverse, name="x"):
        column = k.let("column", x - shape.before)
        o = k.let("o", out + x * (shape.out_step or outputs))
        with k.when((first < last) & (column >= 0) & (column < width)):
            row = k.let("row", k.line(lines, 0) + column * (shape.in_step or shape.channels))
            copied(k, row, patch, shape.channels, shape.front)
            _fill(k, patch, 0, shape.front, value)
            _fill(k, patch, shape.front + shape.channels, outputs, value)
            copied(k, patch, o, outputs)
        with k.otherwise():
            _fill(k, o, 0, outputs, value)
    return k.finish()


def _padded_line(
    k: Kernel,
    shape: PadShape,
    line: Expr,
    out: Var,
    ends: tuple[Var, Var],
    exists: Expr,
    width: Var,
    value: Expr,
) -> None:
    """Emit a line whose pixels lie one behind the other: what is inside moves in one piece."""
    channels, (x0, x1) = shape.channels, ends

    def fill(begin: Expr, end: Expr) -> None:
        k.fill(out + begin * channels, value, (end - begin) * channels)

    with k.when(exists):
        low = k.let("low", k.least(k.most(x0, shape.before), x1))
        high = k.let("high", k.most(k.least(x1, width + shape.before), low))
        fill(*((high, x1) if shape.reverse else (x0, low)))
        k.move(out + low * channels, line + (low - shape.before) * channels, (high - low) * channels)
        fill(*((x0, low) if shape.reverse else (high, x1)))
    with k.otherwise():
        fill(x0, x1)


def _copy(shape: PadShape | ConcatShape | ResizeShape) -> Callable[..., None]:
    """Return what emits a copy between places that do not overlap, `behind` bytes further."""
    return copied_by_vectors if shape.vector else copied


def concat_shape(
    layer: Concat,
    *,
    reverse: bool = False,
    columns: bool = False,
    out_step: int = 0,
    forms: Forms = "packed",
) -> ConcatShape:
    """Return the shape of a concatenation's kernel; its inputs' pixels are contiguous."""
    along, across = (1, 2) if columns else (2, 1)
    axes: dict[int, Literal["lines", "pixels", "channels"]] = {
        along: "pixels",
        across: "lines",
        3: "channels",
    }
    parts = layer.input_shapes
    return ConcatShape(
        axis=axes[layer.axis],
        channels=tuple(part[3] for part in parts),
        lengths=tuple(part[along] for part in parts),
        vector=forms == "vector",
        reverse=reverse,
        out_step=out_step,
    )


def concat(name: str, shape: ConcatShape) -> Function:
    """Return the kernel: output pixels [x0, x1) of a line.

    `lines[i]` is the line of part i; along lines it is the line of the one part that has it.
    """
    k = Kernel(name, f"Concatenation along {shape.axis}: pixels [x0, x1) of a line.")
    lines, out, x0, x1 = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1")
    patch = k.output("patch")
    copied = _copy(shape)
    if shape.axis == "channels":
        outputs = sum(shape.channels)
        for x in k.span(x0, x1, reverse=shape.reverse, name="x"):
            at = 0
            for i, many in enumerate(shape.channels):
                copied(k, k.let("row", k.line(lines, i) + x * many), patch, many, at)
                at += many
            copied(k, patch, k.let("o", out + x * (shape.out_step or outputs)), outputs)
        return k.finish()
    many = shape.channels[0]
    step = shape.out_step or many
    begin = sum(shape.lengths) if shape.reverse else 0
    parts = range(len(shape.lengths))[:: -1 if shape.reverse else 1] if shape.axis == "pixels" else range(1)
    for i in parts:
        begin -= shape.lengths[i] if shape.reverse and shape.axis == "pixels" else 0
        low, high = (x0, x1)
        start = 0
        if shape.axis == "pixels":
            start = begin
            low, high = k.let("from", k.most(x0, begin)), k.let("to", k.least(x1, begin + shape.lengths[i]))
        for x in k.span(low, high, reverse=shape.reverse, name="x"):
            row = k.let("row", k.line(lines, i) + (x - start) * many)
            copied(k, row, patch, many)
            copied(k, patch, k.let("o", out + x * step), many)
        begin += 0 if shape.reverse else shape.lengths[i]
    return k.finish()


def resize_shape(
    layer: Resize,
    *,
    reverse: bool = False,
    in_step: int = 0,
    out_step: int = 0,
    forms: Forms = "packed",
) -> ResizeShape:
    """Return the shape of the kernel that a resizing needs, row by row."""
    return ResizeShape(
        channels=layer.output_shape[3],
        bilinear=layer.mode == "bilinear",
        rows=layer.output_shape[1],
        vector=forms == "vector",
        reverse=reverse,
        in_step=in_step,
        out_step=out_step,
    )


def resize_words(layer: Resize) -> list[int]:
    """Return the layer's constants: the reads of every output row, then of every output column.

    Nearest: the input's column for columns, nothing for rows (the caller gives the row). Bilinear: for rows
    the second row's weight of 1024; for columns both columns and the second's weight.
    """
    _, rows, columns, _ = layer.input_shapes[0]
    _, made_rows, made_columns, _ = layer.output_shape
    if layer.mode == "nearest":
        return [int(v) for v in nearest_places(layer, columns, made_columns)]
    _, _, weights = bilinear_places(layer, rows, made_rows)
    first, second, fine = bilinear_places(layer, columns, made_columns)
    found = [int(v) for v in weights]
    for places in zip(first, second, fine, strict=True):
        found += [int(v) for v in places]
    return found


def resize(name: str, shape: ResizeShape) -> Function:
    """Return the kernel: output pixels [x0, x1) of line `y`; `lines` are the input rows that it reads."""
    mode = "bilinear" if shape.bilinear else "nearest"
    k = Kernel(name, f"Resizing of {shape.channels} channels, {mode}: pixels [x0, x1) of line y.")
    lines, out, x0, x1 = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1")
    y, patch, weights = k.number("y"), k.output("patch"), k.flash("weights")
    copied = _copy(shape)
    step = shape.in_step or shape.channels
    fine = k.constant(weights, y, "below") if shape.bilinear else None
    for x in k.span(x0, x1, reverse=shape.reverse, name="x"):
        o = k.let("o", out + x * (shape.out_step or shape.channels))
        if fine is None:
            row = k.let("row", k.line(lines, 0) + k.constant(weights, x, "column") * step)
            copied(k, row, patch, shape.channels)
            copied(k, patch, o, shape.channels)
            continue
        at = k.let("at", x * 3 + shape.rows)
        left = k.let("left", k.constant(weights, at, "first_column") * step)
        right = k.let("right", k.constant(weights, at + 1, "second_column") * step)
        across = k.constant(weights, at + 2, "across")
        for c in k.loop(0, shape.channels, name="c"):
            k.RAMStore(patch, c, _mixed(k, lines, (left + c, right + c), across, fine))
        copied(k, patch, o, shape.channels)
    return k.finish()


def _mixed(k: Kernel, lines: Var, columns: tuple[Expr, Expr], across: Expr, down: Expr) -> Expr:
    """Return the weighted sum of four bytes, halves away from zero."""
    rows = []
    for i, name in enumerate(("above", "under")):
        a, b = (k.RAMLoad(k.line(lines, i), column, Kind.BYTE, name="byte") for column in columns)
        rows.append(k.let(name, a * ((1 << FINE) - across) + b * across))
    total = k.let("total", rows[0] * ((1 << FINE) - down) + rows[1] * down)
    half = 1 << (2 * FINE - 1)
    y = k.RegAlloc("y", (total + half) >> (2 * FINE))
    with k.when(total < 0):
        k.set(y, -((half - total) >> (2 * FINE)))
    return y


def _fill(k: Kernel, o: Expr, begin: int, end: int, value: Expr) -> None:
    if begin < end:
        k.fill(o + begin, value, end - begin)
