"""The values of an ONNX graph while it is translated: tensors with the order of their axes, and constants."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onchip.base.errors import ModelError
from onchip.microcontroller.int8.onnx_qdq.steps import Step
from onchip.microcontroller.int8.onnx_qdq.tables import INT8, Tables
from onchip.readers.constants import Constants
from onchip.readers.external import read_array
from onchip.readers.onnx_graph import Graph
from onchip.readers.tflite_graph import Quantisation

__all__ = ["CHANNELS_LAST", "Array", "Held", "Quantised", "Values"]

Array = np.ndarray[Any, Any]
CHANNELS_LAST = (0, 3, 1, 2)
"""For each axis of a map in the file, the axis of the tensor that it is: channels lie last."""
INT8_ONNX, UINT8_ONNX, INT32_ONNX = 3, 2, 6


@dataclass(frozen=True)
class Held:
    """The tensor that holds a value; axis i of the file is axis `lies[i]` of the tensor."""

    row: int
    lies: tuple[int, ...]

    @property
    def plain(self) -> bool:
        return self.lies == tuple(range(len(self.lies)))


@dataclass(frozen=True)
class Quantised:
    """A constant of integers without a zero point: real = scales * values, one for all or along `axis`."""

    values: Array
    scales: tuple[float, ...]
    axis: int

    def reals(self) -> Array:
        shape = [1] * self.values.ndim
        if len(self.scales) > 1:
            shape[self.axis] = len(self.scales)
        found: Array = self.values * np.asarray(self.scales, np.float64).reshape(shape)
        return found


@dataclass
class Values:
    """All that is known of every value: `held` in tensors, `stored` as constants of integers."""

    graph: Graph
    constants: Constants
    tables: Tables
    held: dict[str, Held] = field(default_factory=dict)
    stored: dict[str, Quantised] = field(default_factory=dict)

    def refuse(self, step: Step, reason: str) -> ModelError:
        return ModelError(reason, where=self.graph.where, item=step.label)

    # -- constants -------------------------------------------------------------------------------------------

    def constant(self, name: str) -> Array | None:
        """Return the numbers of a constant; None if it is computed from an input."""
        if name in self.graph.weights:
            return read_array(self.graph.weights[name], self.graph.folder, where=self.graph.where)
        return self.constants.value(name) if name in self.constants else None

    def needed(self, step: Step, position: int, what: str) -> Array:
        found = self.constant(step.inputs[position]) if position < len(step.inputs) else None
        if found is None:
            raise self.refuse(step, f"has {what} that are no constants")
        return found

    def numbers(self, step: Step, position: int, attribute: str) -> list[int] | None:
        """Return whole numbers that newer operators have as an operand, older ones as an attribute."""
        if attribute in step.attributes:
            return step.many(attribute, ())
        if position >= len(step.inputs) or not step.inputs[position]:
            return None
        return [int(v) for v in self.needed(step, position, attribute).reshape(-1)]

    def steps(self, step: Step) -> tuple[Array, Array, bool]:
        """Return scales, zero points and whether integers are unsigned, of a conversion."""
        scales = np.atleast_1d(self.needed(step, 1, "scales")).reshape(-1)
        if not np.isfinite(scales).all() or (scales <= 0).any():
            raise self.refuse(step, "has a scale that is no positive number")
        stored = step.inputs[0] if step.op == "DequantizeLinear" else step.outputs[0]
        element = self.graph.element.get(stored, UINT8_ONNX if step.op == "QuantizeLinear" else 0)
        zeros = np.zeros(1, np.int64)
        if len(step.inputs) > 2 and step.inputs[2]:
            found = self.needed(step, 2, "zero points")
            element = {np.dtype("u1"): UINT8_ONNX, np.dtype("i1"): INT8_ONNX}.get(found.dtype, element)
            zeros = np.atleast_1d(found).reshape(-1).astype(np.int64)
            if found.dtype == np.int32:
                element = INT32_ONNX
        if element not in (INT8_ONNX, UINT8_ONNX, INT32_ONNX):
            raise self.refuse(step, "converts from or to neither int8 nor uint8")
        return scales, zeros, element == UINT8_ONNX

    def store(self, step: Step) -> None:
        """Keep a dequantised constant, its zero point taken off."""
        values = self.constant(step.inputs[0])
        if values is None:
            raise self.refuse(step, f"reads {step.inputs[0]}, which no step has made")
        scales, zeros, _ = self.steps(step)
        axis = step.whole("axis", 1) if len(scales) > 1 else 0
        shape = [1] * values.ndim
        if len(zeros) > 1:
            shape[axis] = len(zeros)
        moved = values.astype(np.int64) - (zeros.reshape(shape) if len(zeros) > 1 else int(zeros[0]))
        self.stored[step.outputs[0]] = Quantised(moved, tuple(float(s) for s in scales), axis)

    # -- tensors ---------------------------------------------------------------------------------------------

    def shape(self, name: str) -> tuple[int, ...]:
        found = self.graph.shape.get(name)
        if found is None:
            raise ModelError("has no shape that is known", where=self.graph.where, item=f"tensor {name}")
        return found

    def reading(self, step: Step, position: int = 0) -> Held:
        """Return the tensor of an operand; refuse one that is neither quantised nor constant."""
        name = step.inputs[position] if position < len(step.inputs) else ""
        if name not in self.held:
            raise self.refuse(step, f"reads {name or 'nothing'}, which is not quantised")
        return self.held[name]

    def quantisation(self, held: Held) -> Quantisation:
        found = self.tables.rows[held.row].quantisation
        assert found is not None
        return found

    def like(self, name: str, shape: tuple[int, ...], lies: tuple[int, ...], of: Quantisation) -> Held:
        """Add a tensor for a value of the file's `shape`; return where it lies."""
        stored = [0] * len(shape)
        for axis, place in enumerate(lies):
            stored[place] = shape[axis]
        return Held(self.tables.row(name, stored, INT8, of), lies)

    def ordered(self, step: Step, held: Held, lies: tuple[int, ...]) -> Held:
        """Return a value with its axes lying in another order."""
        if held.lies == lies:
            return held
        row = self.tables.rows[held.row]
        order = [held.lies[lies.index(place)] for place in range(len(lies))]
        made = self.tables.row(
            f"{row.name} ordered", [row.shape[a] for a in order], row.element, row.quantisation
        )
        self.tables.node(step.index, "TRANSPOSE", (held.row, self.tables.whole("order", order)), (made,))
        return Held(made, lies)

    def plain(self, step: Step, held: Held) -> Held:
        return self.ordered(step, held, tuple(range(len(held.lies))))

    def rescaled(self, step: Step, held: Held, of: Quantisation) -> Held:
        """Return a value on another scale."""
        row = self.tables.rows[held.row]
        if row.quantisation == of:
            return held
        made = self.tables.row(f"{row.name} on another scale", row.shape, INT8, of)
        self.tables.node(step.index, "QUANTIZE", (held.row,), (made,))
        return replace(held, row=made)
