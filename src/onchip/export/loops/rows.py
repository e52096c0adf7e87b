"""The C of nodes that make an element, or a row, of a whole row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onchip.export.loops.nodes import Nodes, Rule
from onchip.export.loops.text import literal, regrouped

if TYPE_CHECKING:
    import onnx

__all__ = ["ROWS"]

F32 = np.dtype(np.float32)


def _softmax(nodes: Nodes, node: onnx.NodeProto) -> None:
    value = nodes.value(node.input[0])
    old = nodes.opset < 13
    axis = int(nodes.number(node, "axis", 1 if old else -1)) % len(value.shape)
    over = list(range(axis, len(value.shape))) if old else [axis]
    size = int(np.prod([value.shape[i] for i in over]))
    body = [
        "float most = row[0];",
        "double sum = 0.0;",
        f"for (ix j = 1; j < {size}; ++j) if (row[j] > most) most = row[j];",
    ]
    if node.op_type == "LogSoftmax":
        body += [
            f"for (ix j = 0; j < {size}; ++j) sum += exp((double)(row[j] - most));",
            f"for (ix j = 0; j < {size}; ++j) row[j] = row[j] - most - (float)log(sum);",
        ]
    else:
        body += [
            f"for (ix j = 0; j < {size}; ++j) {{ row[j] = expf(row[j] - most); sum += (double)row[j]; }}",
            f"for (ix j = 0; j < {size}; ++j) row[j] = (float)((double)row[j] / sum);",
        ]
    nodes.row(node.output[0], over, value, body)


def _norm(nodes: Nodes, node: onnx.NodeProto) -> None:
    """Bring rows to one mean and spread, or (RMS) to one root of the mean square."""
    value = nodes.value(node.input[0])
    rank = len(value.shape)
    axis = int(nodes.number(node, "axis", -1)) % rank
    over = list(range(axis, rank))
    size = int(np.prod(value.shape[axis:]))
    epsilon = literal(np.float32(nodes.number(node, "epsilon", 1e-5)), F32)
    centred = node.op_type == "LayerNormalization"
    inner = regrouped(["j"], [size], list(value.shape[axis:]))
    indices = [f"i{n}" for n in range(axis)] + inner
    scale = f" * {nodes.broadcast(node.input[1], indices)}"
    bias = f" + {nodes.broadcast(node.input[2], indices)}" if len(node.input) > 2 and node.input[2] else ""
    body = ["double mean = 0.0, square = 0.0;"]
    if centred:
        body += [f"for (ix j = 0; j < {size}; ++j) mean += (double)row[j];", f"mean /= {size}.0;"]
    body += [
        f"for (ix j = 0; j < {size}; ++j) square += ((double)row[j] - mean) * ((double)row[j] - mean);",
        f"const double spread = 1.0 / sqrt(square / {size}.0 + (double){epsilon});",
        f"for (ix j = 0; j < {size}; ++j) row[j] = (float)(((double)row[j] - mean) * spread){scale}{bias};",
    ]
    nodes.row(node.output[0], over, value, body)


def _by_channel(nodes: Nodes, node: onnx.NodeProto) -> None:
    value = nodes.value(node.input[0])
    rank = len(value.shape)
    if node.op_type != "InstanceNormalization":
        raise nodes.refuse(f"{node.op_type}")
    over = list(range(2, rank))
    size = int(np.prod(value.shape[2:]))
    epsilon = literal(np.float32(nodes.number(node, "epsilon", 1e-5)), F32)
    scale, bias = (nodes.value(name).at(["i1"]) for name in node.input[1:3])
    body = [
        "double mean = 0.0, square = 0.0;",
        f"for (ix j = 0; j < {size}; ++j) mean += (double)row[j];",
        f"mean /= {size}.0;",
        f"for (ix j = 0; j < {size}; ++j) square += ((double)row[j] - mean) * ((double)row[j] - mean);",
        f"const double spread = 1.0 / sqrt(square / {size}.0 + (double){epsilon});",
        f"for (ix j = 0; j < {size}; ++j)"
        f" row[j] = (float)(((double)row[j] - mean) * spread) * {scale} + {bias};",
    ]
    nodes.row(node.output[0], over, value, body)


REDUCED = {
    "ReduceMean": ("0.0", "a += (double)x", "a / {n}.0"),
    "ReduceSum": ("0.0", "a += (double)x", "a"),
    "ReduceMax": ("-INFINITY", "a = (double)x > a ? (double)x : a", "a"),
    "ReduceMin": ("INFINITY", "a = (double)x < a ? (double)x : a", "a"),
    "ReduceSumSquare": ("0.0", "a += (double)x * (double)x", "a"),
    "ReduceL2": ("0.0", "a += (double)x * (double)x", "sqrt(a)"),
    "ReduceL1": ("0.0", "a += fabs((double)x)", "a"),
    "GlobalAveragePool": ("0.0", "a += (double)x", "a / {n}.0"),
    "GlobalMaxPool": ("-INFINITY", "a = (double)x > a ? (double)x : a", "a"),
}


def _reduce(nodes: Nodes, node: onnx.NodeProto) -> None:
    nodes.simple = False
    value = nodes.value(node.input[0])
    if value.kind != F32:
        raise nodes.refuse("a row of other numbers than floats of 32 bits")
    rank = len(value.shape)
    kept = True
    if node.op_type.startswith("Global"):
        axes = list(range(2, rank))
    else:
        stated = nodes.whole(node, 1, "axes")
        if not stated and nodes.number(node, "noop_with_empty_axes", 0):
            raise nodes.refuse("a reduction along no axes")
        axes = [axis % rank for axis in stated or range(rank)]
        kept = bool(nodes.number(node, "keepdims", 1))
    start, add, end = REDUCED[node.op_type]
    size = int(np.prod([value.shape[i] for i in axes]))

    def made(i: list[str]) -> list[str]:
        rest = iter(i)
        inner = {}
        loops = []
        for axis in axes:
            loops.append(f"for (ix k{axis} = 0; k{axis} < {value.shape[axis]}; ++k{axis})")
            inner[axis] = f"k{axis}"
        if kept:
            indices = [inner.get(n, x) for n, x in enumerate(i)]
        else:
            indices = [inner[n] if n in inner else next(rest) for n in range(rank)]
        return [
            f"double a = {start};",
            *loops,
            f"{{ const float x = {value.at(indices)}; {add}; }}",
            f"return (float)({end.format(n=size)});",
        ]

    nodes.emit(node.output[0], made, keep=True)


ROWS: dict[str, Rule] = {
    **dict.fromkeys(REDUCED, _reduce),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _softmax),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"), _norm),
    "InstanceNormalization": _by_channel,
}
