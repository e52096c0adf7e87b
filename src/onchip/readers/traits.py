"""ONNX operators by trait: element-wise, reading any layout, with operands that are settings."""

from __future__ import annotations

__all__ = ["ELEMENTWISE", "GATHERING", "SETTINGS", "is_setting", "reads_any_layout"]

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
    "Conv": frozenset({0}),
    "ConvInteger": frozenset({0}),
    "ConvTranspose": frozenset({0}),
    "Einsum": None,
    "Gemm": frozenset({0, 1}),
    "MatMul": None,
    "MatMulInteger": frozenset({0, 1}),
    "QLinearConv": frozenset({0}),
    "QLinearMatMul": frozenset({0, 3}),
}
"""Operators that fetch an operand through an address pattern anyway, so that a permuted or strided one
costs them nothing: by operand position, None for all of them."""

SETTINGS: dict[str, int] = {
    "CenterCropPad": 1, "Clip": 1, "ConstantOfShape": 0, "CumSum": 1, "Dropout": 1, "Expand": 1,
    "OneHot": 1, "Pad": 1, "Range": 0, "ReduceL1": 1, "ReduceL2": 1, "ReduceLogSum": 1,
    "ReduceLogSumExp": 1, "ReduceMax": 1, "ReduceMean": 1, "ReduceMin": 1, "ReduceProd": 1, "ReduceSum":
    1, "ReduceSumSquare": 1, "Reshape": 1, "Resize": 1, "Slice": 1, "Split": 1, "Squeeze": 1, "Tile": 1,
    "TopK": 1, "Trilu": 1, "Unsqueeze": 1, "Upsample": 1, "RandomUniform": 0, "NonMaxSuppression": 2,
}  # fmt: skip
"""Constant operands from this position on are settings (axes, sizes, limits), not parameters."""


def reads_any_layout(op: str, position: int) -> bool:
    """Whether an operator can read that operand permuted or strided."""
    return op in GATHERING and ((positions := GATHERING[op]) is None or position in positions)


def is_setting(op: str, position: int) -> bool:
    """Whether a constant operand is a setting of the operator and no parameter."""
    return op in SETTINGS and position >= SETTINGS[op]
