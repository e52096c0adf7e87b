"""TFLite operators by trait: element-wise, moving nothing, with operands that are settings."""

from __future__ import annotations

__all__ = ["ELEMENTWISE", "SAME_BYTES", "is_setting"]

ELEMENTWISE = frozenset({
    "ABS", "ADD", "ADD_N", "ATAN2", "BITWISE_XOR", "CAST", "CEIL", "COS", "DEQUANTIZE", "DIV", "ELU",
    "EQUAL", "EXP", "FLOOR", "FLOOR_DIV", "FLOOR_MOD", "GELU", "GREATER", "GREATER_EQUAL", "HARD_SWISH",
    "LEAKY_RELU", "LESS", "LESS_EQUAL", "LOG", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "LOGISTIC",
    "MAXIMUM", "MINIMUM", "MUL", "NEG", "NOT_EQUAL", "POW", "PRELU", "QUANTIZE", "RELU", "RELU6",
    "RELU_0_TO_1", "RELU_N1_TO_1", "RIGHT_SHIFT", "ROUND", "RSQRT", "SELECT", "SELECT_V2", "SIGN", "SIN",
    "SQRT", "SQUARE", "SQUARED_DIFFERENCE", "SUB", "TANH",
})  # fmt: skip
"""Operators whose output element depends on the elements at the same (broadcast) place only."""

SAME_BYTES = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS"})
"""Operators that give the same bytes another shape."""

_SETTINGS_FROM = {
    **dict.fromkeys(("FILL", "RANGE"), 0),
    **dict.fromkeys((
        "ARG_MAX", "ARG_MIN", "BATCH_TO_SPACE_ND", "BROADCAST_TO", "CUMSUM", "EXPAND_DIMS", "MEAN",
        "MIRROR_PAD", "ONE_HOT", "PAD", "PADV2", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN",
        "REDUCE_PROD", "RESHAPE", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "REVERSE_V2", "SLICE",
        "SPACE_TO_BATCH_ND", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE", "SUM", "TILE", "TOPK_V2", "TRANSPOSE",
    ), 1),
}  # fmt: skip
_SETTINGS_AT = {"SPLIT": 0, "TRANSPOSE_CONV": 0}


def is_setting(kind: str, position: int) -> bool:
    """Return whether a constant operand is a setting of the operator (axes, sizes), not a parameter."""
    if kind in _SETTINGS_AT:
        return position == _SETTINGS_AT[kind]
    return kind in _SETTINGS_FROM and position >= _SETTINGS_FROM[kind]
