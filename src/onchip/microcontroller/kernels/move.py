"""The kernel of layers that pick bytes of their input: a row of the output by a table of places.

Places along a row, and those of a pixel's channels, are no table where each is as far from the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onchip.microcontroller.int8.model import Int32
from onchip.microcontroller.int8.move import Move
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.ir import Expr, Var
from onchip.microcontroller.kernels.own_use import OwnUse

__all__ = ["MoveShape", "move", "move_use", "place_at", "step_of"]


@dataclass(frozen=True, kw_only=True)
class MoveShape:
    """The parameters that a kernel is specialised on: steps are bytes of the input, None for a table's."""

    channels: int
    column: int | None
    channel: int | None
    rows: int = 0
    """Where tables begin: words of rows in front of them."""
    columns: int = 0


def step_of(places: Int32) -> int | None:
    """Return what each place is apart from the one before; None if that differs."""
    steps = np.diff(places)
    if not steps.size:
        return 0
    return int(steps[0]) if (steps == steps[0]).all() else None


def move_use(layer: Move) -> OwnUse:
    """Return the kernel of a layer."""
    column, channel = step_of(layer.columns), step_of(layer.channels)
    words = [int(at) for at in layer.rows]
    tables = [part for part, step in ((layer.columns, column), (layer.channels, channel)) if step is None]
    words += [int(at) for part in tables for at in part]
    shape = MoveShape(
        channels=layer.channels.size,
        column=column,
        channel=channel,
        rows=layer.rows.size if tables else 0,
        columns=layer.columns.size if channel is None and column is None else 0,
    )
    return OwnUse("move", move, shape, words)


def move(name: str, shape: MoveShape) -> Function:
    """Return the kernel: output pixels [x0, x1) of row y, each byte from its place in the input."""
    k = Kernel(name, f"Picks bytes of a map: pixels [x0, x1) of a row, of {shape.channels} channels.")
    lines, out, x0, x1, y = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1"), k.number("y")
    weights = k.flash("weights")
    row = k.let("row", k.line(lines, 0) + k.constant(weights, y, "place"))
    for x in k.loop(x0, x1, name="x"):
        source = k.let("source", row + place_at(k, weights, shape.column, shape.rows, x))
        o = k.let("o", out + x * shape.channels)
        for c in k.loop(0, shape.channels, name="c"):
            at = place_at(k, weights, shape.channel, shape.rows + shape.columns, c)
            k.RAMStore(o, c, k.RAMLoad(source, at, Kind.BYTE, name="byte"))
    return k.finish()


def place_at(k: Kernel, weights: Var, step: int | None, table: int, i: Expr) -> Expr:
    """Return place i: a step for each, or the entry of a table that begins at a word."""
    return k.constant(weights, i + table, "at") if step is None else i * step
