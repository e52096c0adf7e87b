"""The nodes of an ONNX graph as plain steps, operators on integers written as floats between conversions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onchip.readers.onnx_graph import Graph, Node

__all__ = ["AS_FLOATS", "Step", "steps_of"]

AS_FLOATS = " as floats"
"""Behind the name of bytes: the floats, in no file, that an operator on integers would make for them."""


@dataclass(frozen=True)
class Step:
    """An operator: its position in the file, its type, values, and attributes as Python values."""

    index: int
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The step's name in messages."""
        return f"{self.op}.{self.index}"

    def whole(self, name: str, default: int) -> int:
        return int(self.attributes.get(name, default))

    def many(self, name: str, default: Sequence[int]) -> list[int]:
        return [int(v) for v in self.attributes.get(name, default)]

    def text(self, name: str, default: str) -> str:
        found = self.attributes.get(name, default)
        return found.decode() if isinstance(found, bytes) else str(found)


_PLAIN = {"QLinearConv": "Conv", "QLinearMatMul": "MatMul", "QGemm": "Gemm"}
_PAIRS = {"QLinearAdd": "Add", "QLinearMul": "Mul"}
_SINGLE = {
    "QLinearAveragePool": "AveragePool",
    "QLinearGlobalAveragePool": "GlobalAveragePool",
    "QLinearLeakyRelu": "LeakyRelu",
    "QLinearSigmoid": "Sigmoid",
    "QLinearSoftmax": "Softmax",
}


def steps_of(graph: Graph) -> list[Step]:
    """Return the steps of a graph, in its order."""
    found: list[Step] = []
    for node in graph.nodes:
        step = _step(node)
        parts = _expanded(step)
        if len(parts) > 1:
            for part in parts[:-2]:
                _same_shape(graph, part.inputs[0], part.outputs[0])
            _same_shape(graph, step.outputs[0], parts[-2].outputs[0])
        found += parts
    return _with_biases(graph, found)


def _same_shape(graph: Graph, of: str, name: str) -> None:
    if of in graph.shape:
        graph.shape[name] = graph.shape[of]


def _with_biases(graph: Graph, steps: list[Step]) -> list[Step]:
    """Return the steps with constants that are added to a product with a matrix as the product's biases."""
    readers: dict[str, list[Step]] = {}
    makers = {name: step for step in steps for name in step.outputs}
    for step in steps:
        for name in step.inputs:
            readers.setdefault(name, []).append(step)
    fused: dict[int, Step] = {}
    gone: set[int] = set()
    for step in steps:
        behind = readers.get(step.outputs[0], []) if step.op == "MatMul" else []
        if len(behind) != 1 or behind[0].op != "Add" or step.outputs[0] in graph.outputs:
            continue
        others = [name for name in behind[0].inputs if name != step.outputs[0]]
        if len(others) == 1 and _is_bias(graph, makers, others[0]):
            fused[id(behind[0])] = Step(step.index, "MatMul", (*step.inputs, others[0]), behind[0].outputs)
            gone.add(id(step))
    return [fused.get(id(step), step) for step in steps if id(step) not in gone]


def _is_bias(graph: Graph, makers: Mapping[str, Step], name: str) -> bool:
    maker = makers.get(name)
    stored = maker.inputs[0] if maker is not None and maker.op == "DequantizeLinear" else name
    return stored in graph.weights and len(graph.weight_shape[stored]) == 1


def _step(node: Node) -> Step:
    from onnx import helper

    attributes = {a.name: helper.get_attribute_value(a) for a in node.proto.attribute}
    return Step(node.index, node.op, node.inputs, node.outputs, attributes)


def _expanded(step: Step) -> list[Step]:
    """Return an operator on integers as conversions around the operator on floats."""
    given = step.inputs
    match step.op:
        case "QLinearConv" | "QLinearMatMul":
            read, made, bias = [given[0:3], given[3:6]], given[6:8], given[8:9]
        case "QGemm":
            read, made, bias = [given[0:3], given[3:6]], given[7:9], given[6:7]
        case "QLinearAdd" | "QLinearMul":
            read, made, bias = [given[0:3], given[3:6]], given[6:8], ()
        case "QLinearConcat":
            read = [given[i : i + 3] for i in range(2, len(given), 3)]
            made, bias = given[0:2], ()
        case _ if step.op in _SINGLE:
            read, made, bias = [given[0:3]], given[3:5], ()
        case _:
            return [step]
    op = {**_PLAIN, **_PAIRS, **_SINGLE, "QLinearConcat": "Concat"}[step.op]
    names = [f"{step.outputs[0]}/{i}" for i in range(len(read))]
    outer = step.op == "QLinearConv" or (step.op == "QGemm" and step.whole("transB", 0))
    axis = {"axis": 0 if outer else 1}  # along which weights have a scale each
    out = step.outputs[0] + AS_FLOATS
    return [
        *(
            Step(step.index, "DequantizeLinear", tuple(r), (n,), axis)
            for r, n in zip(read, names, strict=True)
        ),
        Step(step.index, op, (*names, *bias), (out,), step.attributes),
        Step(step.index, "QuantizeLinear", (out, *made), step.outputs),
    ]
