"""The multiply-accumulates of a node, from the shapes of its operands."""

from __future__ import annotations

import math

from onchip.readers.onnx_graph import Graph, Node
from onchip.readers.plain import plain_of
from onchip.readers.traits import VENDOR
from onchip.readers.vendor import vendor_macs

__all__ = ["macs_of"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def macs_of(graph: Graph, node: Node) -> int:
    """Return the multiply-accumulates of one run: convolutions, products, recurrences, attention; else 0.

    Additions, comparisons and look-ups count nothing: such a node is bound by its bytes.
    """
    node = plain_of(node)
    if not node.outputs or not node.outputs[0]:
        return 0
    if node.domain:
        return vendor_macs(graph, node) if node.domain == VENDOR else 0
    shapes = [graph.shape.get(name, graph.weight_shape.get(name)) for name in node.inputs]
    result = graph.shape.get(node.outputs[0])
    match node.op:
        case "Conv" | "DeformConv":
            weight = shapes[1]
            return math.prod(result) * math.prod(weight[1:]) if result and weight else 0
        case "ConvTranspose":
            weight, first = shapes[1], shapes[0]
            return math.prod(first) * math.prod(weight[1:]) if first and weight else 0
        case "Gemm" if shapes[0] and result:
            return math.prod(result) * shapes[0][0 if node.integer("transA", 0) else -1]
        case "MatMul" if shapes[0] and result is not None:
            return math.prod(result) * shapes[0][-1]
        case "LSTM" | "GRU" | "RNN" if shapes[0] and shapes[1] and shapes[2]:
            # Steps times batch, whatever the layout; each direction multiplies both matrices every step.
            directions, rows, inputs = shapes[1]
            return math.prod(shapes[0][:2]) * directions * rows * (inputs + rows // _GATES[node.op])
        case "Einsum" if all(shapes):
            return _einsum(node, [s for s in shapes if s])
        case "Attention" if shapes[0] and shapes[1] and shapes[2] and result:
            # scores of every query with every key, then the mean of the values, over all heads
            queries = math.prod(shapes[0][:-1])
            return queries * shapes[1][-2] * shapes[0][-1] + math.prod(result) * shapes[1][-2]
    return 0


def _einsum(node: Node, shapes: list[tuple[int, ...]]) -> int:
    """Return one for every combination of indices; 0 for anything but a product, or with an ellipsis."""
    equation = node.attribute("equation")
    text = "" if equation is None else equation.s.decode("ascii", "replace").replace(" ", "")
    terms = text.split("->")[0].split(",")
    if "." in text or len(shapes) < 2 or len(terms) != len(shapes):
        return 0
    size: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        if len(term) != len(shape):
            return 0
        size.update(zip(term, shape, strict=True))
    return math.prod(size.values())
