"""The rules of reach of onnxruntime's own operators that have no plain form.

Attention with a cache runs whole.
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
    [inner] = walk.summed(node, dims, left[-2 if turned[0] else -1])
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
    """Return the needs of a product with a matrix of a few bits an element: [features, blocks, bytes].

    The sum is cut between blocks: zero points of fewer than eight bits share bytes, and come for all blocks.
    """
    x, matrix, scales, _zeros, group, addend = (*node.inputs, *[""] * 5)[:6]
    features, sized, width = node.integer("N", 0), node.integer("block_size", 0), walk.shape(x)[-1]
    blocks = width // sized if sized and width % sized == 0 and not group and not addend else 1
    outer: Need = ()
    if prod(walk.shape(scales)) == features * blocks:
        [outer] = walk.summed(node, dims, blocks)
    inside = (*outer, everything(width // blocks)) if outer else (everything(width),)
    found = {x: flat([*dims[:-1], inside])}
    for name in filter(None, node.inputs[1:]):
        size = prod(walk.shape(name))
        rest: Need = (everything(size // features),) if size > features else ()
        if outer and name in (matrix, scales):
            each = size // (features * blocks)
            rest = (*outer, *((everything(each),) if each > 1 else ()))
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
    """Return the needs of an attention of several heads, without a cache or packed operands."""
    names = [*node.inputs, *[""] * 10][:10]
    if position or any(names[i] for i in (6, 7, 8, 9)) or any(node.outputs[1:]) or not all(names[:3]):
        raise NoRule
    if any(len(walk.shape(name)) != 3 for name in names[:3]):
        raise NoRule
    heads = node.integer("num_heads", 0)
    found = attention_needs(walk, node, (names[0], names[1], names[2], names[5]), (heads, heads), dims)
    for name in filter(None, names[3:5]):  # a bias of queries, keys and values; the padding of keys
        add(found, name, walk.all_of(name))
    return found


def _projected(walk: Walk, node: Node, position: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs of an attention with its projection: all rows of a sequence, the weights of a head."""
    names = [*node.inputs, *[""] * 7][:7]
    made, heads = walk.shape(node.outputs[0]), node.integer("num_heads", 0)
    if position or names[4] or names[6] or any(node.outputs[1:]) or len(made) != 3 or heads < 1:
        raise NoRule
    x, w, each = walk.shape(names[0]), walk.shape(names[1]), made[2] // heads
    image, row, head, _ = walk.regrouped(dims, (*made[:2], heads, each))
    found = {names[0]: flat([image, (everything(x[1]),), (everything(x[2]),)])}
    columns: Need = (everything(w[1]),)
    if w[1] == 3 * made[2]:  # queries, keys and values of all heads, side by side
        columns = (everything(3), *head, everything(each))
    add(found, names[1], flat([(everything(w[0]),), columns]))
    if names[2]:
        add(found, names[2], flat([columns]))
    if names[3]:
        add(found, names[3], walk.all_of(names[3]))
    if names[5]:
        shape = (made[0], heads, made[1], x[1])
        rows = [image, head, row, (everything(x[1]),)]
        add(found, names[5], flat(broadcast(walk.shape(names[5]), shape, rows)))
    return found


def _grouped(walk: Walk, node: Node, position: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs of an attention whose heads share keys, without a cache."""
    names = [*node.inputs, *[""] * 5]
    if position or names[3] or names[4] or not all(names[:3]):
        raise NoRule
    heads = node.integer("num_heads", 0), node.integer("kv_num_heads", 0)
    found = attention_needs(walk, node, (names[0], names[1], names[2], ""), heads, dims)
    for name in filter(None, node.inputs[5:]):  # lengths, and tables of a rotation
        add(found, name, walk.all_of(name))
    return found


VENDOR_RULES: dict[tuple[str, str], Rule] = {
    (VENDOR, "Attention"): _projected,
    (VENDOR, "FusedMatMul"): _matmul,
    (VENDOR, "GroupQueryAttention"): _grouped,
    (VENDOR, "MatMulNBits"): _narrow,
    (VENDOR, "MultiHeadAttention"): _heads,
    (VENDOR, "RotaryEmbedding"): _rotary,
    (VENDOR, "SkipLayerNormalization"): _skip,
    (VENDOR, "SkipSimplifiedLayerNormalization"): _skip,
}
"""The rules by domain and operator."""
