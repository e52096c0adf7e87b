"""The kernel of an LSTM: unit by unit, each gate's two sums, then the unit's cell and hidden state.

Hidden states lie in the output, a row for each step, and the cell behind them: no workspace is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.arithmetic import wrapped
from onchip.microcontroller.int8.factors import Factor
from onchip.microcontroller.int8.lstm import Lstm
from onchip.microcontroller.int8.sigmoid import sigmoid_table
from onchip.microcontroller.kernel_language import Function, Kernel
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr, Var
from onchip.microcontroller.kernels.numbers import number_at, put_number
from onchip.microcontroller.kernels.own_use import OwnUse
from onchip.microcontroller.kernels.runs import quad_sums, quad_words

__all__ = ["lstm_use"]

HEAD, OF_GATE, TABLE = 8, 6, 256
"""Words in front of the gates' factors, of each gate's factors, of the table behind them."""


@dataclass(frozen=True, kw_only=True)
class LstmShape:
    """The parameters that a kernel is specialised on."""

    steps: int
    inputs: int
    units: int
    cell_shift: int
    clip: int = 0
    short: bool = False
    """True if products are scaled by shifts to the right, and no sum reaches 2**30, moved to the left."""
    forms: Forms = "packed"


def lstm_use(layer: Lstm, forms: Forms = "packed") -> OwnUse:
    """Return the kernel of a layer: the four gates of a unit share the bytes that they read."""
    short = _short(layer)
    shape = LstmShape(
        steps=layer.steps,
        inputs=layer.input_shapes[0][3],
        units=layer.units,
        cell_shift=layer.cell_shift,
        clip=layer.clip,
        short=short,
        forms=forms,
    )

    def factor(given: Factor) -> tuple[int, int]:
        return (given[0], -given[1] if short else given[1])

    words = [*factor(layer.forget), *factor(layer.update), *factor(layer.made), layer.output_offset, 0]
    for gate in layer.gates:
        for multiplier, shift in (gate.factor, gate.recurrent_factor):
            words += [multiplier, max(shift, 0), max(-shift, 0)] if short else [multiplier, shift, 0]
    words += sigmoid_table()
    for unit in range(layer.units):
        for hidden, offset in enumerate((layer.input_offset, layer.hidden_offset)):
            rows = np.stack([(g.recurrent if hidden else g.weights)[unit] for g in layer.gates])
            begin = offset * rows.astype(np.int64).sum(axis=1)
            begin += 0 if hidden else np.array([gate.bias[unit] for gate in layer.gates])
            words += [*(int(v) for v in wrapped(begin)), *quad_words(rows, forms)]
    return OwnUse("lstm", _lstm, shape, words, by_forms=partial(lstm_use, layer))


def _short(layer: Lstm) -> bool:
    """Return whether no sum reaches 2**30, moved to the left as its factor says, and products move right."""
    reach = 0
    for gate in layer.gates:
        for weights, (_, shift) in ((gate.weights, gate.factor), (gate.recurrent, gate.recurrent_factor)):
            sums = 255 * np.abs(weights.astype(np.int64)).sum(axis=1) + np.abs(gate.bias.astype(np.int64))
            reach = max(reach, int(sums.max()) << max(shift, 0))
    return reach < 1 << 30 and all(shift <= 0 for _, shift in (layer.forget, layer.update, layer.made))


class _Lstm:
    def __init__(self, name: str, shape: LstmShape) -> None:
        self.shape = shape
        k = self.k = Kernel(
            name, f"{shape.steps} steps of an LSTM of {shape.units} units over {shape.inputs} inputs."
        )
        lines, self.out, self.weights = k.lines("lines"), k.output("out"), k.flash("weights")
        names = "forget forget_shift update update_shift made made_shift output_offset"
        self.of = {name: k.constant(self.weights, i, name) for i, name in enumerate(names.split())}
        self.x, self.hidden, self.cell = (
            k.let(name, k.line(lines, i)) for i, name in enumerate(("sequence", "hidden", "cell"))
        )

    def build(self) -> Function:
        k, shape = self.k, self.shape
        cells = k.let("cells", self.out + shape.steps * shape.units)
        # The first step reads hidden state and cell where the last inference left them.
        self.units(k.let("row", self.x + 0), self.hidden, self.cell, cells, self.out)
        for step in k.loop(1, shape.steps, name="step"):
            row = k.let("row", self.x + step * shape.inputs)
            made = k.let("made_row", self.out + step * shape.units)
            self.units(row, made - shape.units, cells, cells, made)
        return k.finish()

    def units(self, x: Expr, hidden: Expr, old: Expr, cells: Expr, out: Expr) -> None:
        """Emit one step."""
        k, shape, of = self.k, self.shape, self.of
        before = k.let("before", hidden)
        w = k.RegAlloc("w", self.weights + (HEAD + 4 * OF_GATE + TABLE))
        for unit in k.loop(0, shape.units, name="unit"):
            parts = [self.gates(0, x, w, shape.inputs), self.gates(1, before, w, shape.units)]
            sums = [self.held(a + b) for a, b in zip(*parts, strict=True)]
            forget, update, output = (self.sigmoid(sums[i]) for i in (0, 1, 3))
            kept = self.scaled(forget * number_at(k, old, unit), of["forget"], of["forget_shift"])
            more = self.scaled(update * self.tanh(sums[2], 0), of["update"], of["update_shift"])
            cell = k.let("new_cell", self.held(self.held(kept) + self.held(more)))
            if shape.clip:
                cell = k.let("clipped", k.least(k.most(cell, -shape.clip), shape.clip))
            put_number(k, cells, unit, cell, 2)
            product = k.let("product", self.tanh(cell, shape.cell_shift) * output)
            y = k.let("y", self.scaled(product, of["made"], of["made_shift"]) + of["output_offset"])
            k.RAMStore(out, unit, k.least(k.most(y, -128), 127))

    def scaled(self, value: Expr, multiplier: Expr, shift: Expr) -> Expr:
        """Return a value scaled, its shift as the form has it."""
        return call("scaled_down" if self.shape.short else "scaled", value, multiplier, shift)

    def held(self, value: Expr) -> Expr:
        """Return a value clamped to 16 bits."""
        return self.k.let("held", call("saturate16", value))

    def gates(self, hidden: int, source: Expr, w: Var, run: int) -> list[Expr]:
        """Emit the sums of all gates over the input or the hidden state; return them scaled."""
        k = self.k
        sums = quad_sums(
            k, self.shape.forms, source, w, run, k.FlashLoad(w, *(f"first{g}" for g in range(4)))
        )
        found = []
        for gate, total in enumerate(sums):
            at = HEAD + OF_GATE * gate + OF_GATE // 2 * hidden
            multiplier, shift = (k.constant(self.weights, at + i, name) for i, name in enumerate(("m", "s")))
            if self.shape.short:
                right = k.constant(self.weights, at + 2, "right")
                found.append(self.held(self.scaled(total << shift, multiplier, right)))
            else:
                found.append(self.held(self.scaled(total, multiplier, shift)))
        return found

    def line(self, place: Expr, bits: int, most: int) -> Var:
        """Emit the table's value at a place with so many bits behind the point."""
        k = self.k
        found = k.RegAlloc("found", most)
        with k.when(place < 255 << bits):
            at = k.let("entry", (place >> bits) + (HEAD + 4 * OF_GATE))
            low = k.constant(self.weights, at, "low")
            high = k.constant(self.weights, at + 1, "high")
            k.set(found, (low << bits) + (place & ((1 << bits) - 1)) * (high - low))
        return found

    def sigmoid(self, value: Expr) -> Expr:
        k = self.k
        x = k.let("x", value * 3)
        found = self.line(k.let("place", k.most(x, -x)), 9, 0x7FFF << 10)
        y = k.RegAlloc("share", found + (1 << 9))
        with k.when(x < 0):
            k.set(y, ((1 << 25) + (1 << 9) - 1) - found)
        return k.let("sigmoid", y >> 10)

    def tanh(self, value: Expr, shift: int) -> Expr:
        k = self.k
        x = k.let("x", (value * 3 + (1 << (-shift - 1))) >> -shift if shift < 0 else value * (3 << shift))
        found = self.line(k.let("place", k.most(x, -x)), 8, 0xFFFF << 8)
        y = k.RegAlloc("turned", found + ((1 << 7) - (1 << 23)))
        with k.when(x < 0):
            k.set(y, ((1 << 23) + (1 << 7) - 1) - found)
        return k.let("tanh", y >> 8)


def _lstm(name: str, shape: LstmShape) -> Function:
    return _Lstm(name, shape).build()
