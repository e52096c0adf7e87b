"""Quantisation in ONNX files: the steps of a tensor's numbers, and pairs that change no byte."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onchip.readers.constants import Constants
from onchip.readers.onnx_graph import Graph, Node

__all__ = ["CONVERSIONS", "Steps", "fetched_with", "joins_alike", "mismatch", "steps_of"]

CONVERSIONS = frozenset({"DequantizeLinear", "QuantizeLinear"})

_NARROW = frozenset({2, 3, 4, 5})
"""ONNX's integers of 8 and 16 bits: in single precision, n x scale / scale rounds to n for all of them."""

_FLOAT, _INT32 = 1, 6


@dataclass(frozen=True, slots=True)
class Steps:
    """The numbers behind the integers of a tensor: (n - `zero`) x `scale`, all of one `element` type."""

    scale: float
    zero: int
    element: int


def steps_of(graph: Graph, node: Node, constants: Constants) -> Steps | None:
    """Return the steps of a `QuantizeLinear` or `DequantizeLinear`.

    None unless quantising what was dequantised by them gives every integer back: one scale of single
    precision, far from its limits, integers of 8 or 16 bits, and no setting but the axis.
    """
    if any(a.name not in ("axis", "saturate") for a in node.proto.attribute) or len(node.inputs) < 2:
        return None
    stored = node.inputs[0] if node.op == "DequantizeLinear" else node.outputs[0]
    return _steps(graph, constants, stored, node.inputs[1], node.inputs[2] if len(node.inputs) > 2 else "")


def fetched_with(graph: Graph, constants: Constants, reader: Node, dequantised: Node) -> list[str]:
    """Return what is fetched of the operands of a `DequantizeLinear` whose result a node reads.

    Not zero points that are all zero. Nor the scales of biases of 32 bits that are those of the sums which
    they are added to: such a bias is added as it is.
    """
    names = [name for name in dequantised.inputs if name]
    if len(names) > 2:
        zero = constants.value(names[2])
        if zero is not None and zero.size and not zero.any():
            del names[2]
    if (
        len(names) > 1
        and graph.element.get(names[0]) == _INT32
        and _of_the_sum(graph, constants, reader, names[1])
    ):
        del names[1]
    return names


def _of_the_sum(graph: Graph, constants: Constants, reader: Node, scale: str) -> bool:
    """Return whether a scale is the product of the scales of a node's first two operands."""
    makers = [graph.producer.get(name) for name in reader.inputs[:2]]
    if len(makers) < 2 or any(maker is None or maker.op != "DequantizeLinear" for maker in makers):
        return False
    values = [constants.value(maker.inputs[1]) for maker in makers if maker is not None]
    mine = constants.value(scale) if scale in constants else None
    if mine is None or any(value is None for value in values):
        return False
    product = np.multiply(*(np.asarray(value, np.float64).reshape(-1) for value in values))
    return product.size in (1, mine.size) and bool(np.allclose(mine.reshape(-1), product, rtol=1e-4))


def joins_alike(graph: Graph, node: Node, constants: Constants) -> bool:
    """Return whether a `QLinearConcat` only joins: its result has the steps of all its operands."""
    triples = zip(node.inputs[2::3], node.inputs[3::3], node.inputs[4::3], strict=False)
    found = {_steps(graph, constants, *triple) for triple in triples}
    found.add(_steps(graph, constants, node.outputs[0], *node.inputs[:2]))
    return len(found) == 1 and None not in found


def _steps(graph: Graph, constants: Constants, stored: str, by: str, shifted: str) -> Steps | None:
    """Return the steps of the tensor `stored`, by the names of its scale and its zero point."""
    element = graph.element.get(stored, 0)
    if element not in _NARROW or by not in constants or graph.element.get(by) != _FLOAT:
        return None
    scale, zero = constants.value(by), 0
    if scale is None or scale.size != 1:
        return None
    if shifted:
        found = constants.value(shifted) if shifted in constants else None
        if found is None or found.size != 1:
            return None
        zero = int(found.reshape(-1)[0])
    step = float(scale.reshape(-1)[0])
    return Steps(step, zero, element) if math.isfinite(step) and 1e-30 < step < 1e30 else None


def mismatch(graph: Graph, node: Node) -> str:
    """Return in words why the operands of a quantising or dequantising node do not fit together, or ""."""
    if node.op not in CONVERSIONS or not node.inputs:
        return ""
    if len(node.inputs) < 2 or not node.inputs[1]:
        return "it has no scale"
    zero = node.inputs[2] if len(node.inputs) > 2 else ""
    scale_shape, zero_shape = graph.shape.get(node.inputs[1]), graph.shape.get(zero)
    stored = node.inputs[0] if node.op == "DequantizeLinear" else node.outputs[0]
    if zero and stored and graph.element.get(zero, 0) != graph.element.get(stored, 0):
        return f"its zero point {zero} is not of the type of {stored}"
    if zero and scale_shape is not None and zero_shape is not None:
        one_each = math.prod(scale_shape) == math.prod(zero_shape) == 1
        if scale_shape != zero_shape and not one_each:
            return f"its scale is {list(scale_shape)} and its zero point {list(zero_shape)}"
    shape = graph.shape.get(node.inputs[0])
    if shape is None or scale_shape is None or math.prod(scale_shape) == 1 or node.integer("block_size", 0):
        return ""
    axis = node.integer("axis", 1)
    if len(scale_shape) != 1 or not -len(shape) <= axis < len(shape) or shape[axis] != scale_shape[0]:
        return f"scales {list(scale_shape)} do not go along axis {axis} of {list(shape)}"
    return ""
