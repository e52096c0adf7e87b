"""How far an operator reaches: from a box of its output back through its nodes to boxes of what it reads.

Every rule says for one node what a box of its result needs of each input. The rules follow one another from
the operator's output to its operands, whatever was merged into it, reshaped or reordered on the way. An
operator with a node that has no rule gets no reach.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from onchip.base.allowance import spend
from onchip.network import MOST_SIDES, Constant, Geometry, Reach, Side, most_sides
from onchip.readers.constants import Constants
from onchip.readers.digits import CutAxis, Need, everything, grouped, moved, together, widened
from onchip.readers.onnx_graph import Graph, Node
from onchip.readers.padding import same_padding
from onchip.readers.resized import resized
from onchip.readers.traits import is_elementwise

__all__ = ["in_maps", "reach_of"]

MOST_CUTS = 32  # of the axes of an output

Needs = dict[str, Need]

_SAME_ORDER = frozenset({"Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
_POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})
_GLOBAL = frozenset({"GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"})
_REDUCE = frozenset({
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare",
})  # fmt: skip
_ALONG = frozenset({"Hardmax", "LayerNormalization", "LogSoftmax", "LpNormalization", "Softmax"})


def in_maps(geometry: Geometry | None, batch: int | None) -> bool:
    """Whether a geometry says already how the operator's maps are read: as images, or as rows of them."""
    if geometry is None or not geometry.promises:
        return False
    if len(geometry.output) == 4 or len(geometry.input) == 4:
        return True
    return len(geometry.output) == 2 and batch is not None and geometry.output[0] == batch


def reach_of(
    graph: Graph,
    constants: Constants,
    nodes: Sequence[int],
    inputs: Sequence[str],
    output: str,
    weights: dict[str, int],
) -> Reach | None:
    """The reach of an operator of these `nodes` with one `output`; `weights` are bytes by constant."""
    axes = [n for n in graph.shape[output] if n > 1] or [1]
    for _ in range(MOST_CUTS):
        try:
            found = _Walk(graph, constants, axes).reach(nodes, inputs, output, weights)
        except CutAxis as cut:
            axes[cut.axis : cut.axis + 1] = [cut.outer, axes[cut.axis] // cut.outer]
        except _NoRule:
            return None
        else:
            return found if most_sides(found) <= MOST_SIDES else None
    return None


class _NoRule(Exception):
    """A node that no rule speaks of."""


class _Walk:
    """One way back through an operator's nodes, for one division of its output into axes."""

    def __init__(self, graph: Graph, constants: Constants, axes: Sequence[int]) -> None:
        self.graph, self.constants, self.axes = graph, constants, axes
        self.needs: Needs = {}
        self.sums: list[int] = []

    def reach(
        self, nodes: Sequence[int], inputs: Sequence[str], output: str, weights: dict[str, int]
    ) -> Reach:
        self.needs[output] = tuple(Side(n, i) for i, n in enumerate(self.axes))
        for index in sorted(nodes, reverse=True):
            spend()
            self.back(self.graph.nodes[index], stop=inputs)
        # A constant may be cast or reordered between memory and its reader.
        pending = [name for name in self.needs if name in self.constants and name not in weights]
        while pending:
            spend()
            name = pending.pop()
            maker = self.graph.producer.get(name)
            if maker is None or name in weights:
                continue
            before = set(self.needs)
            try:
                self.back(maker, stop=())
            except _NoRule:
                continue  # what it is made from is needed whole
            pending += [n for n in self.needs.keys() - before if n in self.constants]
        if any(name not in self.needs for name in inputs):
            raise _NoRule
        return Reach(
            tuple(self.axes),
            tuple(self.settled(name) for name in inputs),
            tuple(Constant(name, size, self.stored(name, size)) for name, size in weights.items()),
            tuple(self.sums),
        )

    def settled(self, name: str) -> Need:
        """A value's sides, no two of them along one axis of the output."""
        seen: set[int] = set()
        found: list[Side] = []
        for side in self.needs[name]:
            if side.size == 1:
                continue
            again = side.axis >= 0 and side.axis in seen
            found.append(everything(side.size) if again else side)
            seen.add(side.axis)
        return tuple(found) or (everything(1),)

    def stored(self, name: str, size: int) -> Need:
        """The sides of a constant, whole where they do not divide its bytes or nothing says more."""
        count = prod(self.graph.shape.get(name, ())) or 1
        if name not in self.needs or size % count:
            return (everything(1),)
        return self.settled(name)

    # -- rules -----------------------------------------------------------------------------------------------

    def back(self, node: Node, stop: Sequence[str]) -> None:
        """From what is needed of a node's results to what is needed of its inputs."""
        for position, name in enumerate(node.outputs):
            if name not in self.needs or name in stop:
                continue
            shape = self.graph.shape[name]
            rule = _elementwise if is_elementwise(node.op, node.domain) else _RULES.get(node.op)
            if rule is None or (node.domain and rule is not _elementwise):
                raise _NoRule
            try:
                dims = (self.needs[name],) if node.op in _SAME_ORDER else self.dims(name, shape)
                found = rule(self, node, position, tuple(dims))
            except (ArithmeticError, LookupError, TypeError, ValueError):
                raise _NoRule from None  # the file states shapes or settings that its nodes cannot have
            for source, need in found.items():
                known = self.needs.get(source)
                self.needs[source] = need if known is None else together(known, need)

    def dims(self, name: str, shape: Sequence[int]) -> tuple[Need, ...]:
        return tuple(grouped(self.needs[name], shape, self.axes))

    def regrouped(self, dims: Sequence[Need], shape: Sequence[int]) -> list[Need]:
        return grouped(_flat(dims), shape, self.axes)

    def shape(self, name: str) -> tuple[int, ...]:
        found = self.graph.shape.get(name)
        if found is None:
            raise _NoRule
        return found

    def summed(self, node: Node, dims: Sequence[Need], size: int) -> Need:
        """A dimension that a node's result is summed over: an axis of its own where the operator's output is
        that result, element by element, but for functions of each element, and where no operand comes twice:
        one that is also added to the sum could not be cut with it."""
        made = tuple(side for side in _flat(dims) if side.size > 1)
        if size == 1:
            return ()
        if (
            self.sums
            or len(set(node.inputs)) < len(node.inputs)
            or made != tuple(Side(n, i) for i, n in enumerate(self.axes) if n > 1)
        ):
            return (everything(size),)
        self.sums.append(size)
        return (Side(size, len(self.axes)),)

    def all_of(self, name: str) -> Need:
        return tuple(everything(n) for n in self.shape(name)) or (everything(1),)

    def numbers(self, node: Node, position: int, attribute: str = "") -> tuple[int, ...] | None:
        """A setting: an attribute, or a small constant operand."""
        stated = node.integers(attribute) if attribute else None
        if stated is not None:
            return stated
        name = node.inputs[position] if position < len(node.inputs) else ""
        if not name:
            return None
        value = self.constants.value(name) if name in self.constants else None
        if value is None:
            raise _NoRule
        return tuple(int(n) for n in np.asarray(value).reshape(-1))


def _flat(dims: Sequence[Need]) -> Need:
    return tuple(side for sides in dims for side in sides) or (everything(1),)


Rule = Callable[[_Walk, Node, int, tuple[Need, ...]], Needs]


def _add(needs: Needs, name: str, need: Need) -> None:
    """Note what is needed of a value, beside what another operand of the same node needs of it."""
    needs[name] = together(needs[name], need) if name in needs else need


def _elementwise(walk: _Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    found: Needs = {}
    for position, name in enumerate(node.inputs):
        if not name:
            continue
        shape = walk.shape(name)
        if position and node.op in ("BatchNormalization", "DequantizeLinear", "QuantizeLinear"):
            axis = node.integer("axis", 1) % max(len(dims), 1)
            need = _flat([dims[axis]]) if len(shape) == 1 and shape[0] > 1 else walk.all_of(name)
        else:
            need = _flat(_broadcast(shape, walk.shape(node.outputs[0]), dims))
        _add(found, name, need)
    return found


def _broadcast(shape: Sequence[int], result: Sequence[int], dims: Sequence[Need]) -> list[Need]:
    """The sides of an operand that is repeated along dimensions which it lacks, or has one of."""
    skipped = len(result) - len(shape)
    if skipped < 0 or any(n not in (1, result[skipped + i]) for i, n in enumerate(shape)):
        raise _NoRule
    return [dims[skipped + i] if n > 1 else () for i, n in enumerate(shape)]


def _same_order(walk: _Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    return {node.inputs[0]: dims[0]}


def _transpose(walk: _Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    order = node.integers("perm") or tuple(reversed(range(len(dims))))
    back = [dims[order.index(i)] for i in range(len(dims))]
    return {node.inputs[0]: _flat(back)}


def _slice(walk: _Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    shape = walk.shape(node.inputs[0])
    starts = walk.numbers(node, 1, "starts")
    axes = walk.numbers(node, 3, "axes")
    steps = walk.numbers(node, 4)
    if starts is None:
        raise _NoRule
    axes = tuple(range(len(starts))) if axes is None else axes
    found = list(dims)
    for i, (axis, start) in enumerate(zip(axes, starts, strict=True)):
        step, axis = 1 if steps is None else steps[i], axis % len(shape)
        if step < 1:
            raise _NoRule
        first = min(max(start + shape[axis] if start < 0 else start, 0), shape[axis] - 1)
        found[axis] = moved(found[axis], shape[axis], step, -first)
    return {node.inputs[0]: _flat(found)}


def _split(walk: _Walk, node: Node, position: int, dims: tuple[Need, ...]) -> Needs:
    shape = walk.shape(node.inputs[0])
    axis = node.integer("axis", 0) % len(shape)
    first = sum(walk.shape(name)[axis] for name in node.outputs[:position])
    found = list(dims)
    found[axis] = moved(found[axis], shape[axis], before=-first)
    return {node.inputs[0]: _flat(found)}


def _concat(walk: _Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    axis = node.integer("axis", 0) % len(dims)
    found: Needs = {}
    first = 0
    for name in node.inputs:
        size = walk.shape(name)[axis]
        part = list(dims)
        # An operand of one element along the axis is needed whole: which indices want it nothing says.
        part[axis] = moved(part[axis], size, before=first)
        _add(found, name, _flat(part))
        first += size
    return found


def _gather(walk: _Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    shape = walk.shape(node.inputs[0])
    axis = node.integer("axis", 0) % len(shape)
    picked = walk.numbers(node, 1)
    if not picked:
        raise _NoRule
    first = picked[0] % shape[axis]  # -1, 0 are the last and the first: counted from one end they are no row
    if [index % shape[axis] for index in picked] != list(range(first, first + len(picked))):
        raise _NoRule
    ranks = len(walk.shape(node.inputs[1]))
    within = [side for sides in dims[axis : axis + ranks] for side in sides]
    if len(within) > 1:
        within = [everything(len(picked))]
    found = [*dims[:axis], moved(tuple(within), shape[axis], before=-first), *dims[axis + ranks :]]
    return {node.inputs[0]: _flat(found)}


def _pad(walk: _Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    mode = node.attribute("mode")
    shape = walk.shape(node.inputs[0])
    amounts, axes = walk.numbers(node, 1, "pads"), walk.numbers(node, 3)
    axes = tuple(range(len(shape))) if axes is None else axes
    if (mode is not None and mode.s != b"constant") or amounts is None:
        raise _NoRule
    found = list(dims)
    for axis, before in zip(axes, amounts, strict=False):
        axis %= len(shape)
        if shape[axis] != walk.shape(node.outputs[0])[axis] or before:
            found[axis] = moved(found[axis], shape[axis], before=before)
    return {node.inputs[0]: _flat(found)}


def _conv(walk: _Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    x, w = walk.shape(node.inputs[0]), walk.shape(node.inputs[1])
    groups = node.integer("group", 1)
    inside: Need = (everything(w[1]),) if groups > 1 else walk.summed(node, dims, w[1])
    channels = inside
    if groups > 1:
        inner = x[1] // groups
        channels = (*moved(dims[1], groups, per=w[0] // groups), *((everything(inner),) if inner > 1 else ()))
    spatial = _windows(walk, node, x, w[2:], dims)
    found = {node.inputs[0]: _flat([dims[0], channels, *spatial])}
    _add(found, node.inputs[1], _flat([dims[1], inside, *((everything(n),) for n in w[2:] if n > 1)]))
    if len(node.inputs) > 2 and node.inputs[2]:
        _add(found, node.inputs[2], _flat([dims[1]]))
    return found


def _windows(
    walk: _Walk, node: Node, x: Sequence[int], kernel: Sequence[int], dims: Sequence[Need]
) -> list[Need]:
    """The sides of an operand's spatial dimensions under windows."""
    rank = len(x) - 2
    if len(kernel) != rank or len(dims) != rank + 2:
        raise _NoRule
    stride = node.integers("strides") or (1,) * rank
    dilation = node.integers("dilations") or (1,) * rank
    padding: Sequence[int] = node.integers("pads") or (0,) * (2 * rank)
    auto = node.attribute("auto_pad")
    mode = b"NOTSET" if auto is None else auto.s
    if mode == b"VALID":
        padding = (0,) * (2 * rank)
    elif mode in (b"SAME_UPPER", b"SAME_LOWER"):
        if rank != 2:
            raise _NoRule
        result = walk.shape(node.outputs[0])
        padding = same_padding(x[2:], result[2:], kernel, stride, dilation, more_before=mode == b"SAME_LOWER")
    return [
        moved(dims[2 + i], x[2 + i], stride[i], padding[i], (kernel[i] - 1) * dilation[i] + 1)
        for i in range(rank)
    ]


def _pool(walk: _Walk, node: Node, position: int, dims: tuple[Need, ...]) -> Needs:
    x = walk.shape(node.inputs[0])
    kernel = node.integers("kernel_shape")
    if kernel is None or position:
        raise _NoRule
    return {node.inputs[0]: _flat([*dims[:2], *_windows(walk, node, x, kernel, dims)])}


def _global(walk: _Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    x = walk.shape(node.inputs[0])
    return {node.inputs[0]: _flat([*dims[:2], *((everything(n),) for n in x[2:] if n > 1)])}


def _reduce(walk: _Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    x = walk.shape(node.inputs[0])
    axes = walk.numbers(node, 1, "axes")
    if axes is None and node.integer("noop_with_empty_axes", 0):
        raise _NoRule
    gone = set(range(len(x))) if not axes else {axis % len(x) for axis in axes}
    rest = iter(dims)
    if node.integer("keepdims", 1):
        found = [(everything(n),) if i in gone else d for i, (n, d) in enumerate(zip(x, dims, strict=True))]
    else:
        found = [(everything(n),) if i in gone else next(rest) for i, n in enumerate(x)]
    return {node.inputs[0]: _flat(found)}


def _along(walk: _Walk, node: Node, position: int, dims: tuple[Need, ...]) -> Needs:
    """What needs all of some trailing dimensions, or of one."""
    if position:
        raise _NoRule
    coerced = node.op in ("Hardmax", "LogSoftmax", "Softmax") and walk.graph.opsets[""] < 13
    axis = node.integer("axis", 1 if coerced else -1) % len(dims)
    last = len(dims) if coerced or node.op == "LayerNormalization" else axis + 1
    found = [widened(d) if axis <= i < last else d for i, d in enumerate(dims)]
    needs = {node.inputs[0]: _flat(found)}
    return needs | {name: walk.all_of(name) for name in node.inputs[1:] if name}


def _lrn(walk: _Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    return {node.inputs[0]: _flat([dims[0], widened(dims[1]), *dims[2:]])}


def _gemm(walk: _Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    (a, b), found = node.inputs[:2], Needs()
    inner = walk.summed(node, dims, walk.shape(a)[0 if node.integer("transA", 0) else 1])
    rows, columns = [dims[0], inner], [inner, dims[1]]
    _add(found, a, _flat(rows[::-1] if node.integer("transA", 0) else rows))
    _add(found, b, _flat(columns[::-1] if node.integer("transB", 0) else columns))
    if len(node.inputs) > 2 and node.inputs[2]:
        c = node.inputs[2]
        _add(found, c, _flat(_broadcast(walk.shape(c), walk.shape(node.outputs[0]), dims)))
    return found


def _matmul(walk: _Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    a, b = node.inputs
    left, right, made = walk.shape(a), walk.shape(b), walk.shape(node.outputs[0])
    if min(len(left), len(right)) < 2 or a == b:
        raise _NoRule
    inner = walk.summed(node, dims, left[-1])
    return {
        a: _flat([*_broadcast(left[:-2], made[:-2], dims[:-2]), dims[-2], inner]),
        b: _flat([*_broadcast(right[:-2], made[:-2], dims[:-2]), inner, dims[-1]]),
    }


def _attention(walk: _Walk, node: Node, position: int, dims: tuple[Need, ...]) -> Needs:
    """Every head by itself: a row of the output needs its row of the queries, all keys and all values."""
    names = [*node.inputs, *[""] * 6][:6]
    query, key, value, mask = names[:4]
    if position or names[4] or names[5] or len({query, key, value}) < 3:
        raise _NoRule
    made = walk.shape(node.outputs[0])
    shapes = [walk.shape(name) for name in (query, key, value)]
    if len(made) == 3:
        heads = [node.integer("q_num_heads", 0), *[node.integer("kv_num_heads", 0)] * 2]
        if not all(heads):
            raise _NoRule
        # [rows, heads and features] of every image
        cut = [(n, s, h, f // h) for (n, s, f), h in zip(shapes, heads, strict=True)]
        image, row, head, feature = walk.regrouped(dims, (*made[:2], heads[0], made[2] // heads[0]))
    else:
        image, head, row, feature = dims
        cut = [(n, s, h, f) for n, h, s, f in shapes]
        heads = [h for _, _, h, _ in cut]
    shared = moved(head, heads[1], per=heads[0] // heads[1])
    found: Needs = {}
    for name, (_, size, _, width) in zip((query, key, value), cut, strict=True):
        rows = row if name == query else (everything(size),)
        of = head if name == query else shared
        last = feature if name == value else (everything(width),)
        found[name] = _flat([image, rows, of, last] if len(made) == 3 else [image, of, rows, last])
    if mask:
        columns = (everything(cut[1][1]),)
        shape = (made[0], heads[0], cut[0][1], cut[1][1])
        _add(found, mask, _flat(_broadcast(walk.shape(mask), shape, [image, head, row, columns])))
    return found


def _resize(walk: _Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    read, made = walk.shape(node.inputs[0]), walk.shape(node.outputs[0])
    steps = resized(node, walk.constants, read, made)
    if steps is None:
        raise _NoRule
    found = [
        d if step is None else moved(d, size, *step) for d, size, step in zip(dims, read, steps, strict=True)
    ]
    return {node.inputs[0]: _flat(found)}


def _depth_to_space(walk: _Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    n, _, h, w = walk.shape(node.inputs[0])
    b = node.integer("blocksize", 1)
    c = walk.shape(node.outputs[0])[1]
    mode = node.attribute("mode")
    image, channel, row, down, column, right = walk.regrouped(dims, (n, c, h, b, w, b))
    crd = mode is not None and mode.s == b"CRD"
    front = [channel, down, right] if crd else [down, right, channel]
    return {node.inputs[0]: _flat([image, *front, row, column])}


def _space_to_depth(walk: _Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    n, c, _, _ = walk.shape(node.inputs[0])
    b = node.integer("blocksize", 1)
    h, w = walk.shape(node.outputs[0])[2:]
    image, down, right, channel, row, column = walk.regrouped(dims, (n, b, b, c, h, w))
    return {node.inputs[0]: _flat([image, channel, row, down, column, right])}


_RULES: dict[str, Rule] = {
    **dict.fromkeys(_SAME_ORDER, _same_order),
    **dict.fromkeys(_POOLS, _pool),
    **dict.fromkeys(_GLOBAL, _global),
    **dict.fromkeys(_REDUCE, _reduce),
    **dict.fromkeys(_ALONG, _along),
    "Attention": _attention,
    "Concat": _concat,
    "Conv": _conv,
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
