"""The kernel of an LSTM: unit by unit, each gate's two sums, then the unit's cell and hidden state.

Hidden states lie in the output, a row for each step, and the cell behind them: no workspace is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onchip.microcontroller.int8.lstm import Lstm
from onchip.microcontroller.int8.sigmoid import sigmoid_table
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr, Var
from onchip.microcontroller.kernels.elements import packed
from onchip.microcontroller.kernels.own_use import OwnUse
from onchip.microcontroller.kernels.svdf import load_number, store_number

__all__ = ["lstm_use"]

HEAD, OF_GATE, TABLE = 10, 4, 256
"""Words in front of the gates' factors, of each gate's factors, of the table behind them."""
HIGHEST = (1 << 15) - 1


@dataclass(frozen=True, kw_only=True)
class LstmShape:
    """The parameters that a kernel is specialised on."""

    steps: int
    inputs: int
    units: int
    cell_shift: int
    clip: int = 0


def lstm_use(layer: Lstm) -> OwnUse:
    """Return the kernel of a layer."""
    shape = LstmShape(
        steps=layer.steps,
        inputs=layer.input_shapes[0][3],
        units=layer.units,
        cell_shift=layer.cell_shift,
        clip=layer.clip,
    )
    words = [layer.input_offset, layer.hidden_offset, *layer.forget, *layer.update, *layer.made]
    words += [layer.output_offset, 0]
    for gate in layer.gates:
        words += [*gate.factor, *gate.recurrent_factor]
    words += sigmoid_table()
    for gate in layer.gates:
        words += [int(b) for b in gate.bias]
    rows = [np.concatenate([gate.weights, gate.recurrent], axis=1) for gate in layer.gates]
    return OwnUse("lstm", _lstm, shape, words + packed(np.stack(rows).reshape(-1)))


class _Lstm:
    def __init__(self, name: str, shape: LstmShape) -> None:
        self.shape = shape
        k = self.k = Kernel(
            name, f"{shape.steps} steps of an LSTM of {shape.units} units over {shape.inputs} inputs."
        )
        lines, self.out, self.weights = k.lines("lines"), k.output("out"), k.flash("weights")
        names = (
            "input_offset hidden_offset forget forget_shift update update_shift made made_shift output_offset"
        )
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
        for unit in k.loop(0, shape.units, name="unit"):
            sums = [self.gate(number, unit, x, before) for number in range(4)]
            forget, update, output = (self.sigmoid(sums[i]) for i in (0, 1, 3))
            kept = call("scaled", forget * load_number(k, old, unit, 2), of["forget"], of["forget_shift"])
            more = call("scaled", update * self.tanh(sums[2], 0), of["update"], of["update_shift"])
            cell = k.let("new_cell", self.held(self.held(kept) + self.held(more)))
            if shape.clip:
                cell = k.let("clipped", k.least(k.most(cell, -shape.clip), shape.clip))
            store_number(k, cells, unit, cell, 2)
            product = k.let("product", self.tanh(cell, shape.cell_shift) * output)
            y = k.let("y", call("scaled", product, of["made"], of["made_shift"]) + of["output_offset"])
            k.RAMStore(out, unit, k.least(k.most(y, -128), 127))

    def held(self, value: Expr) -> Expr:
        """Return a value clamped to 16 bits."""
        k = self.k
        return k.let("held", k.least(k.most(k.let("value", value), -HIGHEST - 1), HIGHEST))

    def gate(self, number: int, unit: Expr, x: Expr, hidden: Expr) -> Expr:
        """Emit the two sums of a gate; return their scaled sum."""
        k, shape = self.k, self.shape
        factors = HEAD + OF_GATE * number
        biases = HEAD + 4 * OF_GATE + TABLE
        wide = shape.inputs + shape.units
        at = k.let("at", (unit + number * shape.units) * wide + 4 * (biases + 4 * shape.units))
        bias = k.constant(self.weights, unit + (biases + number * shape.units), "bias")
        parts = []
        sides: tuple[tuple[Expr, int, str, Expr | int], ...] = (
            (x, shape.inputs, "input_offset", bias),
            (hidden, shape.units, "hidden_offset", 0),
        )
        for i, (source, count, offset, first) in enumerate(sides):
            total = k.RegAlloc("total", first)
            behind = k.let("behind", at + shape.inputs * i)
            for j in k.loop(0, count, name="j"):
                byte = k.RAMLoad(source, j, Kind.BYTE, name="byte")
                k.set(total, total + (byte + self.of[offset]) * k.constant_byte(self.weights, behind + j))
            multiplier = k.constant(self.weights, factors + 2 * i, "multiplier")
            shift = k.constant(self.weights, factors + 2 * i + 1, "shift")
            parts.append(self.held(call("scaled", total, multiplier, shift)))
        return self.held(parts[0] + parts[1])

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
