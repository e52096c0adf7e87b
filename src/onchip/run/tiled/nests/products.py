"""The rules of products: matrices and convolutions, whose sums may be cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from onchip.run.tiled.nests.boxed import Boxed
from onchip.run.tiled.nests.exact import InParts, as_in_the_whole, convolution_as_in_the_whole
from onchip.run.tiled.nests.forms import Dim, Form, NotCompact, is_cut, regrouped, size_of, tidy
from onchip.run.tiled.nests.window_nodes import padding, sliding, spatial

if TYPE_CHECKING:
    import onnx

__all__ = ["convolution", "fused_convolution", "fused_gemm", "gemm", "in_groups", "inner", "matmul"]


def matmul(boxed: Boxed, node: onnx.NodeProto) -> None:
    """A product; a vector has no row, or no column, of the result."""
    boxed.reorders |= not boxed.rounded
    a, b = node.input
    left, right = boxed.form(a), boxed.form(b)
    vector = min(len(left), len(right)) < 2
    a, b, cut = inner(boxed, a, len(left) - 1, b, max(len(right) - 2, 0))
    left, right = boxed.form(a), boxed.form(b)
    form: Form
    if vector:
        form = left[:-1] if len(right) < 2 else (*right[:-2], right[-1])
    else:
        (a, b), batch = boxed.broadcast([a, b], keep=2)
        form = (*batch, left[-2], right[-1])
    if boxed.rounded:
        _whole_sum(cut)
        if vector:
            raise NotCompact("a product with a vector that is rounded")
        as_in_the_whole(boxed, node, form, {0: a, 1: b})
        return
    boxed.keep(node, form, {0: a, 1: b})
    if cut:
        boxed.partial(node.output[0], node.output[0])


def _whole_sum(cut: bool) -> None:
    if cut:
        raise InParts("parts of a sum are not rounded alike")


def inner(boxed: Boxed, a: str, at: int, b: str, beside: int) -> tuple[str, str, bool]:
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
        x, w, cut = inner(boxed, x, at, w, 1)
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
    if beta != 1.0:
        factor = f"{output}@beta"
        boxed.fold([(factor, np.asarray(beta, boxed.constants.get(name, np.zeros(1, np.float32)).dtype))])
        name = boxed.emit("Mul", [name, factor], f"{output}@bias", boxed.form(name))
    (one, other), form = boxed.broadcast([product, name])
    boxed.emit("Add", [one, other], output, form)


def gemm(boxed: Boxed, node: onnx.NodeProto) -> None:
    boxed.reorders |= not boxed.rounded
    a, b = node.input[:2]
    flip_a, flip_b = boxed.number(node, "transA", 0), boxed.number(node, "transB", 0)
    a, b, cut = inner(boxed, a, 0 if flip_a else 1, b, 1 if flip_b else 0)
    form: Form = (boxed.form(a)[1 if flip_a else 0], boxed.form(b)[0 if flip_b else 1])
    bias = node.input[2] if len(node.input) > 2 else ""
    if not cut or not bias:
        changed = {0: a, 1: b}
        if bias:
            own = boxed.form(bias)
            wanted = {at: form[at - len(own)] for at in range(len(own)) if size_of(own[at]) > 1}
            changed[2] = boxed.fitted(bias, wanted)
        if boxed.rounded:
            _whole_sum(cut)
            as_in_the_whole(boxed, node, form, changed)
            return
        boxed.keep(node, form, changed)
        if cut:
            boxed.partial(node.output[0], node.output[0])
        return
    if boxed.rounded:
        _whole_sum(cut)
    settings = {x.name: x.f if x.name == "alpha" else x.i for x in node.attribute if x.name != "beta"}
    beta = next((x.f for x in node.attribute if x.name == "beta"), 1.0)
    product = boxed.emit("Gemm", [a, b], f"{node.output[0]}@sum", form, **settings)
    boxed.partial(product, node.output[0])
    _bias(boxed, bias, product, node.output[0], beta)


def convolution(boxed: Boxed, node: onnx.NodeProto) -> None:
    import onnx

    boxed.reorders = True
    x, w = node.input[:2]
    windows = spatial(boxed, node, x, boxed.shape(w)[2:])
    boxed.whole(w, range(2, len(boxed.form(w))))
    channels, x, w, groups, cut = in_groups(boxed, x, 1, w, boxed.number(node, "group", 1))
    if boxed.rounded:
        _whole_sum(cut)
    bias = node.input[2] if len(node.input) > 2 else ""
    made: Form = (boxed.form(x)[0], channels, *(one.dim for one in windows))
    settings = sliding(padding(windows), groups)
    changed = {0: x, 1: w}
    if bias:
        bias = boxed.fitted(bias, {0: channels})
    if boxed.rounded and not groups:
        operands = changed | ({2: bias} if bias else {})
        convolution_as_in_the_whole(boxed, node, made, operands, settings)
        return
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


_WITH_SETTINGS = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta")}


def fused_convolution(boxed: Boxed, node: onnx.NodeProto) -> None:
    """onnxruntime's `FusedConv`: a convolution, an addend, a function of each element."""
    known = {a.name: a for a in node.attribute}
    values = list(known["activation_params"].floats) if "activation_params" in known else []
    function, settings = _function(known, values)
    value = _bare(boxed, node, "Conv", convolution)
    if len(node.input) > 3 and node.input[3]:
        (one, other), form = boxed.broadcast([value, node.input[3]])
        value = boxed.emit("Add", [one, other], f"{node.output[0]}@added", form)
    boxed.emit(function, [value], node.output[0], boxed.form(value), **settings)


def fused_gemm(boxed: Boxed, node: onnx.NodeProto) -> None:
    """onnxruntime's `FusedGemm`: a product, an addend, a function of each element."""
    known = {a.name: a for a in node.attribute}
    stated = [known.get(f"activation_{name}") for name in ("alpha", "beta")]
    function, settings = _function(known, [a.f for a in stated if a is not None])
    value = _bare(boxed, node, "Gemm", gemm)
    boxed.emit(function, [value], node.output[0], boxed.form(value), **settings)


def _function(known: Mapping[str, onnx.AttributeProto], values: list[float]) -> tuple[str, dict[str, float]]:
    """Return the function behind a product, and its settings."""
    function = known["activation"].s.decode() if "activation" in known else "Identity"
    names = _WITH_SETTINGS.get(function, ())
    if function not in ("Identity", "Relu", "Sigmoid", "Tanh", *_WITH_SETTINGS) or len(names) != len(values):
        raise NotCompact(f"a product with {function} behind it has no rule for boxes")
    return function, dict(zip(names, values, strict=True))


def _bare(boxed: Boxed, node: onnx.NodeProto, op: str, rule: Callable[[Boxed, onnx.NodeProto], None]) -> str:
    """Add the product inside a fused node, without what comes behind it; return its result."""
    from onnx import helper

    made = f"{node.output[0]}@{op.lower()}"
    bare = helper.make_node(op, [*node.input[:3]], [made])
    bare.attribute.extend(a for a in node.attribute if not a.name.startswith("activation"))
    boxed.shapes = {**boxed.shapes, made: boxed.shape(node.output[0])}
    boxed.elements[made] = boxed.elements[f"{made}@sum"] = 1
    rule(boxed, bare)
    return made
