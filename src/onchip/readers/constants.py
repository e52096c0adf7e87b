"""The values that do not depend on the network's inputs, and the contents of the small ones.

The reader knows which values are constant without computing them, so it never evaluates weights, however many
transposes and casts they pass through. Onnx's reference evaluator computes only what shapes, axes and slices
need.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.allowance import spend
from onchip.readers.elements import BITS
from onchip.readers.external import is_external, read_array
from onchip.readers.onnx_graph import SMALL, Graph, Node

if TYPE_CHECKING:
    import onnx

__all__ = ["Constants"]

_RANDOM = {
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
}
_SHAPE = {"Shape", "Size"}

_COMPUTED = frozenset({
    "Abs", "Add", "And", "ArgMax", "ArgMin", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr",
    "BitwiseXor", "Cast", "CastLike", "Ceil", "Clip", "Compress", "Concat", "Constant", "ConstantOfShape",
    "CumSum", "DequantizeLinear", "Div", "Equal", "Exp", "Expand", "EyeLike", "Flatten", "Floor", "Gather",
    "GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Log",
    "MatMul", "Max", "Mean", "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "OneHot", "Or", "Pow",
    "QuantizeLinear", "Range", "Reciprocal", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "Relu", "Reshape", "Round", "ScatterElements", "ScatterND", "Sign", "Slice", "Split",
    "Sqrt", "Squeeze", "Sub", "Sum", "Tile", "TopK", "Transpose", "Trilu", "Unique", "Unsqueeze", "Where",
    "Xor",
})  # fmt: skip
"""Operators for the arithmetic of shapes: their work and memory grow only with their operands and results.
Other operators may need any amount of work for a few elements."""

_AS_MANY = frozenset({"Compress", "NonZero", "Unique"})
"""Operators among these whose results have an unknown number of elements, a few for each of an operand's."""

MOST_STEPS = 20_000
"""The most nodes that are computed."""


class Constants:
    """The constant values of a graph; `visit` takes the nodes in topological order."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.names: set[str] = set(graph.weights)
        self.steps = 0
        self._values: dict[str, np.ndarray[Any, Any] | None] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def visit(self, node: Node) -> bool:
        """Return whether the node's outputs are constant; record them if they are."""
        if node.op in _RANDOM and node.domain == "":
            return False
        if node.op in _SHAPE and node.domain == "":
            constant = node.inputs[0] in self.names or node.inputs[0] in self.graph.shape
        else:
            constant = all(name in self.names for name in node.inputs if name)
        if constant:
            self.names.update(name for name in node.outputs if name)
        return constant

    def value(self, name: str) -> np.ndarray[Any, Any] | None:
        """Return the contents of a small constant; None if it is large, has no data, or is not constant."""
        pending = [name]
        while pending:
            spend()
            current = pending[-1]
            if current in self._values:
                pending.pop()
                continue
            missing = [i for i in self._needs(current) if i not in self._values]
            if missing:
                pending.extend(missing)
                continue
            self._values[current] = None
            self._compute(current)
            pending.pop()
        return self._values[name]

    def _needs(self, name: str) -> list[str]:
        """Return the values that must be known before this one can be computed."""
        graph = self.graph
        node = graph.producer.get(name)
        if name in graph.weights or node is None or name not in self.names or node.op in _SHAPE:
            return []
        if math.prod(graph.shape.get(name, ())) > SMALL:
            return []
        # A large operand stops the evaluation before anything is computed for it.
        return [i for i in node.inputs if i]

    def _compute(self, name: str) -> None:
        graph = self.graph
        if name not in self.names or math.prod(graph.shape.get(name, ())) > SMALL:
            return
        if name in graph.weights:
            self._values[name] = self._weight(name)
            return
        node = graph.producer.get(name)
        if node is None:
            return
        if node.op in _SHAPE and node.domain == "":
            self._values[name] = self._shape_of(node)
            return
        operands = {i: self._values.get(i) for i in node.inputs if i}
        if any(v is None for v in operands.values()):
            return
        if node.domain or node.op not in _COMPUTED:
            return
        if name not in graph.shape and node.op not in _AS_MANY:
            return  # the result's size is not known
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise graph.refuse(f"its shape is computed in more than {MOST_STEPS:,} steps", node.label)
        for output, value in zip(node.outputs, self._evaluate(node, operands), strict=False):
            if output:
                numbers = isinstance(value, np.ndarray) and value.dtype.kind in "biufc"
                self._values[output] = value if numbers and value.size <= SMALL else None

    def _weight(self, name: str) -> np.ndarray[Any, Any] | None:
        graph = self.graph
        tensor, shape = graph.weights[name], graph.weight_shape[name]
        if tensor.data_type not in BITS:
            return None  # texts, or an unknown type
        if graph.is_large(name) or not has_data(tensor, shape) or tuple(tensor.dims) != shape:
            return None
        return read_array(tensor, graph.folder, where=graph.where)

    def _shape_of(self, node: Node) -> np.ndarray[Any, Any] | None:
        shape = self.graph.shape.get(node.inputs[0])
        if shape is None:
            return None
        if node.op == "Size":
            size = math.prod(shape)
            return np.array(size, np.int64) if size < 1 << 63 else None
        end = node.attribute("end")
        return np.array(shape[node.integer("start", 0) : None if end is None else end.i], np.int64)

    def _evaluate(self, node: Node, operands: dict[str, Any]) -> list[Any]:
        from onnx.reference import ReferenceEvaluator

        if node.op == "Constant":
            operands = {}
        if node.op == "GatherElements":  # onnx's own stops at 64 rows
            rows, indices = (operands[name] for name in node.inputs)
            try:
                return [np.take_along_axis(rows, indices, node.integer("axis", 0))]
            except (IndexError, ValueError):
                return []
        if node.op in ("Squeeze", "Unsqueeze") and (axes := node.integers("axes")):  # onnx's own knows 13 on
            change = np.expand_dims if node.op == "Unsqueeze" else np.squeeze
            try:
                return [change(operands[node.inputs[0]], axes)]
            except ValueError:
                return []
        try:
            with np.errstate(all="ignore"):
                run = ReferenceEvaluator(node.proto, opsets=dict(self.graph.opsets))
                return list(run.run(None, operands))
        except Exception:
            return []  # unknown: the node that needs it reports the value without a shape


def has_data(tensor: onnx.TensorProto, shape: tuple[int, ...]) -> bool:
    """Return whether a weight carries its values (a structure-only file's do not)."""
    return bool(
        is_external(tensor)
        or math.prod(shape) == 0
        or tensor.raw_data
        or tensor.float_data
        or tensor.int32_data
        or tensor.int64_data
        or tensor.double_data
        or tensor.uint64_data
        or tensor.string_data
    )
