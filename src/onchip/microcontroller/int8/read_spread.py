"""Operands that neither is as large as the result: one is spread in front of the operator.

Kernels of two maps read one operand in the result's shape, and another that is the same, a pixel or a number
for all. Of other shapes, as of a number times a constant for each channel, the first computed operand is
repeated by an operator of its own, and constants are repeated as they are read.
"""

from __future__ import annotations

from dataclasses import replace

from onchip.microcontroller.int8.read_site import INT8, INT16, four
from onchip.readers.tflite_graph import Node, TensorRow, TfliteGraph

__all__ = ["SPREADING", "with_operands_spread"]

SPREADING = ("ADD", "LOOKUP_TWO", "MAXIMUM", "MINIMUM", "MUL", "SQUARED_DIFFERENCE", "SUB")
"""The operators of two operands, which may differ in shape."""


def with_operands_spread(graph: TfliteGraph) -> TfliteGraph:
    """Return the graph with such operands spread; the same object where it has none."""
    tensors, nodes = list(graph.tensors), []
    for node in graph.nodes:
        t = _small(graph, node)
        if t is not None:
            made, row = graph.tensors[node.outputs[0]], graph.tensors[t]
            tensors.append(
                replace(row, index=len(tensors), name=f"{row.name}_spread", shape=made.shape, variable=False)
            )
            nodes.append(Node(node.index, "BROADCAST_TO", (t,), (len(tensors) - 1,)))
            node = replace(node, inputs=tuple(len(tensors) - 1 if i == t else i for i in node.inputs))
        nodes.append(node)
    if len(nodes) == len(graph.nodes):
        return graph
    return replace(graph, tensors=tuple(tensors), nodes=tuple(nodes))


def _small(graph: TfliteGraph, node: Node) -> int | None:
    """Return the operand that is spread; None where an operator does without."""
    count = len(graph.tensors)
    if node.type not in SPREADING or len(node.inputs) < 2 or len(node.outputs) != 1:
        return None
    if any(not 0 <= t < count for t in (*node.inputs, *node.outputs)):
        return None
    made = graph.tensors[node.outputs[0]]
    if made.element not in (INT8, INT16) or not _sizes(made):
        return None
    rows = [graph.tensors[t] for t in node.inputs[:2]]
    computed = [row for row in rows if row.data is None]
    if not computed or not all(_spreads(row, made) for row in rows):
        return None
    wanted = four(made.shape)
    if any(four(row.shape) == wanted for row in computed):
        odd = [
            row for row in computed if four(row.shape) not in (wanted, (1, 1, 1, wanted[-1]), (1, 1, 1, 1))
        ]
        return odd[0].index if odd else None
    return computed[0].index


def _sizes(row: TensorRow) -> bool:
    return min(row.shape, default=1) > 0


def _spreads(row: TensorRow, made: TensorRow) -> bool:
    """Return whether a tensor's shape, ones in front, fits the result's along every axis."""
    if not _sizes(row) or len(row.shape) > len(made.shape):
        return False
    padded = (1,) * (len(made.shape) - len(row.shape)) + tuple(row.shape)
    return all(size in (1, whole) for size, whole in zip(padded, made.shape, strict=True))
