"""How an operator walks over its operands, from the ONNX node: what proofs about overlap and halos need.

Kinds are those the checker proves things about: `conv`, `depthwise`, `pool` (global pooling has the kernel of
its input), `fully_connected` (a matrix of parameters; shapes are (rows, features)) and `elementwise` (the
largest operands have an element for each one of the output; smaller ones of the same type are broadcast).
`input` and `output` are what the node itself sees, NCHW.
"""

from __future__ import annotations

import math

from onchip.network import Geometry
from onchip.readers.onnx_graph import Graph, Node
from onchip.readers.padding import same_padding
from onchip.readers.traits import ELEMENTWISE

__all__ = ["geometry_of"]


def geometry_of(graph: Graph, node: Node, activations: list[str]) -> Geometry | None:
    """The node's geometry, None where `Geometry` cannot say it; `activations` are its non-constant inputs."""
    if node.domain or not activations or not node.outputs[0]:
        return None
    result = graph.shape[node.outputs[0]]
    first = graph.shape[node.inputs[0]] if node.inputs[0] else ()
    if node.op in ELEMENTWISE:
        counts = {math.prod(graph.shape[a]) for a in activations}
        types = {graph.element.get(a) for a in activations}
        if max(counts) == math.prod(result) and (len(counts) == 1 or len(types) == 1):
            return Geometry("elementwise", input=result, output=result)
        return None
    if activations != [node.inputs[0]]:
        return None
    match node.op:
        case "Conv" | "ConvInteger" | "QLinearConv" if len(first) == 4:
            weight = graph.shape[node.inputs[3 if node.op == "QLinearConv" else 1]]
            groups = node.integer("group", 1)
            kind = "depthwise" if groups == first[1] and groups > 1 else "conv"
            return _windowed(node, kind, first, result, weight[2:], groups)
        case "MaxPool" | "AveragePool" | "LpPool" if len(first) == 4:
            return _windowed(node, "pool", first, result, node.integers("kernel_shape") or (), 1)
        case "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" if len(first) == 4:
            return Geometry("pool", input=first, output=result, kernel=first[2:])
        case "Gemm" if len(first) == 2 and not node.integer("transA", 0):
            return Geometry("fully_connected", input=first, output=result)
        case "MatMul" if len(first) >= 2 and len(result) == len(first):
            rows = math.prod(first[:-1])
            if rows * result[-1] == math.prod(result):
                return Geometry("fully_connected", input=(rows, first[-1]), output=(rows, result[-1]))
    return None


def _windowed(
    node: Node,
    kind: str,
    first: tuple[int, ...],
    result: tuple[int, ...],
    kernel: tuple[int, ...],
    groups: int,
) -> Geometry | None:
    if len(kernel) != 2 or len(result) != 4:
        return None
    stride = node.integers("strides") or (1, 1)
    dilation = node.integers("dilations") or (1, 1)
    auto = node.attribute("auto_pad")
    mode = b"NOTSET" if auto is None else auto.s
    padding = node.integers("pads") or (0, 0, 0, 0)
    if mode == b"VALID":
        padding = (0, 0, 0, 0)
    elif mode in (b"SAME_UPPER", b"SAME_LOWER"):
        lower = mode == b"SAME_LOWER"
        padding = same_padding(first[2:], result[2:], kernel, stride, dilation, more_before=lower)
    return Geometry(
        kind,
        input=first,
        output=result,
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
