"""The rules of reach of onnxruntime's own operators that have no plain form.

Attention with its projection, or with a cache, runs whole.
"""

from __future__ import annotations

from math import prod

from onchip.readers.digits import Need, everything, flat, widened
from onchip.readers.onnx_graph import Node
from onchip.readers.reach_more import rotated
from onchip.readers.reach_rules import Needs, NoRule, Rule, Walk, add, attention_needs, broadcast
from onchip.readers.traits import VENDOR
from onchip.readers.vendor import batches_first

__all__ = ["VENDOR_RULES"]


def _skip(walk: Walk, node: Node, position: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs of a normalised sum (0), or of the sum itself (3)."""
    if position not in (0, 3):
        raise NoRule
    rows = (*dims[:-1], widened(dims[-1])) if position == 0 else dims
    made, found = walk.shape(node.outputs[position]), Needs()
    added = (2, 3) if node.op == "SkipSimplifiedLayerNormalization" else (2, 3, 4)
    for i, name in enumerate(node.inputs):
        if not name:
            continue
        # The bias (last) belongs to the sum, scale and shift to what is made of it.
        need = rows if i < 2 or i == added[-1] else dims
        add(found, name, flat(broadcast(walk.shape(name), made, need)))
    return found


def _matmul(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs of a product of matrices that are stored turned."""
    a, b = node.inputs[:2]
    left, right, made = walk.shape(a), walk.shape(b), walk.shape(node.outputs[0])
    turned = node.integer("transA", 0), node.integer("transB", 0)
    if a == b:
        return {a: walk.all_of(a)}
    left, right = batches_first(node, "A", left), batches_first(node, "B", right)
    inner = walk.summed(node, dims, left[-2 if turned[0] else -1])
    rows, columns = [dims[-2], inner], [inner, dims[-1]]
    found = {}
    for letter, name, shape, matrix in (
        ("A", a, left, rows[::-1] if turned[0] else rows),
        ("B", b, right, columns[::-1] if turned[1] else columns),
    ):
        batch = broadcast(shape[:-2], made[:-2], dims[:-2])
        later = node.integer(f"transBatch{letter}", 0) and len(shape) > 2
        found[name] = flat([matrix[0], *batch, matrix[1]] if later else [*batch, *matrix])
    return found


def _narrow(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs of a product with a matrix of a few bits an element: [features, blocks, bytes]."""
    found = {node.inputs[0]: flat([*dims[:-1], (everything(walk.shape(node.inputs[0])[-1]),)])}
    features, group = node.integer("N", 0), (*node.inputs, *[""] * 5)[4]
    for name in filter(None, node.inputs[1:]):
        size = prod(walk.shape(name))
        rest = (everything(size // features),) if size > features else ()
        by_feature = size % features == 0 and name != group
        add(found, name, flat([dims[-1], rest]) if by_feature and size else walk.all_of(name))
    return found


def _rotary(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs of a rotation: of a row all features of one head, at its own position."""
    positions = node.inputs[1]
    need, rows = rotated(walk, node, dims, node.integer("num_heads", 0))
    found = {node.inputs[0]: need}
    shape = walk.shape(positions)
    add(found, positions, flat(rows) if len(shape) == 2 else walk.all_of(positions))
    for name in node.inputs[2:]:
        add(found, name, walk.all_of(name))
    return found


def _heads(walk: Walk, node: Node, position: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs of an attention of several heads, without a cache, bias or padding."""
    names = [*node.inputs, *[""] * 10][:10]
    if position or any(names[i] for i in (3, 4, 6, 7, 8, 9)) or any(node.outputs[1:]) or not all(names[:3]):
        raise NoRule
    if any(len(walk.shape(name)) != 3 for name in names[:3]):
        raise NoRule
    heads = node.integer("num_heads", 0)
    return attention_needs(walk, node, (names[0], names[1], names[2], names[5]), (heads, heads), dims)


VENDOR_RULES: dict[tuple[str, str], Rule] = {
    (VENDOR, "FusedMatMul"): _matmul,
    (VENDOR, "MatMulNBits"): _narrow,
    (VENDOR, "MultiHeadAttention"): _heads,
    (VENDOR, "RotaryEmbedding"): _rotary,
    (VENDOR, "SkipLayerNormalization"): _skip,
    (VENDOR, "SkipSimplifiedLayerNormalization"): _skip,
}
"""The rules by domain and operator."""
