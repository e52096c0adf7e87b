"""ONNX operators by trait: element-wise, reading any layout, with operands that are settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "ELEMENTWISE",
    "GATHERING",
    "SETTINGS",
    "VENDOR",
    "VENDOR_OPERATORS",
    "declare_elementwise",
    "declare_reach",
    "declared_rule",
    "is_elementwise",
    "is_setting",
    "reads_any_layout",
]

ELEMENTWISE = frozenset({
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization",
    "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "CastLike", "Ceil",
    "Celu", "Clip", "Cos", "Cosh", "DequantizeLinear", "Div", "Elu", "Equal", "Erf", "Exp", "Floor",
    "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu",
    "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or",
    "PRelu", "Pow", "QuantizeLinear", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid",
    "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh",
    "ThresholdedRelu", "Where", "Xor",
})  # fmt: skip
"""Operators whose output element depends on the elements at the same (broadcast) place only."""

GATHERING: dict[str, frozenset[int] | None] = {
    "Attention": frozenset({0, 1, 2, 4, 5}),
    "Concat": None,
    "DepthToSpace": None,
    "Conv": frozenset({0}),
    "ConvInteger": frozenset({0}),
    "ConvTranspose": frozenset({0}),
    "Einsum": None,
    "Expand": None,
    "Gather": frozenset({0}),
    "Gemm": frozenset({0, 1}),
    "MatMul": None,
    "MatMulInteger": frozenset({0, 1}),
    "Pad": None,
    "QLinearConv": frozenset({0}),
    "QLinearMatMul": frozenset({0, 3}),
    "RotaryEmbedding": frozenset({0}),
    "SpaceToDepth": None,
    "Tile": None,
}
"""Operators that fetch an operand by an address pattern of their own, or only move it, so that a permuted or
strided one costs them nothing: by operand position, None for all of them."""

SETTINGS: dict[str, int] = {
    **dict.fromkeys(("ConstantOfShape", "RandomUniform", "Range"), 0),
    **dict.fromkeys((
        "CenterCropPad", "Clip", "CumSum", "Dropout", "Expand", "OneHot", "Pad", "ReduceL1",
        "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
        "ReduceProd", "ReduceSum", "ReduceSumSquare", "Reshape", "Resize", "Slice", "Split",
        "Squeeze", "Tile", "TopK", "Trilu", "Unsqueeze", "Upsample",
    ), 1),
    "NonMaxSuppression": 2,
}  # fmt: skip
"""Constant operands from this position on are settings (axes, sizes, limits), not parameters."""


VENDOR = "com.microsoft"
"""The domain of onnxruntime's own operators."""

VENDOR_OPERATORS = frozenset({("", "SimplifiedLayerNormalization")}) | {(VENDOR, op) for op in (
    "Attention", "BiasGelu", "DequantizeLinear", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "FastGelu",
    "FusedConv", "FusedGemm", "FusedMatMul", "Gelu", "GroupQueryAttention", "MatMulIntegerToFloat",
    "MatMulNBits", "MultiHeadAttention", "QGemm", "QLinearAdd", "QLinearAveragePool", "QLinearConcat",
    "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearMul", "QLinearSigmoid", "QLinearSoftmax",
    "QuantizeLinear", "QuickGelu", "RotaryEmbedding", "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
)}  # fmt: skip
"""(domain, operator) of those that are read although `onnx` does not know them."""


_DECLARED: set[tuple[str, str]] = set()


def declare_elementwise(domain: str, *operators: str) -> None:
    """Declare operators of a domain of your own whose output elements depend only on those at their place.

    They are then merged into the producers of their inputs, may be planned in place and fused. Nothing checks
    the promise. ONNX must know the operators (`onnx.defs.register_schema`).
    """
    _DECLARED.update((domain, operator) for operator in operators)


_RULES: dict[tuple[str, str], Callable[..., Any]] = {}


def declare_reach(domain: str, operator: str, rule: Callable[..., Any]) -> None:
    """Declare the needs of a box of the result of an operator of a domain of your own.

    `rule` is an `onchip.readers.reach_rules.Rule`. The operator may then run in boxes of its output. Nothing
    checks the promise before the plan is executed. ONNX must know the operator
    (`onnx.defs.register_schema`).
    """
    _RULES[domain, operator] = rule


def declared_rule(domain: str, operator: str) -> Callable[..., Any] | None:
    """Return the rule that was declared for an operator."""
    return _RULES.get((domain, operator))


def is_elementwise(op: str, domain: str) -> bool:
    """Return whether an operator is element-wise: one of ONNX itself, or declared."""
    return op in ELEMENTWISE if domain == "" else (domain, op) in _DECLARED


def reads_any_layout(op: str, position: int) -> bool:
    """Return whether an operator can read that operand permuted or strided."""
    return op in GATHERING and ((positions := GATHERING[op]) is None or position in positions)


def is_setting(op: str, position: int) -> bool:
    """Return whether a constant operand is a setting of the operator, not a parameter."""
    return op in SETTINGS and position >= SETTINGS[op]
