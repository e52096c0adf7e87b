"""The rules by which a node runs on boxes of its operands, one for each kind of node.

A rule adds nodes to a `Boxed` and states the form of the node's result, or raises `NotCompact`. A kind
without a rule runs on whole operands instead (`whole_nodes`): right, but as slow as the whole operator for
every box.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from onchip.readers.traits import is_elementwise
from onchip.run.tiled.nests.boxed import Boxed
from onchip.run.tiled.nests.forms import (
    FULL,
    REPEATED,
    Atom,
    Dim,
    NotCompact,
    is_cut,
    is_whole,
    regrouped,
    size_of,
    tidy,
)
from onchip.run.tiled.nests.large_nodes import LARGE, Rule
from onchip.run.tiled.nests.products import convolution, fused_convolution, fused_gemm, gemm, matmul
from onchip.run.tiled.nests.quantised_nodes import QUANTISED
from onchip.run.tiled.nests.window_nodes import join, pad, pool, resize, transposed

if TYPE_CHECKING:
    import onnx

__all__ = ["SUMS", "add"]

SUMS = frozenset({"Conv", "Einsum", "FusedMatMul", "Gemm", "MatMul"})
"""The nodes whose sums are added up part by part; those of others wait for their last part (`exact`)."""

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
    for i, axis in enumerate(axes):
        start = starts[i] + shape[axis] if starts[i] < 0 else starts[i]
        start = min(max(start, 0), shape[axis])
        made_as = node.output[0] if axis == axes[-1] else f"{node.output[0]}@{i}"
        step = 1 if steps is None else steps[i]
        if step < 0 and is_whole(boxed.form(value)[axis]):
            numbers = {
                f"{made_as}@{n}": np.array([number], np.int64)
                for n, number in enumerate((starts[i], ends[i], axis, step))
            }
            boxed.fold(numbers.items())
            made = list(boxed.form(value))
            made[axis] = tidy([Atom(FULL, out[axis])])
            boxed.emit("Slice", [value, *numbers], made_as, tuple(made))
        else:
            boxed.take(value, axis, start, out[axis], made_as, step)
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


def _gather_elements(boxed: Boxed, node: onnx.NodeProto) -> None:
    x, indices = node.input[:2]
    axis = boxed.number(node, "axis", 0) % len(boxed.form(x))
    boxed.whole(x, [axis])
    pairs = list(enumerate(zip(boxed.form(x), boxed.form(indices), strict=True)))
    indices = boxed.fitted(indices, {at: mine for at, (mine, _) in pairs if at != axis and is_cut(mine)})
    x = boxed.fitted(x, {at: own for at, own in enumerate(boxed.form(indices)) if at != axis})
    boxed.keep(node, boxed.form(indices), {0: x, 1: indices})


def _sampled(boxed: Boxed, node: onnx.NodeProto) -> None:
    """GridSample: all rows and columns of a map, at the places of the box."""
    x, places = node.input[:2]
    boxed.whole(x, range(2, len(boxed.form(x))))
    own = boxed.form(places)
    boxed.whole(places, [len(own) - 1])
    x = boxed.fitted(x, {0: own[0]})
    boxed.keep(node, (own[0], boxed.form(x)[1], *own[1:-1]), {0: x})


def _largest(boxed: Boxed, node: onnx.NodeProto) -> None:
    """ArgMax and ArgMin: all of one dimension makes each position."""
    form = boxed.form(node.input[0])
    axis = boxed.number(node, "axis", 0) % len(form)
    boxed.whole(node.input[0], [axis])
    kept = [()] if boxed.number(node, "keepdims", 1) else []
    boxed.keep(node, (*form[:axis], *kept, *form[axis + 1 :]))


def _concat(boxed: Boxed, node: onnx.NodeProto) -> None:
    join(boxed, node, range(len(node.input)), boxed.number(node, "axis", 0))


def _deeper(boxed: Boxed, node: onnx.NodeProto) -> None:
    """DepthToSpace and SpaceToDepth: blocks of positions become channels, or channels blocks."""
    value, size = node.input[0], boxed.number(node, "blocksize", 1)
    n, c, h, w = boxed.shape(value)
    if node.op_type == "SpaceToDepth":
        parts, order = (n, c, h // size, size, w // size, size), (0, 3, 5, 1, 2, 4)
    elif next((a.s for a in node.attribute if a.name == "mode"), b"DCR") == b"CRD":
        parts, order = (n, c // size**2, size, size, h, w), (0, 1, 4, 2, 5, 3)
    else:
        parts, order = (n, size, size, c // size**2, h, w), (0, 3, 4, 1, 5, 2)
    apart, made = f"{node.output[0]}@apart", f"{node.output[0]}@turned"
    form = regrouped(boxed.flat(value), parts)
    boxed.reshape(value, apart, form)
    boxed.emit("Transpose", [apart], made, tuple(form[i] for i in order), perm=order)
    boxed.regroup(made, node.output[0])


def _beside(boxed: Boxed, node: onnx.NodeProto) -> None:
    """Channels near each other bring each other to one scale."""
    boxed.whole(node.input[0], [1])
    boxed.reorders = True
    boxed.keep(node, boxed.form(node.input[0]))


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


def _running(boxed: Boxed, node: onnx.NodeProto) -> None:
    """CumSum: all of one dimension, from its first element on."""
    form = boxed.form(node.input[0])
    [axis] = boxed.setting(node, 1, "") or (0,)
    boxed.whole(node.input[0], [axis % len(form)])
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


RULES: dict[str, Rule] = {
    **LARGE,
    **QUANTISED,
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
    "ArgMax": _largest,
    "ArgMin": _largest,
    "AveragePool": pool,
    "Concat": _concat,
    "Conv": convolution,
    "ConvTranspose": transposed,
    "CumSum": _running,
    "DepthToSpace": _deeper,
    "Expand": _expand,
    "FusedConv": fused_convolution,
    "FusedGemm": fused_gemm,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "Gemm": gemm,
    "GridSample": _sampled,
    "LRN": _beside,
    "MatMul": matmul,
    "MaxPool": pool,
    "Pad": pad,
    "Resize": resize,
    "Slice": _slice,
    "SpaceToDepth": _deeper,
    "Split": _split,
    "Transpose": _transpose,
}  # fmt: skip
