"""Operators of onnxruntime's own domain: which are read, and the shapes of their results.

`onnx` knows none of them. Those with a plain form (`onchip.readers.plain`) have its shape; the rules of the
others are here. Their documentation is onnxruntime's ContribOperators page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from onchip.readers.onnx_graph import Graph, Node

if TYPE_CHECKING:
    import onnx

__all__ = ["batches_first", "has_rule", "vendor_macs", "vendor_shapes"]

Contents = Mapping[str, "onnx.TensorProto"]
Shape = tuple[int, ...]
Made = list[tuple[int, Shape] | None]
"""By result, its element type and shape; None for one that is not known."""


def _of(graph: Graph, node: Node, position: int) -> Shape | None:
    name = node.inputs[position] if position < len(node.inputs) else ""
    return graph.shape.get(name) if name else None


def _element(graph: Graph, node: Node, position: int = 0) -> int:
    name = node.inputs[position] if position < len(node.inputs) else ""
    return graph.element.get(name, 0)


def _same(graph: Graph, node: Node, contents: Contents) -> Made:
    x = _of(graph, node, 0)
    return [None if x is None else (_element(graph, node), x)]


def _skip(graph: Graph, node: Node, contents: Contents) -> Made:
    """Return the types of a normalisation of a sum: the result, its mean and deviation, the sum."""
    x = _of(graph, node, 0)
    if x is None:
        return [None]
    one = (1, (*x[:-1], 1))
    return [(_element(graph, node), x), one, one, (_element(graph, node), x)]


def _pooled(graph: Graph, node: Node, contents: Contents) -> Made:
    """Return the type of a global pool over maps with their channels last."""
    x = _of(graph, node, 0)
    return [None if x is None else (_element(graph, node), (x[0], *(1,) * (len(x) - 2), x[-1]))]


def _matmul(graph: Graph, node: Node, contents: Contents) -> Made:
    """Return the type of a product of matrices that may be turned."""
    a, b = _of(graph, node, 0), _of(graph, node, 1)
    if a is None or b is None or min(len(a), len(b)) < 2:
        return [None]
    a, b = batches_first(node, "A", a), batches_first(node, "B", b)
    rows = a[-1] if node.integer("transA", 0) else a[-2]
    columns = b[-2] if node.integer("transB", 0) else b[-1]
    batch = _broadcast(a[:-2], b[:-2])
    return [None if batch is None else (_element(graph, node), (*batch, rows, columns))]


def batches_first(node: Node, operand: str, shape: Shape) -> Shape:
    """Return the shape of operand A or B of a product with its batches before its rows, where they follow."""
    if not node.integer(f"transBatch{operand}", 0) or len(shape) < 3:
        return shape
    return (*shape[1:-1], shape[0], shape[-1])


def _broadcast(one: Shape, other: Shape) -> Shape | None:
    count = max(len(one), len(other))
    pairs = zip((1,) * (count - len(one)) + one, (1,) * (count - len(other)) + other, strict=True)
    found = []
    for a, b in pairs:
        if a != b and 1 not in (a, b):
            return None
        found.append(max(a, b))
    return tuple(found)


def _narrow(graph: Graph, node: Node, contents: Contents) -> Made:
    """Return the type of a product with a matrix of few bits an element, in blocks of its columns."""
    x, features = _of(graph, node, 0), node.integer("N", 0)
    if x is None or not features or x[-1] != node.integer("K", 0):
        return [None]
    return [(_element(graph, node), (*x[:-1], features))]


def _attention(graph: Graph, node: Node, contents: Contents) -> Made:
    """Return the types of an attention with its projection: rows of features, and the keys and values."""
    x, w = _of(graph, node, 0), _of(graph, node, 1)
    heads = node.integer("num_heads", 0)
    if x is None or w is None or len(x) != 3 or len(w) != 2 or heads < 1:
        return [None]
    parts = node.integers("qkv_hidden_sizes") or (w[1] // 3,) * 3
    if len(parts) != 3:
        return [None]
    past = _of(graph, node, 4)
    rows = x[1] + (past[3] if past is not None and len(past) == 5 else 0)
    kind = _element(graph, node)
    return [(kind, (*x[:2], parts[2])), (kind, (2, x[0], heads, rows, parts[2] // heads))]


def _heads(graph: Graph, node: Node, contents: Contents) -> Made:
    """Return the types of an attention of several heads: rows of features, keys, values."""
    query, key, value = (_of(graph, node, i) for i in range(3))
    heads, kind = node.integer("num_heads", 0), _element(graph, node)
    if query is None or heads < 1:
        return [None]
    if len(query) == 5:  # queries, keys and values of each head in turn
        return [(kind, (*query[:2], query[2] * query[4]))]
    if len(query) != 3:
        return [None]
    if key is not None and len(key) == 5:
        return [(kind, query)]
    if value is None:
        return [None]
    if len(value) == 4:
        return [(kind, (*query[:2], value[1] * value[3]))]
    return [(kind, (*query[:2], value[2]))]


def _grouped(graph: Graph, node: Node, contents: Contents) -> Made:
    """Return the types of an attention whose heads share keys: rows of features, and the caches."""
    query, key = _of(graph, node, 0), _of(graph, node, 1)
    heads, shared = node.integer("num_heads", 0), node.integer("kv_num_heads", 0)
    if query is None or len(query) != 3 or heads < 1 or shared < 1:
        return [None]
    width = query[2] // heads if key is not None else query[2] // (heads + 2 * shared)
    kind = _element(graph, node)
    made: Made = [(kind, (*query[:2], heads * width))]
    past = _of(graph, node, 3)
    name = node.inputs[6] if len(node.inputs) > 6 else ""
    if name in contents:
        from onnx import numpy_helper

        total = int(numpy_helper.to_array(contents[name]).max(initial=0))
        rows = max(total, past[2] if past is not None and len(past) == 4 else 0)
        cache = (_element(graph, node, 3) or kind, (query[0], shared, rows, width))
        made += [cache, cache]
    return made


def _dynamic(graph: Graph, node: Node, contents: Contents) -> Made:
    """Return the type of a product of what is quantised by the range of all of its elements."""
    return [None if found is None else (1, found[1]) for found in _matmul(graph, node, contents)]


def _recurrent(graph: Graph, node: Node, contents: Contents) -> Made:
    """Return the types of a recurrent layer: all steps, and the last step's result and cells."""
    x, again = _of(graph, node, 0), _of(graph, node, 2)
    if x is None or again is None or (len(x), len(again)) != (3, 3):
        return [None]
    directions, hidden, last = again[0], again[1], (_element(graph, node), (again[0], x[1], again[1]))
    return [(_element(graph, node), (x[0], directions, x[1], hidden)), last, last]


_RULES: dict[str, Callable[[Graph, Node, Contents], Made]] = {
    "Attention": _attention,
    "DynamicQuantizeLSTM": _recurrent,
    "DynamicQuantizeMatMul": _dynamic,
    "FusedMatMul": _matmul,
    "GroupQueryAttention": _grouped,
    "MatMulNBits": _narrow,
    "MultiHeadAttention": _heads,
    "QLinearGlobalAveragePool": _pooled,
    "QLinearSoftmax": _same,
    "RotaryEmbedding": _same,
    "SkipLayerNormalization": _skip,
    "SkipSimplifiedLayerNormalization": _skip,
}


def vendor_shapes(graph: Graph, node: Node, contents: Contents) -> Made | None:
    """Return what is known of the results of a node of onnxruntime's domain; None if it has no rule."""
    rule = _RULES.get(node.op)
    try:
        return None if rule is None else rule(graph, node, contents)
    except (ArithmeticError, IndexError):
        return [None]  # the file states shapes or settings that its nodes cannot have


def has_rule(op: str) -> bool:
    """Return whether the shapes of an operator of onnxruntime's domain are known without a plain form."""
    return op in _RULES


def vendor_macs(graph: Graph, node: Node) -> int:
    """Return the multiply-accumulates of one run of a node of onnxruntime's domain; 0 if not known."""
    made = graph.shape.get(node.outputs[0])
    x, other = _of(graph, node, 0), _of(graph, node, 1)
    if made is None or x is None:
        return 0
    match node.op:
        case "MatMulNBits" | "DynamicQuantizeMatMul":
            return math.prod(made) * x[-1]
        case "DynamicQuantizeLSTM":
            again = _of(graph, node, 2)
            if other is None or again is None:
                return 0
            return x[0] * x[1] * (math.prod(other) + math.prod(again))
        case "FusedMatMul" if len(x) > 1:
            x = batches_first(node, "A", x)
            return math.prod(made) * x[-2 if node.integer("transA", 0) else -1]
        case "Attention" if len(x) == 3 and other is not None:
            parts = node.integers("qkv_hidden_sizes") or (made[-1],) * 3
            return math.prod(x) * other[-1] + math.prod(x[:2]) * x[1] * (parts[0] + made[-1])
        case "MultiHeadAttention" if len(x) == 3 and other is not None and len(other) > 2:
            columns = other[-2] if len(other) == 4 else other[1]
            return (math.prod(x) + math.prod(made)) * columns
        case "GroupQueryAttention":
            past = _of(graph, node, 3)
            columns = max(x[1], past[2]) if past is not None and len(past) == 4 else x[1]
            return 2 * math.prod(made) * columns
    return 0
