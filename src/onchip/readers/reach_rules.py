"""The rules of reach, one for each operator of ONNX: the part of each input that a box of its result needs.

A rule takes the node, the position of the requested result, and the needs of every dimension of that result;
it returns the needs of every input. A new operator is one function here, and a row of `RULES`: it then runs
in boxes, and is planned, checked and executed so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from onchip.readers.constants import Constants
from onchip.readers.digits import Need, everything, flat, moved, together, widened
from onchip.readers.lookup import looked_up
from onchip.readers.onnx_graph import Graph, Node
from onchip.readers.padding import same_padding
from onchip.readers.resized import resized
from onchip.readers.traits import declared_rule

__all__ = [
    "RULES",
    "SAME_ORDER",
    "Needs",
    "NoRule",
    "Rule",
    "Walk",
    "add",
    "attention_needs",
    "broadcast",
    "elementwise",
    "rule_of",
]

Needs = dict[str, Need]


class Walk(Protocol):
    """The part of the walk from an operator's output back to its operands that rules use."""

    graph: Graph
    constants: Constants

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a value. Raises `NoRule` if it is not known."""

    def all_of(self, name: str) -> Need:
        """Return the need of all of a value."""

    def numbers(self, node: Node, position: int, attribute: str = "") -> tuple[int, ...] | None:
        """Return a setting: an attribute, or a small constant operand."""

    def regrouped(self, dims: Sequence[Need], shape: Sequence[int]) -> list[Need]:
        """Return the same needs by the dimensions of another shape."""

    def looked_up(self, table: str, need: Need, entire: Need) -> None:
        """Record that the elements fetched of a constant table are those of `need`, in this order.

        Where they are no fewer than those of the table, the table is fetched, by the sides `entire`.
        """

    def summed(self, node: Node, dims: Sequence[Need], *sizes: int) -> list[Need]:
        """Return the dimensions of these sizes that the node's result is summed over."""

    def rescaled(self, node: Node, dims: Sequence[Need], size: int, shared: Need) -> Need:
        """Return a dimension of `size` that the node's result is summed over, weighed by a softmax along it;
        the dimensions `shared` of the result have their weights in common."""


Rule = Callable[[Walk, Node, int, tuple[Need, ...]], Needs]
"""(walk, node, position of the result, needs of its dimensions) -> needs by input."""

SAME_ORDER = frozenset({"Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
_POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})
_GLOBAL = frozenset({"GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"})
_REDUCE = frozenset({
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare",
})  # fmt: skip
_IN_PARTS = _REDUCE - {"ReduceLogSum", "ReduceLogSumExp"}
"""Those whose parts are put together by one operation of each element."""
_ALONG = frozenset(
    {"Hardmax", "LayerNormalization", "LogSoftmax", "LpNormalization", "RMSNormalization", "Softmax"}
)

_TO_THE_END = frozenset({"LayerNormalization", "RMSNormalization"})


class NoRule(Exception):
    """No rule covers a node."""


def add(needs: Needs, name: str, need: Need) -> None:
    """Add a need of a value to the needs of other operands of the same node."""
    needs[name] = together(needs[name], need) if name in needs else need


def elementwise(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    found: Needs = {}
    for position, name in enumerate(node.inputs):
        if not name:
            continue
        shape = walk.shape(name)
        if position and node.op in ("BatchNormalization", "DequantizeLinear", "QuantizeLinear"):
            axis = node.integer("axis", 1) % max(len(dims), 1)
            need = flat([dims[axis]]) if len(shape) == 1 and shape[0] > 1 else walk.all_of(name)
        else:
            need = flat(broadcast(shape, walk.shape(node.outputs[0]), dims))
        add(found, name, need)
    return found


def broadcast(shape: Sequence[int], result: Sequence[int], dims: Sequence[Need]) -> list[Need]:
    """Return the sides of an operand that is repeated along dimensions that it lacks, or has one of."""
    skipped = len(result) - len(shape)
    if skipped < 0 or any(n not in (1, result[skipped + i]) for i, n in enumerate(shape)):
        raise NoRule
    return [dims[skipped + i] if n > 1 else () for i, n in enumerate(shape)]


def _same_order(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    return {node.inputs[0]: dims[0]}


def _transpose(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    order = node.integers("perm") or tuple(reversed(range(len(dims))))
    back = [dims[order.index(i)] for i in range(len(dims))]
    return {node.inputs[0]: flat(back)}


def _slice(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    shape = walk.shape(node.inputs[0])
    starts = walk.numbers(node, 1, "starts")
    axes = walk.numbers(node, 3, "axes")
    steps = walk.numbers(node, 4)
    if starts is None:
        raise NoRule
    axes = tuple(range(len(starts))) if axes is None else axes
    found = list(dims)
    for i, (axis, start) in enumerate(zip(axes, starts, strict=True)):
        step, axis = 1 if steps is None else steps[i], axis % len(shape)
        if step < 1:  # backwards: no box of the output needs a box of the input for all boxes alike
            found[axis] = (everything(shape[axis]),) if shape[axis] > 1 else ()
            continue
        first = min(max(start + shape[axis] if start < 0 else start, 0), shape[axis] - 1)
        found[axis] = moved(found[axis], shape[axis], step, -first)
    return {node.inputs[0]: flat(found)}


def _split(walk: Walk, node: Node, position: int, dims: tuple[Need, ...]) -> Needs:
    shape = walk.shape(node.inputs[0])
    axis = node.integer("axis", 0) % len(shape)
    first = sum(walk.shape(name)[axis] for name in node.outputs[:position])
    found = list(dims)
    found[axis] = moved(found[axis], shape[axis], before=-first)
    return {node.inputs[0]: flat(found)}


def _concat(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    axis = node.integer("axis", 0) % len(dims)
    found: Needs = {}
    first = 0
    for name in node.inputs:
        size = walk.shape(name)[axis]
        part = list(dims)
        # An operand of one element along the axis is needed whole: no index tells which boxes need it.
        part[axis] = moved(part[axis], size, before=first)
        add(found, name, flat(part))
        first += size
    return found


def _gather(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    shape = walk.shape(node.inputs[0])
    axis = node.integer("axis", 0) % len(shape)
    if looked_up(walk.graph, walk.constants, node) is not None:
        ranks = len(walk.shape(node.inputs[1]))
        whole = (everything(shape[axis]),) if shape[axis] > 1 else ()
        walk.looked_up(node.inputs[0], flat(dims), flat([*dims[:axis], whole, *dims[axis + ranks :]]))
        return {node.inputs[1]: flat(dims[axis : axis + ranks])}
    if node.inputs[1] not in walk.constants:
        return _picked(walk, node, dims)
    stated = walk.constants.value(node.inputs[1])
    picked = [] if stated is None else [int(index) % shape[axis] for index in stated.reshape(-1)]
    first = picked[0] if picked else 0
    if not picked or picked != list(range(first, first + len(picked))):
        needs = _picked(walk, node, dims)
        needs[node.inputs[1]] = walk.all_of(node.inputs[1])
        return needs
    ranks = len(walk.shape(node.inputs[1]))
    within = [side for sides in dims[axis : axis + ranks] for side in sides]
    if len(within) > 1:
        within = [everything(len(picked))]
    found = [*dims[:axis], moved(tuple(within), shape[axis], before=-first), *dims[axis + ranks :]]
    return {node.inputs[0]: flat(found)}


def _picked(walk: Walk, node: Node, dims: tuple[Need, ...]) -> Needs:
    """By indices that are computed: all of one dimension of what is read."""
    x, indices = node.inputs[:2]
    shape = walk.shape(x)
    axis, ranks = node.integer("axis", 0) % len(shape), len(walk.shape(indices))
    whole = (everything(shape[axis]),) if shape[axis] > 1 else ()
    found = {x: flat([*dims[:axis], whole, *dims[axis + ranks :]])}
    add(found, indices, flat(dims[axis : axis + ranks]))
    return found


def _pad(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    """An output reads the input at its own place, which lies `before` further on.

    Beyond an end, `edge` reads the last input, and `reflect` the inputs from there back inwards. So an output
    may also read an input as far from its place as the pad is wide (`reflect`: twice as far).
    """
    attribute = node.attribute("mode")
    mode = b"constant" if attribute is None else attribute.s
    shape, made = walk.shape(node.inputs[0]), walk.shape(node.outputs[0])
    amounts, axes = walk.numbers(node, 1, "pads"), walk.numbers(node, 3)
    axes = tuple(range(len(shape))) if axes is None else axes
    times = {b"constant": 0, b"edge": 1, b"reflect": 2}.get(mode)
    if times is None or amounts is None or (times and min(amounts, default=0) < 0):
        raise NoRule
    found = list(dims)
    for axis, before, after in zip(axes, amounts, amounts[len(axes) :], strict=False):
        axis %= len(shape)
        if shape[axis] != made[axis] or before:
            span = 1 + times * (before + after)
            found[axis] = moved(found[axis], shape[axis], before=before + times * after, span=span)
    return {node.inputs[0]: flat(found)}


def _conv(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    x, w = walk.shape(node.inputs[0]), walk.shape(node.inputs[1])
    groups = node.integer("group", 1)
    inside: Need = (everything(w[1]),) if groups > 1 else walk.summed(node, dims, w[1])[0]
    channels = inside
    if groups > 1:
        inner = x[1] // groups
        channels = (*moved(dims[1], groups, per=w[0] // groups), *((everything(inner),) if inner > 1 else ()))
    spatial = _windows(walk, node, x, w[2:], dims)
    found = {node.inputs[0]: flat([dims[0], channels, *spatial])}
    add(found, node.inputs[1], flat([dims[1], inside, *((everything(n),) for n in w[2:] if n > 1)]))
    if len(node.inputs) > 2 and node.inputs[2]:
        add(found, node.inputs[2], flat([dims[1]]))
    return found


def _conv_transpose(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs: output o reads inputs from ceil((o + pad - reach) / stride) on.

    An input contributes to every stride-th output; `reach` is the distance from the kernel's first tap to
    its last.
    """
    x, w = walk.shape(node.inputs[0]), walk.shape(node.inputs[1])
    rank, groups = len(x) - 2, node.integer("group", 1)
    auto = node.attribute("auto_pad")
    if len(dims) != rank + 2 or node.integers("output_shape") or (auto is not None and auto.s != b"NOTSET"):
        raise NoRule
    stride = node.integers("strides") or (1,) * rank
    dilation = node.integers("dilations") or (1,) * rank
    padding = node.integers("pads") or (0,) * (2 * rank)
    spatial = []
    for i, step in enumerate(stride):
        reach = (w[2 + i] - 1) * dilation[i]
        before = reach - padding[i] - step + 1
        spatial.append(moved(dims[2 + i], x[2 + i], 1, before, reach // step + 1, step))
    inner, channel = x[1] // groups, dims[1]
    inside: Need = (everything(inner),) if inner > 1 else ()
    inputs: Need = (*moved(channel, groups, per=w[1]), *inside) if groups > 1 else inside
    outputs: Need = ((everything(w[1]),) if w[1] > 1 else ()) if groups > 1 else channel
    found = {node.inputs[0]: flat([dims[0], inputs, *spatial])}
    add(found, node.inputs[1], flat([inputs, outputs, *((everything(n),) for n in w[2:] if n > 1)]))
    if len(node.inputs) > 2 and node.inputs[2]:
        add(found, node.inputs[2], flat([channel]))
    return found


def _windows(
    walk: Walk, node: Node, x: Sequence[int], kernel: Sequence[int], dims: Sequence[Need]
) -> list[Need]:
    """Return the sides of an operand's spatial dimensions under windows."""
    rank = len(x) - 2
    if len(kernel) != rank or len(dims) != rank + 2:
        raise NoRule
    stride = node.integers("strides") or (1,) * rank
    dilation = node.integers("dilations") or (1,) * rank
    padding: Sequence[int] = node.integers("pads") or (0,) * (2 * rank)
    auto = node.attribute("auto_pad")
    mode = b"NOTSET" if auto is None else auto.s
    if mode == b"VALID":
        padding = (0,) * (2 * rank)
    elif mode in (b"SAME_UPPER", b"SAME_LOWER"):
        if rank != 2:
            raise NoRule
        result = walk.shape(node.outputs[0])
        padding = same_padding(x[2:], result[2:], kernel, stride, dilation, more_before=mode == b"SAME_LOWER")
    return [
        moved(dims[2 + i], x[2 + i], stride[i], padding[i], (kernel[i] - 1) * dilation[i] + 1)
        for i in range(rank)
    ]


def _pool(walk: Walk, node: Node, position: int, dims: tuple[Need, ...]) -> Needs:
    x = walk.shape(node.inputs[0])
    kernel = node.integers("kernel_shape")
    if kernel is None or position:
        raise NoRule
    return {node.inputs[0]: flat([*dims[:2], *_windows(walk, node, x, kernel, dims)])}


def _global(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    x = walk.shape(node.inputs[0])
    return {node.inputs[0]: flat([*dims[:2], *((everything(n),) for n in x[2:] if n > 1)])}


def _reduce(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    x = walk.shape(node.inputs[0])
    axes = walk.numbers(node, 1, "axes")
    if not axes and node.integer("noop_with_empty_axes", 0):
        return {node.inputs[0]: flat(dims)}
    gone = set(range(len(x))) if not axes else {axis % len(x) for axis in axes}
    if node.op in _IN_PARTS and all(i in gone for i, n in enumerate(x) if n > 1):
        return {node.inputs[0]: flat(walk.summed(node, dims, *x))}
    rest = iter(dims)
    if node.integer("keepdims", 1):
        found = [(everything(n),) if i in gone else d for i, (n, d) in enumerate(zip(x, dims, strict=True))]
    else:
        found = [(everything(n),) if i in gone else next(rest) for i, n in enumerate(x)]
    return {node.inputs[0]: flat(found)}


def _along(walk: Walk, node: Node, position: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs of an operator that reads all of one dimension, or of some trailing ones."""
    if position:
        raise NoRule
    coerced = node.op in ("Hardmax", "LogSoftmax", "Softmax") and walk.graph.opsets[""] < 13
    axis = node.integer("axis", 1 if coerced else -1) % len(dims)
    last = len(dims) if coerced or node.op in _TO_THE_END else axis + 1
    found = [widened(d) if axis <= i < last else d for i, d in enumerate(dims)]
    needs = {node.inputs[0]: flat(found)}
    for name in filter(None, node.inputs[1:]):  # scale and shift, which each element is given its own of
        add(needs, name, flat(broadcast(walk.shape(name), walk.shape(node.outputs[0]), dims)))
    return needs


def _lrn(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    return {node.inputs[0]: flat([dims[0], widened(dims[1]), *dims[2:]])}


def _gemm(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    (a, b), found = node.inputs[:2], Needs()
    [inner] = walk.summed(node, dims, walk.shape(a)[0 if node.integer("transA", 0) else 1])
    rows, columns = [dims[0], inner], [inner, dims[1]]
    add(found, a, flat(rows[::-1] if node.integer("transA", 0) else rows))
    add(found, b, flat(columns[::-1] if node.integer("transB", 0) else columns))
    if len(node.inputs) > 2 and node.inputs[2]:
        c = node.inputs[2]
        add(found, c, flat(broadcast(walk.shape(c), walk.shape(node.outputs[0]), dims)))
    return found


def _matmul(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    a, b = node.inputs
    left, right, made = walk.shape(a), walk.shape(b), walk.shape(node.outputs[0])
    if a == b:
        if len(left) < 2:
            raise NoRule
        rows = [(everything(n),) for n in left[-2:] if n > 1]
        return {a: flat([*broadcast(left[:-2], made[:-2], dims[:-2]), *rows])}
    [inner] = walk.summed(node, dims, left[-1])
    # A vector has no row, or no column, of the result.
    own, columns = len(left) > 1, len(right) > 1
    batch = len(made) - own - columns
    row, column = dims[batch : batch + own], dims[batch + own :]
    return {
        a: flat([*broadcast(left[:-2], made[:batch], dims[:batch]), *row, inner]),
        b: flat([*broadcast(right[:-2], made[:batch], dims[:batch]), inner, *column]),
    }


def _attention(walk: Walk, node: Node, position: int, dims: tuple[Need, ...]) -> Needs:
    """Treat every head by itself: a row of the output needs its row of the queries, all keys and values."""
    names = [*node.inputs, *[""] * 6][:6]
    query, key, value, mask = names[:4]
    if position or names[4] or names[5]:
        raise NoRule
    heads = node.integer("q_num_heads", 0), node.integer("kv_num_heads", 0)
    cap = node.attribute("softcap")
    plain = not node.integer("is_causal", 0) and (cap is None or not cap.f)
    plain &= node.attribute("softmax_precision") is None
    return attention_needs(walk, node, (query, key, value, mask), heads, dims, online=plain)


def attention_needs(
    walk: Walk,
    node: Node,
    names: tuple[str, str, str, str],
    stated: tuple[int, int],
    dims: Sequence[Need],
    *,
    online: bool = False,
) -> Needs:
    """Return the needs of an attention of queries, keys, values and a mask (or "").

    `stated` are the heads of queries and of keys where rows hold the features of all heads. If it may be
    `online`, keys and values may come in parts.
    """
    query, key, value, mask = names
    if len({query, key, value}) < 3:
        raise NoRule
    made = walk.shape(node.outputs[0])
    shapes = [walk.shape(name) for name in (query, key, value)]
    if len(made) == 3:
        heads = [stated[0], stated[1], stated[1]]
        if not all(heads):
            raise NoRule
        # [rows, heads and features] of every image
        cut = [(n, s, h, f // h) for (n, s, f), h in zip(shapes, heads, strict=True)]
        image, row, head, feature = walk.regrouped(dims, (*made[:2], heads[0], made[2] // heads[0]))
    else:
        image, head, row, feature = dims
        cut = [(n, s, h, f) for n, h, s, f in shapes]
        heads = [h for _, _, h, _ in cut]
    shared = moved(head, heads[1], per=heads[0] // heads[1])
    columns: Need = (everything(cut[1][1]),)
    if online and heads[0] == heads[1]:
        columns = walk.rescaled(node, dims, cut[1][1], feature)
    found: Needs = {}
    for name, (_, size, _, width) in zip((query, key, value), cut, strict=True):
        rows = row if name == query else columns if size == cut[1][1] else (everything(size),)
        of = head if name == query else shared
        last = feature if name == value else (everything(width),)
        found[name] = flat([image, rows, of, last] if len(made) == 3 else [image, of, rows, last])
    if mask:
        shape = (made[0], heads[0], cut[0][1], cut[1][1])
        add(found, mask, flat(broadcast(walk.shape(mask), shape, [image, head, row, columns])))
    return found


def _resize(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    read, made = walk.shape(node.inputs[0]), walk.shape(node.outputs[0])
    steps = resized(node, walk.constants, read, made)
    if steps is None:
        raise NoRule
    found = [
        d if step is None else moved(d, size, *step) for d, size, step in zip(dims, read, steps, strict=True)
    ]
    return {node.inputs[0]: flat(found)}


def _depth_to_space(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    n, _, h, w = walk.shape(node.inputs[0])
    b = node.integer("blocksize", 1)
    c = walk.shape(node.outputs[0])[1]
    mode = node.attribute("mode")
    image, channel, row, down, column, right = walk.regrouped(dims, (n, c, h, b, w, b))
    crd = mode is not None and mode.s == b"CRD"
    front = [channel, down, right] if crd else [down, right, channel]
    return {node.inputs[0]: flat([image, *front, row, column])}


def _space_to_depth(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    n, c, _, _ = walk.shape(node.inputs[0])
    b = node.integer("blocksize", 1)
    h, w = walk.shape(node.outputs[0])[2:]
    image, down, right, channel, row, column = walk.regrouped(dims, (n, b, b, c, h, w))
    return {node.inputs[0]: flat([image, channel, row, down, column, right])}


RULES: dict[str, Rule] = {
    **dict.fromkeys(SAME_ORDER, _same_order),
    **dict.fromkeys(_POOLS, _pool),
    **dict.fromkeys(_GLOBAL, _global),
    **dict.fromkeys(_REDUCE, _reduce),
    **dict.fromkeys(_ALONG, _along),
    "Attention": _attention,
    "Concat": _concat,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "DepthToSpace": _depth_to_space,
    "Gather": _gather,
    "Gemm": _gemm,
    "LRN": _lrn,
    "MatMul": _matmul,
    "Pad": _pad,
    "Resize": _resize,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Transpose": _transpose,
}
"""The rules by operator of ONNX itself; `declare_reach` adds those of other domains."""


def rule_of(operator: str, domain: str) -> Rule | None:
    """Return the rule of an operator, None if there is none."""
    return declared_rule(domain, operator) if domain else RULES.get(operator)
