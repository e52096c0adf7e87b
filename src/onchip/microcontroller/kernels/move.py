"""The kernel of layers that pick bytes of their input: a row of the output by a table of places.

Bytes of a pixel that lie side by side in the input are copied together, and so are pixels that do. Places
along a row, and those of a pixel's pieces, are no table where each is as far from the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import Int32
from onchip.microcontroller.int8.move import Move
from onchip.microcontroller.kernel_language import Function, Kernel
from onchip.microcontroller.kernel_language.ir import Expr, Var
from onchip.microcontroller.kernels.copies import copied_by_vectors, copied_by_words
from onchip.microcontroller.kernels.own_use import OwnUse

__all__ = ["MoveShape", "move", "move_use", "piece_of", "place_at", "step_of"]

LONG = 16
"""Bytes of a piece from which on it is moved as any number of bytes is: that calls the compiler's library."""


@dataclass(frozen=True, kw_only=True)
class MoveShape:
    """The parameters that a kernel is specialised on: steps are bytes of the input, None for a table's."""

    channels: int
    column: int | None
    channel: int | None
    """The step from one piece to the next."""
    piece: int = 1
    """Bytes of a pixel that lie side by side."""
    rows: int = 0
    """Where tables begin: words of rows in front of them."""
    columns: int = 0
    vector: bool = False
    """Pieces are copied by vectors."""


def step_of(places: Int32) -> int | None:
    """Return what each place is apart from the one before; None if that differs."""
    steps = np.diff(places)
    if not steps.size:
        return 0
    return int(steps[0]) if (steps == steps[0]).all() else None


def piece_of(places: Int32) -> int:
    """Return the most places that follow one another in every piece, where all pieces are as long."""
    ends = np.flatnonzero(np.diff(places) != 1) + 1
    return int(np.gcd.reduce(np.append(ends, places.size)))


def move_use(layer: Move, forms: Forms = "packed") -> OwnUse:
    """Return the kernel of a layer."""
    piece = piece_of(layer.channels)
    pieces = layer.channels[::piece]
    column, channel = step_of(layer.columns), step_of(pieces)
    words = [int(at) for at in layer.rows]
    tables = [part for part, step in ((layer.columns, column), (pieces, channel)) if step is None]
    words += [int(at) for part in tables for at in part]
    shape = MoveShape(
        channels=layer.channels.size,
        column=column,
        channel=channel,
        piece=piece,
        rows=layer.rows.size if tables else 0,
        columns=layer.columns.size if channel is None and column is None else 0,
        vector=forms == "vector",
    )
    return OwnUse("move", move, shape, words, by_forms=partial(move_use, layer))


def move(name: str, shape: MoveShape) -> Function:
    """Return the kernel: output pixels [x0, x1) of row y, each byte from its place in the input."""
    k = Kernel(name, f"Picks bytes of a map: pixels [x0, x1) of a row, of {shape.channels} channels.")
    lines, out, x0, x1, y = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1"), k.number("y")
    weights = k.flash("weights")
    row = k.let("row", k.line(lines, 0) + k.constant(weights, y, "place"))
    if shape.column == shape.channels == shape.piece:
        begin = k.let("begin", x0 * shape.channels)
        k.move(out + begin, row + begin, (x1 - x0) * shape.channels)
        return k.finish()
    for x in k.loop(x0, x1, name="x"):
        source = k.let("source", row + place_at(k, weights, shape.column, shape.rows, x))
        o = k.let("o", out + x * shape.channels)
        for c in k.loop(0, shape.channels // shape.piece, name="c"):
            at = place_at(k, weights, shape.channel, shape.rows + shape.columns, c)
            _copied(k, shape, source + at, o + c * shape.piece)
    return k.finish()


def _copied(k: Kernel, shape: MoveShape, source: Expr, o: Expr) -> None:
    """Emit the copy of a piece."""
    if shape.vector:
        copied_by_vectors(k, source, o, shape.piece)
    elif shape.piece < LONG:
        copied_by_words(k, source, o, shape.piece)
    else:
        k.move(o, source, shape.piece)


def place_at(k: Kernel, weights: Var, step: int | None, table: int, i: Expr) -> Expr:
    """Return place i: a step for each, or the entry of a table that begins at a word."""
    return k.constant(weights, i + table, "at") if step is None else i * step
