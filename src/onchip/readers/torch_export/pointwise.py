"""Element-wise operators: functions of one value, and of two with torch's promotion of types."""

from __future__ import annotations

from typing import Any

import torch

from onchip.readers.torch_export.exporter import ELEMENT, Exporter, Node, arguments, kind_of, rule, shape
from onchip.readers.torch_export.layers import float_constant

UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan",
    "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp",
    "floor": "Floor", "hardswish": "HardSwish", "isinf": "IsInf", "isnan": "IsNaN", "log": "Log",
    "logical_not": "Not", "mish": "Mish", "neg": "Neg", "reciprocal": "Reciprocal", "relu": "Relu",
    "round": "Round", "selu": "Selu", "sigmoid": "Sigmoid", "sign": "Sign", "sgn": "Sign", "sin": "Sin",
    "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip

BINARY = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "true_divide": "Div", "pow": "Pow",
    "maximum": "Max", "minimum": "Min", "fmod": "Mod", "logical_and": "And", "logical_or": "Or",
    "logical_xor": "Xor",
}  # fmt: skip

COMPARISONS = {
    "eq": "Equal", "gt": "Greater", "ge": "GreaterOrEqual", "lt": "Less", "le": "LessOrEqual", "ne": "Equal",
}  # fmt: skip

BITWISE = {
    "bitwise_and": ("And", "BitwiseAnd"), "__and__": ("And", "BitwiseAnd"), "__and": ("And", "BitwiseAnd"),
    "bitwise_or": ("Or", "BitwiseOr"), "__or": ("Or", "BitwiseOr"), "__or__": ("Or", "BitwiseOr"),
    "bitwise_xor": ("Xor", "BitwiseXor"),
}  # fmt: skip


def first(to: Exporter, node: Node) -> str:
    """Return the one operand, in the element type of the result."""
    return to.operand(to.path(node), node.args[0], node.meta["val"].dtype)


@rule(*(kind for kind in UNARY if kind not in ("isinf", "isnan", "logical_not")))
def _unary(to: Exporter, node: Node) -> None:
    if kind_of(node) == "round" and arguments(node).get("decimals"):
        raise to.refuse(node, "rounds to decimals, which ONNX does not")
    to.values[node] = to.emit(UNARY[kind_of(node)], to.path(node), [first(to, node)])


@rule("isinf", "isnan", "logical_not")
def _predicate(to: Exporter, node: Node) -> None:
    (source,) = node.args
    assert isinstance(source, Node)
    dtype = torch.bool if kind_of(node) == "logical_not" else source.meta["val"].dtype
    value = to.operand(to.path(node), source, dtype)
    to.values[node] = to.emit(UNARY[kind_of(node)], to.path(node), [value])


@rule("bitwise_not")
def _bitwise_not(to: Exporter, node: Node) -> None:
    op = "Not" if node.meta["val"].dtype == torch.bool else "BitwiseNot"
    to.values[node] = to.emit(op, to.path(node), [first(to, node)])


@rule("gelu")
def _gelu(to: Exporter, node: Node) -> None:
    approximate = arguments(node)["approximate"]
    settings = {} if approximate == "none" else {"approximate": approximate}
    to.values[node] = to.emit("Gelu", to.path(node), [to.value(node.args[0])], **settings)


@rule("silu")
def _silu(to: Exporter, node: Node) -> None:
    to.values[node] = to.emit("Swish", to.path(node), [first(to, node)])


@rule("hardsigmoid")
def _hardsigmoid(to: Exporter, node: Node) -> None:
    to.values[node] = to.emit("HardSigmoid", to.path(node), [first(to, node)], alpha=1 / 6, beta=0.5)


@rule("leaky_relu", "elu", "celu")
def _with_slope(to: Exporter, node: Node) -> None:
    a = arguments(node)
    if a.get("scale", 1) != 1 or a.get("input_scale", 1) != 1:
        raise to.refuse(node, "scales, which ONNX's Elu does not")
    op = {"leaky_relu": "LeakyRelu", "elu": "Elu", "celu": "Celu"}[kind_of(node)]
    slope = float(a.get("negative_slope", a.get("alpha", 1.0)))
    to.values[node] = to.emit(op, to.path(node), [first(to, node)], alpha=slope)


@rule("softplus")
def _softplus(to: Exporter, node: Node) -> None:
    a = arguments(node)
    if a["beta"] != 1:
        raise to.refuse(node, "has a beta, which ONNX's Softplus has not")
    to.values[node] = to.emit("Softplus", to.path(node), [first(to, node)])


@rule("log_sigmoid", "log_sigmoid_forward")
def _log_sigmoid(to: Exporter, node: Node) -> None:
    name = to.path(node)
    value = to.emit("Sigmoid", f"{name}.sigmoid", [first(to, node)])
    to.values[node] = to.emit("Log", name, [value])


@rule("rsqrt")
def _rsqrt(to: Exporter, node: Node) -> None:
    name = to.path(node)
    to.values[node] = to.emit("Reciprocal", name, [to.emit("Sqrt", f"{name}.sqrt", [first(to, node)])])


@rule("square")
def _square(to: Exporter, node: Node) -> None:
    value = first(to, node)
    to.values[node] = to.emit("Mul", to.path(node), [value, value])


@rule("log2", "log10", "log1p", "expm1", "exp2")
def _composed(to: Exporter, node: Node) -> None:
    """Emit functions that combine another one with a constant."""
    name, kind, value = to.path(node), kind_of(node), first(to, node)
    constant = {"log2": 2.0, "log10": 10.0, "log1p": 1.0, "expm1": 1.0, "exp2": 2.0}[kind]
    number = to.operand(f"{name}.constant", constant, node.meta["val"].dtype)
    if kind == "log1p":
        to.values[node] = to.emit("Log", name, [to.emit("Add", f"{name}.add", [value, number])])
    elif kind == "expm1":
        to.values[node] = to.emit("Sub", name, [to.emit("Exp", f"{name}.exp", [value]), number])
    elif kind == "exp2":
        to.values[node] = to.emit("Pow", name, [number, value])
    else:
        base = to.operand(f"{name}.base", float(torch.tensor(constant).log()), node.meta["val"].dtype)
        to.values[node] = to.emit("Div", name, [to.emit("Log", f"{name}.log", [value]), base])


@rule("hardtanh", "relu6", "clamp", "clip", "clamp_min", "clamp_max")
def _clip(to: Exporter, node: Node) -> None:
    a = arguments(node)
    name, dtype = to.path(node), node.meta["val"].dtype
    low, high = (a.get(f"{key}_val", a.get(key)) for key in ("min", "max"))
    if kind_of(node) == "relu6":
        low, high = 0.0, 6.0
    if isinstance(low, Node) or isinstance(high, Node):
        value = to.value(a["self"])
        for op, bound in (("Max", low), ("Min", high)):
            if bound is not None:
                value = to.emit(
                    op, f"{name}.{op.lower()}", [value, to.operand(f"{name}.bound", bound, dtype)]
                )
        to.values[node] = value
        return
    bounds = [
        "" if bound is None else float_constant(to, f"{name}.{key}", bound, dtype)
        for key, bound in (("min", low), ("max", high))
    ]
    while bounds and not bounds[-1]:
        bounds.pop()
    to.values[node] = to.emit("Clip", name, [first(to, node), *bounds])


@rule("prelu", "_prelu_kernel")
def _prelu(to: Exporter, node: Node) -> None:
    """Emit a `PRelu`: the slopes belong to axis 1, and ONNX aligns at the last."""
    source, slope = node.args
    assert isinstance(source, Node)
    assert isinstance(slope, Node)
    value, size = to.value(slope), shape(slope)
    if len(size) == 1 and size[0] > 1:
        wanted = [size[0]] + [1] * (len(shape(source)) - 2)
        value = to.reshape(f"{to.path(node)}.slopes", value, size, wanted)
    to.values[node] = to.emit("PRelu", to.path(node), [to.value(source), value])


# ---------------------------------------------------------------------- two operands


@rule(*BINARY)
def _binary(to: Exporter, node: Node) -> None:
    a = arguments(node)
    name, kind, dtype = to.path(node), kind_of(node), node.meta["val"].dtype
    left, right = node.args[:2]
    if kind.startswith("logical"):
        dtype = torch.bool
    if kind == "pow" and isinstance(right, int | float) and right in (1, 2):
        value = to.operand(f"{name}.self", left, dtype)
        to.values[node] = value if right == 1 else to.emit("Mul", name, [value, value])
        return
    if a.get("alpha", 1) != 1:
        right = _scaled(to, name, right, a["alpha"], dtype)
    operands = [
        given if isinstance(given, str) else to.operand(f"{name}.{key}", given, dtype)
        for key, given in (("self", left), ("other", right))
    ]
    settings: dict[str, Any] = {"fmod": 1} if kind == "fmod" else {}
    rounding = a.get("rounding_mode")
    if rounding and not dtype.is_floating_point:
        raise to.refuse(
            node, "divides whole numbers with rounding, which ONNX does not say for negative ones"
        )
    value = to.emit(BINARY[kind], f"{name}.quotient" if rounding else name, operands, **settings)
    if rounding == "floor":
        value = to.emit("Floor", name, [value])
    elif rounding == "trunc":
        raise to.refuse(node, "rounds towards zero, which ONNX does not")
    to.values[node] = value


def _scaled(to: Exporter, name: str, given: Any, alpha: float, dtype: torch.dtype) -> Any:
    """Return `alpha * given`, as a number or as a value."""
    if not isinstance(given, Node):
        return given * alpha
    factor = to.operand(f"{name}.alpha", alpha, dtype)
    return to.emit("Mul", f"{name}.scaled", [to.operand(f"{name}.other", given, dtype), factor])


@rule("rsub")
def _rsub(to: Exporter, node: Node) -> None:
    a = arguments(node)
    name, dtype = to.path(node), node.meta["val"].dtype
    left, right = node.args[:2]
    if a["alpha"] != 1:
        left = _scaled(to, name, left, a["alpha"], dtype)
    operands = [
        given if isinstance(given, str) else to.operand(f"{name}.{key}", given, dtype)
        for key, given in (("other", right), ("self", left))
    ]
    to.values[node] = to.emit("Sub", name, operands)


@rule("floor_divide", "remainder")
def _floor_divide(to: Exporter, node: Node) -> None:
    name, dtype = to.path(node), node.meta["val"].dtype
    operands = [to.operand(f"{name}.{i}", given, dtype) for i, given in enumerate(node.args[:2])]
    if kind_of(node) == "remainder" and not dtype.is_floating_point:
        to.values[node] = to.emit("Mod", name, operands)
        return
    if not dtype.is_floating_point:
        raise to.refuse(
            node, "divides whole numbers with rounding, which ONNX does not say for negative ones"
        )
    value = to.emit("Floor", f"{name}.floor", [to.emit("Div", f"{name}.quotient", operands)])
    if kind_of(node) == "remainder":
        value = to.emit("Sub", name, [operands[0], to.emit("Mul", f"{name}.whole", [value, operands[1]])])
    to.values[node] = value


@rule(*COMPARISONS)
def _compare(to: Exporter, node: Node) -> None:
    name = to.path(node)
    dtype = torch.result_type(*(n.meta["val"] if isinstance(n, Node) else n for n in node.args[:2]))
    operands = [to.operand(f"{name}.{i}", given, dtype) for i, given in enumerate(node.args[:2])]
    unequal = kind_of(node) == "ne"
    value = to.emit(COMPARISONS[kind_of(node)], f"{name}.equal" if unequal else name, operands)
    to.values[node] = to.emit("Not", name, [value]) if unequal else value


@rule(*BITWISE)
def _bitwise(to: Exporter, node: Node) -> None:
    name, dtype = to.path(node), node.meta["val"].dtype
    operands = [to.operand(f"{name}.{i}", given, dtype) for i, given in enumerate(node.args[:2])]
    to.values[node] = to.emit(BITWISE[kind_of(node)][dtype != torch.bool], name, operands)


@rule("addcmul", "addcdiv", "lerp")
def _three(to: Exporter, node: Node) -> None:
    a = arguments(node)
    name, dtype = to.path(node), node.meta["val"].dtype
    if kind_of(node) == "lerp":
        start, end = to.value(a["self"]), to.value(a["end"])
        step = to.emit("Sub", f"{name}.difference", [end, start])
        step = to.emit("Mul", f"{name}.step", [step, to.operand(f"{name}.weight", a["weight"], dtype)])
        to.values[node] = to.emit("Add", name, [start, step])
        return
    op = "Mul" if kind_of(node) == "addcmul" else "Div"
    value = to.emit(op, f"{name}.inner", [to.value(a["tensor1"]), to.value(a["tensor2"])])
    if a["value"] != 1:
        value = to.emit("Mul", f"{name}.scaled", [value, to.operand(f"{name}.value", a["value"], dtype)])
    to.values[node] = to.emit("Add", name, [to.value(a["self"]), value])


@rule("where")
def _where(to: Exporter, node: Node) -> None:
    a = arguments(node)
    name, dtype = to.path(node), node.meta["val"].dtype
    operands = [to.operand(f"{name}.{key}", a[key], dtype) for key in ("self", "other")]
    to.values[node] = to.emit("Where", name, [to.value(a["condition"]), *operands])


@rule("masked_fill")
def _masked_fill(to: Exporter, node: Node) -> None:
    a = arguments(node)
    name, dtype = to.path(node), node.meta["val"].dtype
    operands = [to.operand(f"{name}.{key}", a[key], dtype) for key in ("value", "self")]
    to.values[node] = to.emit("Where", name, [to.value(a["mask"]), *operands])


@rule("to", "_to_copy", "type_as", "float", "half", "double", "_cast_Float", "_cast_Half")
def _to(to: Exporter, node: Node) -> None:
    source = node.args[0]
    assert isinstance(source, Node)
    value, dtype = to.value(source), node.meta["val"].dtype
    if source.meta["val"].dtype != dtype:
        value = to.emit("Cast", to.path(node), [value], to=ELEMENT[dtype])
    to.values[node] = value


@rule("glu")
def _glu(to: Exporter, node: Node) -> None:
    a = arguments(node)
    name, size = to.path(node), shape(node)
    axis = a["dim"] % len(size)
    sizes = to.constant(f"{name}.sizes", [size[axis]] * 2)
    left, right = to.emit_many("Split", f"{name}.split", [to.value(a["self"]), sizes], 2, axis=axis)
    to.values[node] = to.emit("Mul", name, [left, to.emit("Sigmoid", f"{name}.gate", [right])])
