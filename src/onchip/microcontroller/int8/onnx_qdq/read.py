"""A quantised ONNX file as the tables of a `.tflite` file, and as an `Int8Model`.

A value is quantised where the file dequantises it, and an operator's result where a reader quantises it, with
activations and reshapes between; readers that take it as floats take its quantised numbers. What has no such
scale stays floats, and is left to the caller at the network's end. Outputs that are constants are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

import numpy as np

from onchip.base.errors import ModelError
from onchip.microcontroller.int8.model import Int8Model, Original
from onchip.microcontroller.int8.onnx_qdq.elements import (
    FIXED,
    PAIRS,
    SINGLE,
    concat,
    fixed,
    pair,
    reshape,
    single,
    sliced,
    split,
    transpose,
)
from onchip.microcontroller.int8.onnx_qdq.steps import Step, steps_of
from onchip.microcontroller.int8.onnx_qdq.sums import conv, matrix, transposed_conv
from onchip.microcontroller.int8.onnx_qdq.tables import FLOAT32, INT8, Tables
from onchip.microcontroller.int8.onnx_qdq.values import CHANNELS_LAST, Held, Quantised, Values
from onchip.microcontroller.int8.onnx_qdq.windows import mean, pad, pool, resize
from onchip.microcontroller.int8.read import model_in
from onchip.readers.onnx_graph import parse
from onchip.readers.shapes import infer
from onchip.readers.tflite_graph import Quantisation, TfliteGraph

__all__ = ["READ", "onnx_model_of"]

SUMS: Mapping[str, Callable[[Values, Step, Quantisation, int], Held]] = {
    "Conv": conv,
    "ConvTranspose": transposed_conv,
    "Gemm": matrix,
    "MatMul": matrix,
    **dict.fromkeys(PAIRS, pair),
}
"""Operators on whose scale the activation behind them is fused."""
SCALED: Mapping[str, Callable[[Values, Step, Quantisation], Held]] = {
    "Concat": concat,
    "GlobalAveragePool": mean,
    "ReduceMean": mean,
    **dict.fromkeys(SINGLE, single),
}
"""Operators that make a scale of their own."""
KEPT: Mapping[str, Callable[[Values, Step], Held]] = {
    "AveragePool": pool,
    "MaxPool": pool,
    "Pad": pad,
    "Resize": resize,
    "Slice": sliced,
    "Transpose": transpose,
    "Upsample": resize,
    **dict.fromkeys(("Dropout", "Flatten", "Reshape", "Squeeze", "Unsqueeze"), reshape),
    **dict.fromkeys(FIXED, fixed),
}
"""Operators on the scale of their input, or on one that is always the same."""
READ = (*SUMS, *SCALED, *KEPT, "Clip", "Identity", "Split", "QuantizeLinear", "DequantizeLinear")
_SAME = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Identity", "Dropout"})
RELU, RELU6 = 1, 3


def onnx_model_of(content: bytes, *, name: str, where: str, folder: Path | None = None) -> Int8Model:
    """Return the int8 network in the bytes of an ONNX file; messages call the file `where`."""
    graph = parse(content, where=where, folder=folder)
    symbols = {
        d.dim_param: 1
        for info in graph.inputs.values()
        for d in info.type.tensor_type.shape.dim[:1]
        if d.dim_param and not d.dim_value
    }
    constants = infer(graph, symbols)
    graph.keep(graph.live())
    translation = _Translation(
        Values(graph, constants, Tables(where, spare=len(graph.nodes))), steps_of(graph)
    )
    table = translation.graph()
    model = model_in(table, name, hashlib.sha256(content).hexdigest())
    return replace(model, source=where, originals=translation.originals(model))


@dataclass
class _Translation:
    values: Values
    steps: list[Step]
    readers: dict[str, list[Step]] = field(default_factory=dict)
    inputs: list[int] = field(default_factory=list)
    unsigned: set[str] = field(default_factory=set)

    def graph(self) -> TfliteGraph:
        graph = self.values.graph
        for step in self.steps:
            for name in dict.fromkeys(step.inputs):
                self.readers.setdefault(name, []).append(step)
        for name in graph.inputs:
            self._feed(name)
        for step in self.steps:
            conversion = step.op in ("QuantizeLinear", "DequantizeLinear")
            if conversion or any(name not in self.values.constants for name in step.outputs if name):
                self._guarded(step)
        ends = [self._end(name) for name in graph.outputs if not self._is_constant(name)]
        return self.values.tables.graph(self.inputs, ends)

    # -- ends ------------------------------------------------------------------------------------------------

    def _feed(self, name: str) -> None:
        """Add an input: integers as they are, floats to be quantised, maps with their channels last."""
        element, shape = self.values.graph.element.get(name), self.values.shape(name)
        lies = tuple(range(len(shape)))
        if len(shape) == 4 and self._is_map(name):
            lies = CHANNELS_LAST
        stored = [0] * len(shape)
        for axis, place in enumerate(lies):
            stored[place] = shape[axis]
        if element == FLOAT32:
            row = self.values.tables.row(name, stored, FLOAT32)
        else:
            maker = self._dequantiser(name)
            if maker is None or element not in (2, 3):
                raise ModelError(
                    "is an input of neither floats nor quantised bytes",
                    where=self.values.graph.where,
                    item=f"tensor {name}",
                )
            row = self.values.tables.row(name, stored, INT8, self._quantisation(maker))
            if element == 2:
                self.unsigned.add(self.values.tables.rows[row].name)
        self.inputs.append(row)
        self.values.held[name] = Held(row, lies)

    def _dequantiser(self, name: str) -> Step | None:
        """Return what dequantises an input, at once or behind another order or shape."""
        todo = [name]
        while todo:
            for step in self.readers.get(todo.pop(), ()):
                if step.op == "DequantizeLinear":
                    return step
                if step.op in _SAME:
                    todo += step.outputs
        return None

    def _is_map(self, name: str) -> bool:
        """Return whether a value reaches an operator on maps before its axes are put in another order."""
        seen: set[str] = set()
        todo = [name]
        while todo:
            for step in self.readers.get(todo.pop(), ()):
                if step.op in (
                    "Conv",
                    "MaxPool",
                    "AveragePool",
                    "GlobalAveragePool",
                    "ConvTranspose",
                    "Resize",
                ):
                    return True
                if step.op in (
                    "QuantizeLinear",
                    "DequantizeLinear",
                    "Relu",
                    "Clip",
                    "Add",
                    "Mul",
                    "Sub",
                    "Pad",
                    "Concat",
                ):
                    todo += [out for out in step.outputs if out not in seen]
                    seen.update(step.outputs)
        return False

    def _is_constant(self, name: str) -> bool:
        return name in self.values.constants or name in self.values.stored

    def _end(self, name: str) -> int:
        held = self.values.held.get(name)
        if held is None:
            raise ModelError("depends on no input", where=self.values.graph.where, item=f"output {name}")
        if held.row not in self.inputs:
            self.values.tables.rename(held.row, name)
        return held.row

    def originals(self, model: Int8Model) -> dict[int, Original]:
        """Return the types of inputs and outputs in the file, with the order of its axes."""
        found = dict(model.originals)
        ends = (*self.values.graph.inputs, *self.values.graph.outputs)
        turned = {
            self.values.tables.rows[self.values.held[name].row].name
            for name in ends
            if name in self.values.held and self.values.held[name].lies == CHANNELS_LAST
        }
        for t in (*model.inputs, *model.outputs):
            name = model.tensors[t].name
            old = found.get(t)
            if name in self.unsigned:
                old = Original("UINT8")
            elif old is None and name in self.values.graph.outputs:
                element = self.values.graph.element.get(name)
                old = {FLOAT32: Original("FLOAT32"), 2: Original("UINT8")}.get(element or 0)
            if name in turned and max(model.tensors[t].shape[1:3]) > 1:
                old = replace(old or Original("INT8"), channels_first=True)
            if old is not None:
                found[t] = old
        return found

    # -- steps -----------------------------------------------------------------------------------------------

    def _guarded(self, step: Step) -> None:
        """Read a step; operands and attributes that do not fit one another make one line."""
        try:
            self._take(step)
        except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as problem:
            said = str(problem).splitlines()
            raise self.values.refuse(
                step, f"has operands or attributes that do not fit: {said[0] if said else 'of other shapes'}"
            ) from None

    def _take(self, step: Step) -> None:
        values = self.values
        match step.op:
            case "QuantizeLinear":
                self._quantise(step)
            case "DequantizeLinear":
                self._dequantise(step)
            case "Identity" if step.inputs[0] in values.held:
                values.held[step.outputs[0]] = values.held[step.inputs[0]]
            case _ if self._float(step):
                self._leave(step)
            case "Split":
                for name, held in zip(step.outputs, split(values, step), strict=True):
                    values.held[name] = held
            case "Clip" | "Relu" if self._changes_nothing(step):
                values.held[step.outputs[0]] = values.held[step.inputs[0]]
            case "Clip":
                self._clip(step)
            case op if op in SUMS:
                out, activation = self._wanted(step)
                values.held[step.outputs[0]] = SUMS[op](values, step, out, activation)
            case op if op in SCALED:
                out, _ = self._wanted(step)
                values.held[step.outputs[0]] = SCALED[op](values, step, out)
            case op if op in KEPT:
                values.held[step.outputs[0]] = KEPT[op](values, step)
            case _:
                raise values.refuse(step, f"is not supported; supported are {', '.join(sorted(READ))}")

    def _float(self, step: Step) -> bool:
        """Return whether a step reads floats that nothing has quantised, or makes some that nothing does."""
        rows = [self.values.held[name].row for name in step.inputs if name in self.values.held]
        if any(self.values.tables.rows[row].element == FLOAT32 for row in rows) or not rows:
            return True
        known = step.op in SUMS or step.op in SCALED or step.op in FIXED
        return (known and self._scale(step) is None) or (step.op not in READ)

    def _scale(self, step: Step) -> tuple[Quantisation, list[Step]] | None:
        """Return the scale of a step's result: that of its readers, or of all that is joined."""
        found = self._target(step.outputs[0])
        if found is not None or step.op != "Concat":
            return found
        held = [self.values.held.get(name) for name in step.inputs]
        scales = {None if h is None else self.values.quantisation(h) for h in held}
        only = scales.pop() if len(scales) == 1 else None
        return None if only is None else (only, [])

    def _leave(self, step: Step) -> None:
        """Add an operator on floats, by its own name: the reader leaves it to the caller, or refuses it."""
        values = self.values
        rows = []
        for name in step.inputs:
            held = values.held.get(name)
            if held is None:
                continue
            row = values.tables.rows[held.row]
            if row.element == INT8:
                made = values.tables.row(f"{row.name} in floats", row.shape, FLOAT32)
                values.tables.node(step.index, "DEQUANTIZE", (held.row,), (made,))
                held = Held(made, held.lies)
            rows.append(held.row)
        if not rows:
            raise values.refuse(
                step, f"reads {step.inputs[0] if step.inputs else 'nothing'}, which no step has made"
            )
        for name in step.outputs:
            if name:
                shape = values.graph.shape.get(name, ())
                made = values.tables.row(name, shape, FLOAT32)
                values.held[name] = Held(made, tuple(range(len(shape))))
                values.tables.node(step.index, step.op, rows, (made,))

    def _quantisation(self, step: Step) -> Quantisation:
        scales, zeros, unsigned = self.values.steps(step)
        if len(scales) != 1 or len(zeros) != 1:
            raise self.values.refuse(step, f"has {len(scales)} scales, where one for all is needed")
        return Quantisation((float(scales[0]),), (int(zeros[0]) - (128 if unsigned else 0),), 0)

    def _quantise(self, step: Step) -> None:
        values = self.values
        name = step.inputs[0]
        if name not in values.held:
            self._store_quantised(step)
            return
        held, of = values.held[name], self._quantisation(step)
        row = values.tables.rows[held.row]
        if row.element == FLOAT32:
            made = values.tables.row(step.outputs[0], row.shape, INT8, of)
            values.tables.node(step.index, "QUANTIZE", (held.row,), (made,))
            held = Held(made, held.lies)
        values.held[step.outputs[0]] = values.rescaled(step, held, of)

    def _store_quantised(self, step: Step) -> None:
        """Quantise a constant of floats; what dequantises it finds its integers."""
        values = self.values
        found = values.constant(step.inputs[0])
        if found is None:
            raise values.refuse(step, f"reads {step.inputs[0]}, which no step has made")
        scales, zeros, unsigned = values.steps(step)
        axis = step.whole("axis", 1) if len(scales) > 1 else 0
        shape = [1] * found.ndim
        if len(scales) > 1:
            shape[axis] = len(scales)
        low, high = (0, 255) if unsigned else (-128, 127)
        by, zero = scales.reshape(shape), zeros.reshape(shape) if len(zeros) > 1 else zeros[0]
        whole = np.clip(np.round(found / by).astype(np.int64) + zero, low, high) - zero
        values.stored[step.outputs[0]] = Quantised(whole, tuple(float(s) for s in scales), axis)

    def _dequantise(self, step: Step) -> None:
        values, name = self.values, step.inputs[0]
        if name in values.stored:
            values.stored[step.outputs[0]] = values.stored[name]
        elif name in values.held:
            held = values.held[name]
            of = self._quantisation(step)
            row = values.tables.rows[held.row]
            if row.quantisation is None:
                raise values.refuse(step, f"reads {name}, which is not quantised")
            if row.quantisation != of:  # the same bytes with another meaning
                made = values.tables.row(f"{name} taken otherwise", row.shape, INT8, of)
                values.tables.node(step.index, "RESHAPE", (held.row,), (made,))
                held = Held(made, held.lies)
            values.held[step.outputs[0]] = held
        elif name in values.graph.weights or name not in values.constants:
            values.store(step)  # others are computed, of many numbers: no weights

    # -- scales ----------------------------------------------------------------------------------------------

    def _target(self, name: str) -> tuple[Quantisation, list[Step]] | None:
        """Return the scale on which a reader wants a value, and the activations on the way there."""
        between: list[Step] = []
        while True:
            readers = self.readers.get(name, [])
            if name in self.values.graph.outputs or not readers:
                return None
            if quantising := [step for step in readers if step.op == "QuantizeLinear"]:
                return self._quantisation(quantising[0]), between
            if len(readers) != 1 or readers[0].op not in (*_SAME, "Relu", "Clip"):
                return None
            between += [] if readers[0].op in _SAME else [readers[0]]
            name = readers[0].outputs[0]

    def _wanted(self, step: Step) -> tuple[Quantisation, int]:
        """Return a step's scale, and the activation fused into it, unless its bytes make it by themselves."""
        found = self._scale(step)
        assert found is not None
        of, between = found
        activation = 0
        for other in between:
            low, high = self._limits(other)
            if self._inside(of, low, high):
                continue
            activation = {(0.0, inf): RELU, (0.0, 6.0): RELU6}.get((low, high), -1)
            if activation < 0 or step.op not in SUMS:
                raise self.values.refuse(other, f"clips to [{low:g}, {high:g}], which no activation does")
        return of, activation

    def _limits(self, step: Step) -> tuple[float, float]:
        if step.op == "Relu":
            return 0.0, inf
        ends = []
        for position, key, default in ((1, "min", -inf), (2, "max", inf)):
            end = step.attributes.get(key, default)
            if position < len(step.inputs) and step.inputs[position]:
                stored = self.values.stored.get(step.inputs[position])
                found = stored.reals() if stored else self.values.needed(step, position, "ends")
                end = found.reshape(-1)[0]
            ends.append(float(end))
        return ends[0], ends[1]

    def _inside(self, of: Quantisation, low: float, high: float) -> bool:
        """Return whether every byte of a scale lies between two numbers, to half a step."""
        scale, zero = of.scales[0], of.zero_points[0]
        return (-128 - zero) * scale >= low - scale / 2 and (127 - zero) * scale <= high + scale / 2

    def _changes_nothing(self, step: Step) -> bool:
        return self._inside(self.values.quantisation(self.values.held[step.inputs[0]]), *self._limits(step))

    def _clip(self, step: Step) -> None:
        """Clip a quantised value: by the scale behind it, or as RELU6 on its own."""
        values, limits = self.values, self._limits(step)
        held = values.held[step.inputs[0]]
        found = self._target(step.outputs[0])
        out = found[0] if found else values.quantisation(held)
        kind = {(0.0, inf): "RELU", (0.0, 6.0): "RELU6", (-1.0, 1.0): "RELU_N1_TO_1"}.get(limits)
        if kind is None:
            raise values.refuse(step, f"clips to [{limits[0]:g}, {limits[1]:g}], which no activation does")
        row = values.tables.rows[held.row]
        made = values.tables.row(step.outputs[0], row.shape, INT8, out)
        values.tables.node(step.index, kind, (held.row,), (made,))
        values.held[step.outputs[0]] = Held(made, held.lies)
