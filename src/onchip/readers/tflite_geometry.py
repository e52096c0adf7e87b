"""The geometry of a TFLite operator: its walk over its operands, the basis of proofs about overlap and halos.

Kinds as in `onchip.readers.geometry`; shapes are NHWC, as all of TFLite.
"""

from __future__ import annotations

import math
from dataclasses import replace

from onchip.network import GATHERED, Geometry
from onchip.readers.padding import same_padding
from onchip.readers.tflite_graph import Node, TfliteGraph
from onchip.readers.tflite_places import cuts
from onchip.readers.tflite_traits import ELEMENTWISE

__all__ = ["geometry_of"]

_SAME = 0  # the schema's Padding
_UINT8 = 2  # ONNX's element type
_OVER_A_MAP = frozenset({"MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM"})
_ALONG_CHANNELS = frozenset({"L2_NORMALIZATION", "LOG_SOFTMAX", "SOFTMAX"})


def geometry_of(graph: TfliteGraph, node: Node, activations: list[int], *, whole: bool) -> Geometry | None:
    """Return the node's geometry, None if there is none; `activations` are its computed operands.

    Unless it reads `whole` tensors, none of them a view, its kind is gathered.
    """
    found = _walk(graph, node, activations)
    if found is not None:
        return found if whole else replace(found, kind=GATHERED + found.kind)
    if len(node.outputs) != 1 or not activations:
        return None
    first, made = graph.tensors[activations[0]].shape, graph.tensors[node.outputs[0]].shape
    return Geometry("other", input=first, output=made, layout="NHWC") if len(made) == 4 else None


def _walk(graph: TfliteGraph, node: Node, activations: list[int]) -> Geometry | None:
    """Return the geometry if one of the kinds fits."""
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
    if node.type == "CONCATENATION":
        return _concat(graph, node, activations, result)
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
        case kind if kind in _OVER_A_MAP and len(first) == 4 and len(node.inputs) > 1:
            axes = graph.numbers(node.inputs[1]) or []
            if sorted(a % 4 for a in axes) == [1, 2] and math.prod(result) == first[0] * first[3]:
                return Geometry("pool", first, (first[0], 1, 1, first[3]), kernel=first[1:3], layout="NHWC")
        case "FULLY_CONNECTED" if len(node.inputs) > 1 and len(shape[node.inputs[1]]) == 2:
            wide, deep = shape[node.inputs[1]]
            rows, rest = divmod(math.prod(first), deep or 1)
            if not rest and rows * wide == math.prod(result):
                return Geometry("fully_connected", (rows, deep), (rows, wide), layout="NHWC")
        case "PAD" | "PADV2" if len(first) == len(result) == 4 and len(node.inputs) > 1:
            amounts = graph.numbers(node.inputs[1]) or []
            if len(amounts) == 8 and amounts[:2] == amounts[6:] == [0, 0]:
                top, bottom, left, right = amounts[2:6]
                return Geometry("pad", first, result, padding=(top, left, bottom, right), layout="NHWC")
        case "LOCAL_RESPONSE_NORMALIZATION" if len(first) == 4:
            return Geometry("rowwise", first, result, layout="NHWC")
        case kind if kind in _ALONG_CHANNELS and first == result and len(first) in (2, 3, 4):
            flat = first if len(first) == 4 else (math.prod(first[:-1]), first[-1])
            return Geometry("rowwise", flat, flat, layout="NHWC")
        case "TRANSPOSE" if len(node.inputs) == 2 and len(first) in (4, 5):
            return _shuffle(first, graph.numbers(node.inputs[1]) or [])
        case "SLICE" | "STRIDED_SLICE" if len(first) == len(result) == 4:
            [part] = cuts(graph, node, first) or [[(0, 1, 1, 1)]]
            if all(
                axis == 3 or (start, count, step) == (0, first[axis], 1) for axis, start, count, step in part
            ):
                return Geometry("rowwise", first, result, layout="NHWC")
    return None


def _concat(
    graph: TfliteGraph, node: Node, activations: list[int], result: tuple[int, ...]
) -> Geometry | None:
    """Return a concat of maps over channels, each operand another tensor of the same element type.

    None for one that changes elements on the way: by an activation, or (uint8, whose operands may differ in
    scale from the output) by requantising them.
    """
    if node.options.get("FusedActivationFunction", 0) or graph.tensors[activations[0]].element == _UINT8:
        return None
    rows = [graph.tensors[t] for t in activations]
    if list(node.inputs) != activations or len(set(activations)) < len(activations) or len(result) != 4:
        return None
    if node.options.get("Axis", 0) % 4 != 3 or len({row.element for row in rows}) != 1:
        return None
    return Geometry("concat", rows[0].shape, result, layout="NHWC")


def _shuffle(first: tuple[int, ...], axes: list[int]) -> Geometry | None:
    """Return a transpose that leaves every pixel where it is: one of the groups of its channels."""
    if len(axes) != len(first) or axes[:3] != [0, 1, 2] or sorted(axes) != list(range(len(first))):
        return None
    shape = (*first[:3], math.prod(first[3:]))
    return Geometry("rowwise", shape, shape, layout="NHWC")


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
