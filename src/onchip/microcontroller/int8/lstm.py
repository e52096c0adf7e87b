"""UNIDIRECTIONAL_SEQUENCE_LSTM as one layer: all steps of a sequence, and the cell behind them.

The layer makes the hidden state of every step, n bytes each, and behind them the last cell of n numbers of 16
bits. What the next inference begins with, hidden and cell, are its last bytes. The arithmetic is TensorFlow
Lite Micro's: gates in 16 bits, sigmoid and tanh by one table of 256 and the line between two entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import frexp
from typing import Any

import numpy as np

from onchip.microcontroller.int8.arithmetic import Whole, quantised_multiplier, scaled, wrapped
from onchip.microcontroller.int8.factors import Factor, channel_factor
from onchip.microcontroller.int8.model import Int8, Int32, Own, frozen_array
from onchip.microcontroller.int8.read_edges import plain_value
from onchip.microcontroller.int8.read_site import INT8, INT32, Site, Value
from onchip.microcontroller.int8.read_state import States
from onchip.microcontroller.int8.sigmoid import sigmoid_table
from onchip.microcontroller.int8.svdf import INT16, whole_numbers
from onchip.readers.tflite_graph import Node

__all__ = ["Gate", "Lstm", "lstm"]

GATES = ("forget", "input", "cell", "output")
INPUT_WEIGHTS, HIDDEN_WEIGHTS, BIASES = (2, 1, 3, 4), (6, 5, 7, 8), (13, 12, 14, 15)
"""The operator's operands, by gate in the order of `GATES`."""
NOT_READ = (9, 10, 11, 16, 17, 20, 21, 22, 23)
"""Peepholes, projections, normalisation."""
TANH = 4  # the schema's activation
LEAST_POWER = -26
"""The smallest scale of a cell, as a power of two."""


@dataclass(frozen=True, eq=False)
class Gate:
    """Weights of the input [n, inputs] and of the hidden state [n, n], biases, and a factor for each sum."""

    weights: Int8
    recurrent: Int8
    bias: Int32
    factor: Factor
    recurrent_factor: Factor


@dataclass(frozen=True, kw_only=True, eq=False)
class Lstm(Own):
    """Steps of an LSTM over a sequence; operands are the sequence, and the hidden state and cell before it.

    A cell is a number of 16 bits with 12 - `cell_shift` of them behind the point; `clip` bounds it, unless 0.
    """

    gates: tuple[Gate, Gate, Gate, Gate]
    steps: int
    input_offset: int
    hidden_offset: int
    forget: Factor
    update: Factor
    made: Factor
    output_offset: int
    cell_shift: int
    clip: int

    @property
    def units(self) -> int:
        return len(self.gates[0].bias)

    def compute(self, seen: Sequence[Int8]) -> Int8:
        x = seen[0].reshape(self.steps, -1).astype(np.int64) + self.input_offset
        hidden = seen[1].reshape(-1).astype(np.int64)
        cell = whole_numbers(seen[2], 2)
        rows = []
        for step in range(self.steps):
            sums = [self._gate(gate, x[step], hidden + self.hidden_offset) for gate in self.gates]
            forget, update, output = (_sigmoid(sums[i]) for i in (0, 1, 3))
            cell = _held(scaled(forget * cell, *self.forget)) + _held(
                scaled(update * _tanh(sums[2], 0), *self.update)
            )
            cell = _held(cell)
            if self.clip:
                cell = np.clip(cell, -self.clip, self.clip)
            made = scaled(_tanh(cell, self.cell_shift) * output, *self.made) + self.output_offset
            hidden = np.clip(made, -128, 127)
            rows.append(hidden.astype(np.int8))
        found: Int8 = np.concatenate([*rows, cell.astype("<i2").view(np.int8)]).reshape(self.output_shape)
        return found

    def _gate(self, gate: Gate, x: Whole, hidden: Whole) -> Whole:
        first = _held(scaled(wrapped(gate.weights.astype(np.int64) @ x + gate.bias), *gate.factor))
        second = _held(scaled(wrapped(gate.recurrent.astype(np.int64) @ hidden), *gate.recurrent_factor))
        return _held(first + second)


def _held(values: Any) -> Whole:
    """Return the values clamped to 16 bits."""
    found: Whole = np.clip(values, -(1 << 15), (1 << 15) - 1)
    return found


def _line(place: Whole, bits: int, most: int) -> Whole:
    """Return the table's value at a place with so many bits behind the point, with as many more."""
    table = np.array(sigmoid_table(), np.int64)
    at, rest = np.minimum(place >> bits, 254), place & ((1 << bits) - 1)
    return np.where(place >> bits >= 255, most, (table[at] << bits) + rest * (table[at + 1] - table[at]))


def _sigmoid(values: Whole) -> Whole:
    """Return the sigmoid of numbers with 12 bits behind the point, with 15."""
    x = values * 3
    found = _line(np.abs(x), 9, 0x7FFF << 10)
    return np.where(x >= 0, found + (1 << 9), (1 << 25) - found + (1 << 9) - 1) >> 10


def _tanh(values: Whole, shift: int) -> Whole:
    """Return the tanh, with 15 bits behind the point, of numbers with 12 - `shift` bits there."""
    x = (values * 3 + (1 << (-shift - 1))) >> -shift if shift < 0 else values * (3 << shift)
    found = _line(np.abs(x), 8, 0xFFFF << 8)
    half = 1 << 23
    return np.where(x >= 0, found - half + (1 << 7), half - found + (1 << 7) - 1) >> 8


def lstm(reading: States, node: Node) -> None:
    """Read the operator as a layer, the parts of what it makes, and its two states."""
    site = reading.site(node)
    if len(node.inputs) < 20 or any(site.has(p) for p in NOT_READ):
        raise site.refuse("has peepholes, a projection or a normalisation, which are not read")
    hidden, cell = site.row(18), site.row(19)
    if hidden.element != INT8 or cell.element != INT16 or not hidden.variable or not cell.variable:
        raise site.refuse(f"keeps {hidden.stated} and {cell.stated}: only INT8 and INT16 are read")
    if site.option("FusedActivationFunction", TANH) != TANH:
        raise site.refuse("has another activation than tanh")
    units, sequence = hidden.elements, site.row(0).shape
    if len(sequence) != 3 or (sequence[1] if site.option("TimeMajor", 0) else sequence[0]) != 1:
        raise site.refuse(f"reads a sequence of shape {list(sequence)}: only one at a time can be read")
    steps, inputs = max(sequence[:2]), sequence[2]
    if site.out.elements != steps * units or cell.elements != units:
        raise site.refuse(f"makes {list(site.out.shape)} in {steps} steps of {units} units")
    value = site.value(0)
    if not value.plain:
        raise site.refuse("reads what is transposed")
    out, kept = site.out_scale(), site.scale(18)
    if out != kept:
        raise site.refuse(f"makes what it keeps on another scale, {out.scale:g} and {kept.scale:g}")
    scale = 1.0 if cell.quantisation is None else cell.quantisation.scales[0]
    fraction, above = frexp(scale)
    power = above - 1
    if fraction != 0.5:
        raise site.refuse(f"keeps its cell on scale {scale:g}, which is no power of two")
    if not LEAST_POWER <= power <= 0:
        raise site.refuse(f"keeps its cell on scale 2^{power}: 2^{LEAST_POWER} to 1 can be read")
    layer = _layer(reading, site, value, steps, inputs, units, scale, power)
    made = reading.add_made(f"{layer.name} made", layer.output_shape, kept.scale, kept.zero_point)
    reading.layers.append(replace(layer, output=made))
    n = steps * units
    begins = {"hidden": (n - units, units), "cell": (n, 2 * units)}
    for part, (begin, size) in begins.items():
        name = f"{node.label} {part}"
        reading.new[name] = reading.part(f"{node.label}/{part}", f"{name} (new)", made, begin, size)
    outputs = reading.part(f"{node.label}/outputs", site.out.name, made, 0, n)
    reading.values[site.out.index] = plain_value(outputs.tensor, site.out.shape)


def _layer(
    reading: States, site: Site, value: Value, steps: int, inputs: int, units: int, scale: float, power: int
) -> Lstm:
    label, kept = site.node.label, site.scale(18)
    hidden = reading.begin(f"{label} hidden", units, kept.scale, kept.zero_point)
    cell = reading.begin(f"{label} cell", 2 * units, scale, 0)
    unit = 2.0**-15
    reals = float(np.float32(site.node.reals.get("CellClip", 0.0)))
    return Lstm(
        name=label,
        inputs=(value.tensor, hidden, cell),
        output=0,
        input_shapes=((1, steps, 1, inputs), (1, 1, 1, units), (1, 1, 1, 2 * units)),
        output_shape=(1, 1, 1, steps * units + 2 * units),
        gates=tuple(_gate(site, i, inputs, units) for i in range(len(GATES))),  # type: ignore[arg-type]
        steps=steps,
        input_offset=-site.scale(0).zero_point,
        hidden_offset=-kept.zero_point,
        forget=site.factor(quantised_multiplier(unit)),
        update=site.factor(quantised_multiplier(unit * unit / scale)),
        made=site.factor(quantised_multiplier(unit * unit / kept.scale)),
        output_offset=kept.zero_point,
        cell_shift=power + 12,
        clip=int(min(max(reals / scale, -32768.0), 32767.0)) if reals > 0 else 0,
    )


def _gate(site: Site, i: int, inputs: int, units: int) -> Gate:
    name = GATES[i]
    weights = site.constant(INPUT_WEIGHTS[i], INT8, f"weights of the {name} gate")
    recurrent = site.constant(HIDDEN_WEIGHTS[i], INT8, f"recurrent weights of the {name} gate")
    bias = site.constant(BIASES[i], INT32, f"biases of the {name} gate")
    if weights.shape != (units, inputs) or recurrent.shape != (units, units) or bias.size != units:
        raise site.refuse(f"has weights of shape {list(weights.shape)} in its {name} gate")
    [one] = site.weight_scales(INPUT_WEIGHTS[i], 0, 1)
    [other] = site.weight_scales(HIDDEN_WEIGHTS[i], 0, 1)
    return Gate(
        frozen_array(weights, np.int8),
        frozen_array(recurrent, np.int8),
        frozen_array(bias.reshape(-1), np.int32),
        site.factor(channel_factor(site.scale(0).scale, one, 2.0**-12)),
        site.factor(channel_factor(site.scale(18).scale, other, 2.0**-12)),
    )
