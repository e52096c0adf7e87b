"""The rules of nodes on integers with scales and zero points.

Where a box has a part of a sum, its products add up as whole numbers of 32 bits, and the last part is scaled
and rounded as the node would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from onchip.run.tiled.nests.boxed import Boxed
from onchip.run.tiled.nests.forms import Dim, Form, NotCompact, size_of
from onchip.run.tiled.nests.large_nodes import Rule
from onchip.run.tiled.nests.products import in_groups, inner
from onchip.run.tiled.nests.window_nodes import join, padding, pool, sliding, spatial

if TYPE_CHECKING:
    import onnx

__all__ = ["QUANTISED"]

INT32, FLOAT = 6, 1


def _convolution(boxed: Boxed, node: onnx.NodeProto) -> None:
    """QLinearConv: x, its scale and zero, w and its, those of the result, a bias."""
    x, w = node.input[0], node.input[3]
    windows = spatial(boxed, node, x, boxed.shape(w)[2:])
    boxed.whole(w, range(2, len(boxed.form(w))))
    channels, x, w, groups, cut = in_groups(boxed, x, 1, w, boxed.number(node, "group", 1))
    made: Form = (boxed.form(x)[0], channels, *(one.dim for one in windows))
    settings = sliding(padding(windows), groups)
    if not cut:
        boxed.keep(node, made, {0: x, 3: w, **_by_channel(boxed, node, (4, 5, 8), channels)})
        boxed.settings[node.output[0]] = settings
        return
    product = f"{node.output[0]}@sum"
    zeros = np.asarray(boxed.constants[node.input[5]]).reshape(-1)
    if (zeros != zeros[0]).any():
        raise NotCompact("a zero point for each channel has no rule for parts of a sum")
    boxed.fold([(f"{product}@zeros", np.asarray(zeros[0]))])
    inputs = [x, w, node.input[2], f"{product}@zeros"]
    known = {a.name: a for a in node.attribute}
    boxed.emit("ConvInteger", inputs, product, made)
    boxed.nodes[-1].attribute.extend(known.values())
    boxed.settings[product] = settings
    _finish(boxed, node, product, 1, node.input[8] if len(node.input) > 8 else "", (1, 4, 6), 7)


def _integer_convolution(boxed: Boxed, node: onnx.NodeProto) -> None:
    """ConvInteger: x, w and their zeros."""
    x, w = node.input[:2]
    windows = spatial(boxed, node, x, boxed.shape(w)[2:])
    boxed.whole(w, range(2, len(boxed.form(w))))
    channels, x, w, groups, cut = in_groups(boxed, x, 1, w, boxed.number(node, "group", 1))
    made: Form = (boxed.form(x)[0], channels, *(one.dim for one in windows))
    boxed.keep(node, made, {0: x, 1: w, **_by_channel(boxed, node, (3,), channels)})
    boxed.settings[node.output[0]] = sliding(padding(windows), groups)
    if cut:
        boxed.partial(node.output[0], node.output[0])


def _integer_product(boxed: Boxed, node: onnx.NodeProto) -> None:
    """MatMulInteger: a, b and their zeros."""
    a, b, form, cut = _product(boxed, node.input[0], node.input[1])
    if any(size_of(d) > 1 for name in node.input[2:3] if name for d in boxed.form(name)):
        raise NotCompact("a zero point for each row has no rule for boxes")
    boxed.keep(node, form, {0: a, 1: b, **_by_channel(boxed, node, (3,), form[-1])})
    if cut:
        boxed.partial(node.output[0], node.output[0])


def _scaled_product(boxed: Boxed, node: onnx.NodeProto) -> None:
    """QLinearMatMul: a, its scale and zero, b and its, those of the result."""
    a, b, form, cut = _product(boxed, node.input[0], node.input[3])
    if any(size_of(d) > 1 for at in (1, 2) for d in boxed.form(node.input[at])):
        raise NotCompact("a scale for each row has no rule for boxes")
    columns = _by_channel(boxed, node, (4, 5), form[-1])
    if not cut:
        boxed.keep(node, form, {0: a, 3: b, **columns})
        return
    product = f"{node.output[0]}@sum"
    boxed.emit("MatMulInteger", [a, b, node.input[2], columns.get(5, node.input[5])], product, form)
    _finish(boxed, node, product, len(form) - 1, "", (1, 4, 6), 7)


def _gemm(boxed: Boxed, node: onnx.NodeProto) -> None:
    """QGemm: a, its scale and zero, b and its, a bias, the scale and zero of the result."""
    a, b, bias = node.input[0], node.input[3], node.input[6] if len(node.input) > 6 else ""
    flip_a, flip_b = boxed.number(node, "transA", 0), boxed.number(node, "transB", 0)
    a, b, cut = inner(boxed, a, 0 if flip_a else 1, b, 1 if flip_b else 0)
    form: Form = (boxed.form(a)[1 if flip_a else 0], boxed.form(b)[0 if flip_b else 1])
    if not cut:
        columns = _by_channel(boxed, node, (4, 5), form[1])
        if bias:
            own = boxed.form(bias)
            wanted = {at: form[at - len(own)] for at in range(len(own)) if size_of(own[at]) > 1}
            columns[6] = boxed.fitted(bias, wanted)
        boxed.keep(node, form, {0: a, 3: b, **columns})
        return
    alpha = next((x.f for x in node.attribute if x.name == "alpha"), 1.0)
    if alpha != 1.0 or len(node.input) < 9 or not node.input[8] or (bias and len(boxed.form(bias)) != 1):
        raise NotCompact("parts of its sum have no rule for boxes")
    columns = _by_channel(boxed, node, (5,), form[1])
    product = f"{node.output[0]}@sum"
    sides = []
    for name, flip, own in ((a, flip_a, boxed.form(a)), (b, flip_b, boxed.form(b))):
        turned = f"{name}@turned"
        sides.append(boxed.emit("Transpose", [name], turned, own[::-1], perm=[1, 0]) if flip else name)
    boxed.emit("MatMulInteger", [*sides, node.input[2], columns.get(5, node.input[5])], product, form)
    _finish(boxed, node, product, 1, bias, (1, 4, 7), 8)


def _product(boxed: Boxed, a: str, b: str) -> tuple[str, str, Form, bool]:
    left, right = boxed.form(a), boxed.form(b)
    if min(len(left), len(right)) < 2:
        raise NotCompact("a product with a vector")
    a, b, cut = inner(boxed, a, len(left) - 1, b, len(right) - 2)
    rows, columns = boxed.form(a)[-2], boxed.form(b)[-1]
    (a, b), batch = boxed.broadcast([a, b], keep=2)
    return a, b, (*batch, rows, columns), cut


def _by_channel(boxed: Boxed, node: onnx.NodeProto, places: Sequence[int], channels: Dim) -> dict[int, str]:
    """Return the inputs among these that have a value for each channel, cut as the channels are."""
    names = {at: node.input[at] for at in places if at < len(node.input) and node.input[at]}
    forms = {at: boxed.form(name) for at, name in names.items()}
    if any(len(form) > 1 for form in forms.values()):
        raise NotCompact("scales of several sides have no rule for boxes")
    return {
        at: boxed.fitted(names[at], {0: channels})
        for at, form in forms.items()
        if form and size_of(form[0]) > 1
    }


def _finish(
    boxed: Boxed,
    node: onnx.NodeProto,
    product: str,
    at: int,
    bias: str,
    scales: tuple[int, int, int],
    zero: int,
) -> None:
    """Scale and round a complete sum of whole numbers, whose dimension `at` are the channels.

    `scales` are the positions of the scales of both operands and of the result, `zero` that of its zero.
    """
    boxed.elements[product] = INT32
    boxed.partial(product, node.output[0])
    form = boxed.form(product)
    column = (form[at], *((),) * (len(form) - 1 - at))
    name = product
    if bias:
        cut = boxed.fitted(bias, {0: form[at]})
        boxed.reshape(cut, f"{cut}@column", column)
        name = boxed.emit("Add", [name, f"{cut}@column"], f"{product}@biased", form)
    values = [np.asarray(boxed.constants[node.input[i]], np.float32) for i in scales]
    factor = f"{product}@factor"
    boxed.fold([(factor, (values[0] * values[1]) / values[2])])
    if boxed.constants[factor].size > 1:
        cut = boxed.fitted(factor, {0: form[at]})
        factor = f"{cut}@column"
        boxed.reshape(cut, factor, column)
    else:
        boxed.constants[factor] = boxed.constants[factor].reshape(())
    name = boxed.emit("Cast", [name], f"{product}@float", form, to=FLOAT)
    name = boxed.emit("Mul", [name, factor], f"{product}@scaled", form)
    boxed.fold([(f"{product}@one", np.ones((), np.float32))])
    boxed.constants[f"{product}@zero"] = np.asarray(boxed.constants[node.input[zero]]).reshape(())
    boxed.emit("QuantizeLinear", [name, f"{product}@one", f"{product}@zero"], node.output[0], form)


def _elementwise(boxed: Boxed, node: onnx.NodeProto) -> None:
    """QLinearAdd, QLinearMul and functions: an operand, its scale and zero, perhaps another, the result's."""
    places = (0, 3) if node.op_type in ("QLinearAdd", "QLinearMul") else (0,)
    names, form = boxed.broadcast([node.input[at] for at in places])
    for at, name in enumerate(node.input):
        if name and at not in places and any(size_of(dim) > 1 for dim in boxed.form(name)):
            raise NotCompact("a scale for each channel has no rule for boxes")
    boxed.keep(node, form, dict(zip(places, names, strict=True)))


def _softmax(boxed: Boxed, node: onnx.NodeProto) -> None:
    form = boxed.form(node.input[0])
    axis = boxed.number(node, "axis", -1) % len(form)
    boxed.whole(node.input[0], [axis] if boxed.number(node, "opset", 13) >= 13 else range(axis, len(form)))
    boxed.keep(node, form)


def _concat(boxed: Boxed, node: onnx.NodeProto) -> None:
    """QLinearConcat: the result's scale and zero, then each operand with its own."""
    join(boxed, node, range(2, len(node.input), 3), boxed.number(node, "axis", 0))


def _everywhere(boxed: Boxed, node: onnx.NodeProto) -> None:
    """A mean or maximum of each channel."""
    form = boxed.form(node.input[0])
    if boxed.number(node, "channels_last", 0):
        raise NotCompact("channels that come last have no rule for boxes")
    boxed.whole(node.input[0], range(2, len(form)))
    boxed.reorders |= node.op_type == "GlobalAveragePool"
    boxed.keep(node, (*form[:2], *((),) * (len(form) - 2)))


def _pool(boxed: Boxed, node: onnx.NodeProto) -> None:
    if boxed.number(node, "channels_last", 0):
        raise NotCompact("channels that come last have no rule for boxes")
    before = boxed.reorders
    pool(boxed, node)
    boxed.reorders = before


QUANTISED: dict[str, Rule] = {
    **dict.fromkeys(("QLinearAdd", "QLinearLeakyRelu", "QLinearMul", "QLinearSigmoid"), _elementwise),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "QLinearGlobalAveragePool"), _everywhere),
    "ConvInteger": _integer_convolution,
    "MatMulInteger": _integer_product,
    "QGemm": _gemm,
    "QLinearAveragePool": _pool,
    "QLinearConcat": _concat,
    "QLinearConv": _convolution,
    "QLinearMatMul": _scaled_product,
    "QLinearSoftmax": _softmax,
}
