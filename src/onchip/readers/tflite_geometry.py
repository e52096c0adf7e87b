"""How a TFLite operator walks over its operands: what proofs about overlap and halos need.

Kinds as in `onchip.readers.geometry`; shapes are NHWC, as all of TFLite.
"""

from __future__ import annotations

import math

from onchip.network import Geometry
from onchip.readers.padding import same_padding
from onchip.readers.tflite_graph import Node, TfliteGraph
from onchip.readers.tflite_traits import ELEMENTWISE

__all__ = ["geometry_of"]

_SAME = 0  # the schema's Padding


def geometry_of(graph: TfliteGraph, node: Node, activations: list[int]) -> Geometry | None:
    """The node's geometry, None where `Geometry` cannot say it; `activations` are its computed operands."""
    if len(node.outputs) != 1 or not activations:
        return None
    shape = [row.shape for row in graph.tensors]
    result = shape[node.outputs[0]]
    if node.type in ELEMENTWISE:
        counts = {math.prod(shape[a]) for a in activations}
        types = {graph.tensors[a].element for a in activations}
        if max(counts) == math.prod(result) and (len(counts) == 1 or len(types) == 1):
            return Geometry("elementwise", input=result, output=result, layout="NHWC")
        return None
    if activations != [node.inputs[0]]:
        return None
    first = shape[node.inputs[0]]
    match node.type:
        case "CONV_2D" | "DEPTHWISE_CONV_2D" if len(first) == 4 and len(node.inputs) > 1:
            weight = shape[node.inputs[1]]
            if len(weight) != 4:
                return None
            if node.type == "DEPTHWISE_CONV_2D":
                return _windowed(node, "depthwise", first, result, weight[1:3], first[3])
            groups = first[3] // weight[3] if weight[3] and first[3] % weight[3] == 0 else 1
            return _windowed(node, "conv", first, result, weight[1:3], groups)
        case "AVERAGE_POOL_2D" | "MAX_POOL_2D" | "L2_POOL_2D" if len(first) == 4:
            kernel = (node.options.get("FilterHeight", 0), node.options.get("FilterWidth", 0))
            return _windowed(node, "pool", first, result, kernel, 1)
        case "MEAN" if len(first) == 4 and len(node.inputs) > 1:
            axes = graph.numbers(node.inputs[1]) or []
            if sorted(a % 4 for a in axes) == [1, 2] and math.prod(result) == first[0] * first[3]:
                return Geometry("pool", first, (first[0], 1, 1, first[3]), kernel=first[1:3], layout="NHWC")
        case "FULLY_CONNECTED" if len(node.inputs) > 1 and len(shape[node.inputs[1]]) == 2:
            wide, deep = shape[node.inputs[1]]
            rows, rest = divmod(math.prod(first), deep or 1)
            if not rest and rows * wide == math.prod(result):
                return Geometry("fully_connected", (rows, deep), (rows, wide), layout="NHWC")
    return None


def _windowed(
    node: Node,
    kind: str,
    first: tuple[int, ...],
    result: tuple[int, ...],
    kernel: tuple[int, ...],
    groups: int,
) -> Geometry | None:
    if len(result) != 4 or not node.options or min(kernel) < 1:
        return None
    stride = (node.options["StrideH"], node.options["StrideW"])
    dilation = (node.options.get("DilationHFactor", 1), node.options.get("DilationWFactor", 1))
    if min(*stride, *dilation) < 1:
        return None
    padding = (0, 0, 0, 0)
    if node.options["Padding"] == _SAME:
        padding = same_padding(first[1:3], result[1:3], kernel, stride, dilation)
    return Geometry(kind, first, result, kernel, stride, padding, dilation, groups, "NHWC")
