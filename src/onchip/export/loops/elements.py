"""The C of nodes that work element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from onchip.export.loops.nodes import Nodes, Rule
from onchip.export.loops.text import ctype, literal

if TYPE_CHECKING:
    import onnx

__all__ = ["ELEMENTS"]

F32 = np.dtype(np.float32)

UNARY = {
    "Abs": "fabsf(x)",
    "Ceil": "ceilf(x)",
    "Cos": "cosf(x)",
    "Erf": "erff(x)",
    "Exp": "expf(x)",
    "Floor": "floorf(x)",
    "HardSwish": "x * fminf(fmaxf(x / 6.0f + 0.5f, 0.0f), 1.0f)",
    "Log": "logf(x)",
    "Mish": "x * tanhf(log1pf(expf(x)))",
    "Neg": "-x",
    "Reciprocal": "1.0f / x",
    "Relu": "x > 0.0f ? x : 0.0f",
    "Round": "rintf(x)",
    "Sigmoid": "1.0f / (1.0f + expf(-x))",
    "Sin": "sinf(x)",
    "Softplus": "x > 0.0f ? x + log1pf(expf(-x)) : log1pf(expf(x))",
    "Softsign": "x / (1.0f + fabsf(x))",
    "Sqrt": "sqrtf(x)",
    "Tanh": "tanhf(x)",
}
"""Functions of one float x."""

BINARY = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}
COMPARED = {"Equal": "==", "Greater": ">", "Less": "<", "GreaterOrEqual": ">=", "LessOrEqual": "<="}


def _same_kind(nodes: Nodes, names: Sequence[str]) -> None:
    if len({nodes.kind(name) for name in names}) > 1:
        raise nodes.refuse("operands of several types")


def _floats(nodes: Nodes, name: str) -> None:
    if nodes.kind(name) != F32:
        raise nodes.refuse(f"{name} is no float of 32 bits")


def _unary(nodes: Nodes, node: onnx.NodeProto) -> None:
    x = node.input[0]
    value = nodes.value(x)
    if node.op_type == "Relu" and value.kind != F32:
        zero = literal(0, value.kind)
        nodes.emit(node.output[0], lambda i: f"{value.at(i)} > {zero} ? {value.at(i)} : {zero}")
        return
    if node.op_type in ("Neg", "Abs") and value.kind != F32:
        raise nodes.refuse("whole numbers with a sign turned")
    _floats(nodes, x)
    nodes.emit(
        node.output[0], lambda i: [f"const float x = {value.at(i)};", f"return {UNARY[node.op_type]};"]
    )


def _with_numbers(nodes: Nodes, node: onnx.NodeProto) -> None:
    """Apply functions of one float and of numbers that the node states."""
    x = node.input[0]
    _floats(nodes, x)
    value, kind = nodes.value(x), node.op_type

    def n(name: str, default: float) -> str:
        return literal(np.float32(nodes.number(node, name, default)), F32)

    if kind == "LeakyRelu":
        made = f"x < 0.0f ? x * {n('alpha', 0.01)} : x"
    elif kind == "Elu":
        made = f"x < 0.0f ? {n('alpha', 1.0)} * expm1f(x) : x"
    elif kind == "HardSigmoid":
        made = f"fminf(fmaxf(x * {n('alpha', 0.2)} + {n('beta', 0.5)}, 0.0f), 1.0f)"
    elif nodes.text(node, "approximate", "none") == "tanh":
        made = "0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)))"
    else:
        made = "0.5f * x * (1.0f + erff(x * 0.70710678f))"
    nodes.emit(node.output[0], lambda i: [f"const float x = {value.at(i)};", f"return {made};"])


def _binary(nodes: Nodes, node: onnx.NodeProto) -> None:
    a, b = node.input
    _same_kind(nodes, [a, b])
    kind = nodes.kind(a)
    sign, c = BINARY[node.op_type], ctype(kind)
    whole = kind.kind in "iu" and kind.itemsize < 8

    def made(i: list[str]) -> str:
        x, y = nodes.broadcast(a, i), nodes.broadcast(b, i)
        return f"({c})({x} {sign} {y})" if whole else f"{x} {sign} {y}"

    nodes.emit(node.output[0], made)


def _compared(nodes: Nodes, node: onnx.NodeProto) -> None:
    a, b = node.input
    _same_kind(nodes, [a, b])
    sign = COMPARED[node.op_type]
    nodes.emit(node.output[0], lambda i: f"(uint8_t)({nodes.broadcast(a, i)} {sign} {nodes.broadcast(b, i)})")


def _logic(nodes: Nodes, node: onnx.NodeProto) -> None:
    sign = {"And": "&&", "Or": "||"}.get(node.op_type, "!=")
    if node.op_type == "Not":
        x = nodes.value(node.input[0])
        nodes.emit(node.output[0], lambda i: f"(uint8_t)!{x.at(i)}")
        return
    a, b = node.input
    nodes.emit(node.output[0], lambda i: f"(uint8_t)({nodes.broadcast(a, i)} {sign} {nodes.broadcast(b, i)})")


def _extreme(nodes: Nodes, node: onnx.NodeProto) -> None:
    for name in node.input:
        _floats(nodes, name)
    function = "fmaxf" if node.op_type == "Max" else "fminf"

    def made(i: list[str]) -> str:
        found = nodes.broadcast(node.input[0], i)
        for name in node.input[1:]:
            found = f"{function}({found}, {nodes.broadcast(name, i)})"
        return found

    nodes.emit(node.output[0], made)


def _power(nodes: Nodes, node: onnx.NodeProto) -> None:
    x, y = node.input
    _floats(nodes, x)
    known = nodes.constants.get(y)
    if known is not None and known.size == 1 and float(known.reshape(-1)[0]) == 2.0:
        value = nodes.value(x)
        nodes.emit(node.output[0], lambda i: [f"const float x = {value.at(i)};", "return x * x;"])
        return
    nodes.emit(node.output[0], lambda i: f"powf({nodes.broadcast(x, i)}, (float){nodes.broadcast(y, i)})")


def _prelu(nodes: Nodes, node: onnx.NodeProto) -> None:
    x, slope = node.input
    _floats(nodes, x)
    value = nodes.value(x)
    nodes.emit(
        node.output[0],
        lambda i: [
            f"const float x = {value.at(i)};",
            f"return x < 0.0f ? x * {nodes.broadcast(slope, i)} : x;",
        ],
    )


def _clip(nodes: Nodes, node: onnx.NodeProto) -> None:
    x = node.input[0]
    _floats(nodes, x)
    value, limits = nodes.value(x), dict[str, str]()
    for at, name in enumerate(("min", "max"), 1):
        if len(node.input) > at and node.input[at]:
            limits[name] = literal(np.float32(nodes.scalar(node.input[at])), F32)
        elif any(a.name == name for a in node.attribute):
            limits[name] = literal(np.float32(nodes.number(node, name, 0.0)), F32)
    made = "x"
    if "min" in limits:
        made = f"fmaxf({made}, {limits['min']})"
    if "max" in limits:
        made = f"fminf({made}, {limits['max']})"
    nodes.emit(node.output[0], lambda i: [f"const float x = {value.at(i)};", f"return {made};"])


def _where(nodes: Nodes, node: onnx.NodeProto) -> None:
    test, a, b = node.input
    nodes.emit(
        node.output[0],
        lambda i: f"{nodes.broadcast(test, i)} ? {nodes.broadcast(a, i)} : {nodes.broadcast(b, i)}",
    )


def _cast(nodes: Nodes, node: onnx.NodeProto) -> None:
    value, kind = nodes.value(node.input[0]), nodes.kind(node.output[0])
    if kind == np.bool_:
        nodes.emit(node.output[0], lambda i: f"(uint8_t)({value.at(i)} != 0)")
    else:
        nodes.emit(node.output[0], lambda i: f"({ctype(kind)}){value.at(i)}")


def _batch_norm(nodes: Nodes, node: onnx.NodeProto) -> None:
    x, scale, bias, mean, variance = node.input[:5]
    _floats(nodes, x)
    value, epsilon = nodes.value(x), literal(np.float32(nodes.number(node, "epsilon", 1e-5)), F32)

    def made(i: list[str]) -> list[str]:
        one = {name: nodes.value(name).at([i[1]]) for name in (scale, bias, mean, variance)}
        return [
            f"const float s = {one[scale]} / sqrtf({one[variance]} + {epsilon});",
            f"return {value.at(i)} * s + ({one[bias]} - {one[mean]} * s);",
        ]

    nodes.emit(node.output[0], made)


def _along_axis(nodes: Nodes, node: onnx.NodeProto, name: str, i: list[str]) -> str:
    """Return an element of a scale: one for all, or one for each index along an axis."""
    value = nodes.value(name)
    if not value.shape or value.shape == (1,):
        return value.at(["0"] * len(value.shape))
    if len(value.shape) != 1:
        raise nodes.refuse("scales of blocks")
    axis = int(nodes.number(node, "axis", 1)) % len(i)
    return value.at([i[axis]])


def _dequantize(nodes: Nodes, node: onnx.NodeProto) -> None:
    x = nodes.value(node.input[0])
    scale = node.input[1]
    _floats(nodes, scale)
    zero = node.input[2] if len(node.input) > 2 else ""

    def made(i: list[str]) -> str:
        whole = f"(int32_t){x.at(i)}"
        if zero:
            whole = f"({whole} - (int32_t){_along_axis(nodes, node, zero, i)})"
        return f"(float){whole} * {_along_axis(nodes, node, scale, i)}"

    nodes.emit(node.output[0], made)


def _quantize(nodes: Nodes, node: onnx.NodeProto) -> None:
    x, scale = node.input[:2]
    _floats(nodes, x)
    value, kind = nodes.value(x), nodes.kind(node.output[0])
    if kind.name not in ("int8", "uint8"):
        raise nodes.refuse(f"results of type {kind.name} are rounded")
    zero = node.input[2] if len(node.input) > 2 else ""
    low, high = np.iinfo(kind).min, np.iinfo(kind).max

    def made(i: list[str]) -> str:
        offset = f"(int32_t){_along_axis(nodes, node, zero, i)}" if zero else "0"
        return (
            f"({ctype(kind)})rounded({value.at(i)} / {_along_axis(nodes, node, scale, i)}, {offset},"
            f" {low}, {high})"
        )

    nodes.emit(node.output[0], made)


ELEMENTS: dict[str, Rule] = {
    **dict.fromkeys(UNARY, _unary),
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(COMPARED, _compared),
    **dict.fromkeys(("And", "Or", "Xor", "Not"), _logic),
    **dict.fromkeys(("LeakyRelu", "Elu", "HardSigmoid", "Gelu"), _with_numbers),
    **dict.fromkeys(("Max", "Min"), _extreme),
    "BatchNormalization": _batch_norm,
    "Cast": _cast,
    "Clip": _clip,
    "DequantizeLinear": _dequantize,
    "PRelu": _prelu,
    "Pow": _power,
    "QuantizeLinear": _quantize,
    "Where": _where,
}
