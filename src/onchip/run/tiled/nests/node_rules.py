"""The rules by which a node runs on boxes of its operands, one for each kind of node.

A rule adds nodes to a `Boxed` and states the form of the node's result, or raises `NotCompact`. A kind
without a rule runs on whole operands instead (`whole_nodes`): right, but as slow as the whole operator for
every box.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from onchip.readers.traits import is_elementwise
from onchip.run.tiled.nests.boxed import Boxed
from onchip.run.tiled.nests.forms import (
    FULL,
    REPEATED,
    Atom,
    Dim,
    Form,
    NotCompact,
    Span,
    extent,
    is_cut,
    is_whole,
    regrouped,
    size_of,
    tidy,
)
from onchip.run.tiled.nests.large_nodes import LARGE, Rule
from onchip.run.tiled.nests.window_nodes import concat_along, pad, padding, pool, resize, spatial, transposed

if TYPE_CHECKING:
    import onnx

__all__ = ["SUMS", "add"]

SUMS = frozenset({"Conv", "Einsum", "FusedMatMul", "Gemm", "MatMul"})
"""The nodes whose results are sums that may be cut."""

_PER_AXIS = frozenset({"DequantizeLinear", "QuantizeLinear"})


def add(boxed: Boxed, node: onnx.NodeProto) -> None:
    """Add a node of the model; raises `NotCompact` if it cannot run on boxes of its operands."""
    if any(a.type in (5, 10) for a in node.attribute):
        raise NotCompact(f"{node.op_type} has a graph inside")
    if is_elementwise(node.op_type, node.domain):
        _elementwise(boxed, node)
        return
    rule = RULES.get(node.op_type) if node.domain in ("", "ai.onnx", "com.microsoft") else None
    if rule is None:
        raise NotCompact(f"{node.op_type} has no rule for boxes")
    rule(boxed, node)


def _elementwise(boxed: Boxed, node: onnx.NodeProto) -> None:
    inputs = [(at, name) for at, name in enumerate(node.input) if name]
    if node.op_type in _PER_AXIS or node.op_type == "BatchNormalization":
        first, form = node.input[0], boxed.form(node.input[0])
        axis = boxed.number(node, "axis", 1) % max(len(form), 1)
        changed = {}
        for at, name in inputs[1:]:
            own = boxed.form(name)
            if len(own) == 1 and size_of(own[0]) > 1:
                changed[at] = boxed.fitted(name, {0: form[axis]})
            elif len(own) > 1:
                raise NotCompact(f"{node.op_type} in blocks has no rule for boxes")
        boxed.keep(node, form, {0: first, **changed})
        return
    names, form = boxed.broadcast([name for _, name in inputs])
    boxed.keep(node, form, {at: name for (at, _), name in zip(inputs, names, strict=True)})


def _same_order(boxed: Boxed, node: onnx.NodeProto) -> None:
    boxed.regroup(node.input[0], node.output[0])


def _expand(boxed: Boxed, node: onnx.NodeProto) -> None:
    source, shape = boxed.form(node.input[0]), boxed.shape(node.output[0])
    form: list[Dim] = []
    for i, size in enumerate(shape):
        at = i - len(shape) + len(source)
        found = source[at] if at >= 0 else ()
        form.append(found if size_of(found) == size else (Atom(REPEATED, size),))
    boxed.reshape(node.input[0], node.output[0], tuple(form))


def _transpose(boxed: Boxed, node: onnx.NodeProto) -> None:
    form = boxed.form(node.input[0])
    order = next((tuple(a.ints) for a in node.attribute if a.name == "perm"), None)
    order = tuple(reversed(range(len(form)))) if order is None else order
    boxed.keep(node, tuple(form[i] for i in order))


def _slice(boxed: Boxed, node: onnx.NodeProto) -> None:
    value = node.input[0]
    starts, ends = boxed.setting(node, 1, "starts"), boxed.setting(node, 2, "ends")
    axes, steps = boxed.setting(node, 3, "axes"), boxed.setting(node, 4, "steps")
    shape, out, form = boxed.shape(value), boxed.shape(node.output[0]), boxed.form(value)
    if starts is None or ends is None:
        raise NotCompact("a slice without a start or an end")
    axes = tuple(range(len(starts))) if axes is None else tuple(axis % len(shape) for axis in axes)
    if all(is_whole(form[axis]) for axis in axes):
        made = [tidy([Atom(FULL, out[i])]) if i in axes else dim for i, dim in enumerate(form)]
        boxed.keep(node, tuple(made))
        return
    if steps is not None and set(steps) != {1}:
        raise NotCompact(f"{value} is cut where steps go through it")
    for i, axis in enumerate(axes):
        start = starts[i] + shape[axis] if starts[i] < 0 else starts[i]
        start = min(max(start, 0), shape[axis])
        made_as = node.output[0] if axis == axes[-1] else f"{node.output[0]}@{i}"
        boxed.take(value, axis, start, out[axis], made_as)
        value = made_as


def _split(boxed: Boxed, node: onnx.NodeProto) -> None:
    value, form = node.input[0], boxed.form(node.input[0])
    axis = boxed.number(node, "axis", 0) % len(form)
    sizes = [boxed.shape(name)[axis] for name in node.output]
    if is_whole(form[axis]):
        boxed.keep(node, form)
        for name, size in zip(node.output, sizes, strict=True):
            boxed.forms[name] = (*form[:axis], tidy([Atom(FULL, size)]), *form[axis + 1 :])
        return
    first = 0
    for name, size in zip(node.output, sizes, strict=True):
        with suppress(NotCompact):  # another result, which nothing may read
            boxed.take(value, axis, first, size, name)
        first += size


def _gather(boxed: Boxed, node: onnx.NodeProto) -> None:
    value, form = node.input[0], boxed.form(node.input[0])
    axis = boxed.number(node, "axis", 0) % len(form)
    if node.input[1] not in boxed.constants:
        boxed.whole(value, [axis])
        boxed.keep(node, (*form[:axis], *boxed.form(node.input[1]), *form[axis + 1 :]))
        return
    picked = boxed.setting(node, 1, "") or ()
    shape = boxed.constants[node.input[1]].shape
    if is_whole(form[axis]):
        middle = tuple(tidy([Atom(FULL, n)]) for n in shape)
        boxed.keep(node, (*form[:axis], *middle, *form[axis + 1 :]))
        return
    size = size_of(form[axis])
    indices = [i % size for i in picked]
    if not indices or len(shape) > 1 or indices != list(range(indices[0], indices[0] + len(indices))):
        raise NotCompact(f"{value} is cut where some of it are gathered")
    taken = f"{node.output[0]}@taken"
    boxed.take(value, axis, indices[0], len(indices), taken)
    made = boxed.form(taken)
    boxed.reshape(taken, node.output[0], made if shape else (*made[:axis], *made[axis + 1 :]))


def _concat(boxed: Boxed, node: onnx.NodeProto) -> None:
    forms = [boxed.form(name) for name in node.input]
    axis = boxed.number(node, "axis", 0) % len(forms[0])
    wanted: dict[int, Dim] = {}
    for at in range(len(forms[0])):
        if at != axis:
            dims = [form[at] for form in forms]
            wanted[at] = next(filter(is_cut, dims), dims[0])
    names = [boxed.fitted(name, wanted) for name in node.input]
    joined = concat_along([form[axis] for form in forms])
    if joined is None:
        for name in names:
            boxed.whole(name, [axis])
        joined = tidy([Atom(FULL, sum(size_of(form[axis]) for form in forms))])
    first = boxed.form(names[0])
    boxed.keep(node, (*first[:axis], joined, *first[axis + 1 :]), dict(enumerate(names)))


def _along(boxed: Boxed, node: onnx.NodeProto) -> None:
    """Softmax, norms: all of the last dimensions, or of one, make each element."""
    value, form = node.input[0], boxed.form(node.input[0])
    several = node.op_type.endswith("Normalization") and node.op_type != "LpNormalization"
    rows = node.op_type in ("Softmax", "LogSoftmax", "Hardmax") and boxed.opset < 13
    axis = boxed.number(node, "axis", 1 if rows else -1) % max(len(form), 1)
    boxed.whole(value, range(axis, len(form)) if several or rows else [axis])
    for name in node.input[1:]:
        if name:
            boxed.whole(name, range(len(boxed.form(name))))
    boxed.keep(node, form)


def _reduce(boxed: Boxed, node: onnx.NodeProto) -> None:
    value, form = node.input[0], boxed.form(node.input[0])
    axes = boxed.setting(node, 1, "axes")
    if not axes:
        if boxed.number(node, "noop_with_empty_axes", 0):
            raise NotCompact("a reduction along no axes")
        axes = tuple(range(len(form)))
    gone = {axis % len(form) for axis in axes}
    boxed.whole(value, gone)
    boxed.reorders = True
    kept = boxed.number(node, "keepdims", 1)
    boxed.keep(node, tuple(() if i in gone else d for i, d in enumerate(form) if kept or i not in gone))


def _matmul(boxed: Boxed, node: onnx.NodeProto) -> None:
    boxed.reorders = True
    a, b = node.input
    left, right = boxed.form(a), boxed.form(b)
    if min(len(left), len(right)) < 2:
        raise NotCompact("a product with a vector")
    a, b, cut = _inner(boxed, a, len(left) - 1, b, len(right) - 2)
    left, right = boxed.form(a), boxed.form(b)
    (a, b), batch = boxed.broadcast([a, b], keep=2)
    boxed.keep(node, (*batch, left[-2], right[-1]), {0: a, 1: b})
    if cut:
        boxed.partial(node.output[0], node.output[0])


def _inner(boxed: Boxed, a: str, at: int, b: str, beside: int) -> tuple[str, str, bool]:
    """Cut both operands of a product alike along the sum; return them, and whether it is cut."""
    left, right = boxed.form(a)[at], boxed.form(b)[beside]
    if left != right and is_cut(left):
        b = boxed.fitted(b, {beside: left})
    elif left != right:
        a = boxed.fitted(a, {at: right})
    return a, b, boxed.contract(boxed.form(a)[at], boxed.form(b)[beside])


def in_groups(boxed: Boxed, x: str, at: int, w: str, groups: int) -> tuple[Dim, str, str, Dim, bool]:
    """Cut the channels of a convolution's operands alike, in `groups`.

    Return the channels of its result, both operands, its groups, and whether its sum is cut.
    """
    if groups == 1:
        x, w, cut = _inner(boxed, x, at, w, 1)
        return boxed.form(w)[0], x, w, (), cut
    [inside, outside] = [boxed.shape(x)[at] // groups, boxed.shape(w)[0] // groups]
    shape = (groups, inside)
    mine = regrouped(boxed.form(x)[at], shape)
    own, taps = regrouped(boxed.form(w)[0], (groups, outside)), boxed.form(w)[1]
    head = mine[0] if is_cut(mine[0]) else own[0]
    rest = mine[1] if is_cut(mine[1]) else taps
    x = boxed.fitted(x, {at: tidy([*head, *rest])})
    w = boxed.fitted(w, {0: tidy([*head, *own[1]]), 1: rest})
    cut = boxed.contract(rest, boxed.form(w)[1])
    return boxed.form(w)[0], x, w, head, cut


def _bias(boxed: Boxed, name: str, product: str, output: str, beta: float) -> None:
    """Add a bias to a sum that is complete."""
    import numpy as np

    if beta != 1.0:
        factor = f"{output}@beta"
        boxed.fold([(factor, np.asarray(beta, boxed.constants.get(name, np.zeros(1, np.float32)).dtype))])
        name = boxed.emit("Mul", [name, factor], f"{output}@bias", boxed.form(name))
    (one, other), form = boxed.broadcast([product, name])
    boxed.emit("Add", [one, other], output, form)


def _gemm(boxed: Boxed, node: onnx.NodeProto) -> None:
    boxed.reorders = True
    a, b = node.input[:2]
    flip_a, flip_b = boxed.number(node, "transA", 0), boxed.number(node, "transB", 0)
    a, b, cut = _inner(boxed, a, 0 if flip_a else 1, b, 1 if flip_b else 0)
    form: Form = (boxed.form(a)[1 if flip_a else 0], boxed.form(b)[0 if flip_b else 1])
    bias = node.input[2] if len(node.input) > 2 else ""
    if not cut or not bias:
        changed = {0: a, 1: b}
        if bias:
            own = boxed.form(bias)
            wanted = {at: form[at - len(own)] for at in range(len(own)) if size_of(own[at]) > 1}
            changed[2] = boxed.fitted(bias, wanted)
        boxed.keep(node, form, changed)
        if cut:
            boxed.partial(node.output[0], node.output[0])
        return
    settings = {x.name: x.f if x.name == "alpha" else x.i for x in node.attribute if x.name != "beta"}
    beta = next((x.f for x in node.attribute if x.name == "beta"), 1.0)
    product = boxed.emit("Gemm", [a, b], f"{node.output[0]}@sum", form, **settings)
    boxed.partial(product, node.output[0])
    _bias(boxed, bias, product, node.output[0], beta)


def _conv(boxed: Boxed, node: onnx.NodeProto) -> None:
    import onnx

    boxed.reorders = True
    x, w = node.input[:2]
    windows = spatial(boxed, node, x, boxed.shape(w)[2:])
    boxed.whole(w, range(2, len(boxed.form(w))))
    channels, x, w, groups, cut = in_groups(boxed, x, 1, w, boxed.number(node, "group", 1))
    bias = node.input[2] if len(node.input) > 2 else ""
    made: Form = (boxed.form(x)[0], channels, *(one.dim for one in windows))
    pads = padding(windows)

    def settings(spans: Sequence[Span]) -> dict[str, int | list[int]]:
        return pads(spans) | {"group": extent(groups, spans)}

    changed = {0: x, 1: w}
    if bias:
        bias = boxed.fitted(bias, {0: channels})
    if not cut or not bias:
        boxed.keep(node, made, changed | ({2: bias} if bias else {}))
        boxed.settings[node.output[0]] = settings
        if cut:
            boxed.partial(node.output[0], node.output[0])
        return
    bare = onnx.NodeProto()
    bare.CopyFrom(node)
    del bare.input[2:]
    product = f"{node.output[0]}@sum"
    bare.output[0] = product
    boxed.keep(bare, made, changed)
    boxed.settings[product] = settings
    boxed.partial(product, node.output[0])
    boxed.reshape(bias, f"{bias}@column", (channels, *((),) * len(windows)))
    _bias(boxed, f"{bias}@column", product, node.output[0], 1.0)


RULES: dict[str, Rule] = {
    **LARGE,
    **dict.fromkeys(("Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"), _same_order),
    **dict.fromkeys(
        (
            "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
            "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
        ),
        _reduce,
    ),
    **dict.fromkeys(
        (
            "Hardmax", "LayerNormalization", "LogSoftmax", "LpNormalization", "RMSNormalization",
            "SimplifiedLayerNormalization", "Softmax",
        ),
        _along,
    ),
    "AveragePool": pool,
    "Concat": _concat,
    "Conv": _conv,
    "ConvTranspose": transposed,
    "Expand": _expand,
    "Gather": _gather,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "MaxPool": pool,
    "Pad": pad,
    "Resize": resize,
    "Slice": _slice,
    "Split": _split,
    "Transpose": _transpose,
}  # fmt: skip
