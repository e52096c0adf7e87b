"""Element types: the bytes of a value in the file, and under a planning dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

__all__ = ["BITS", "FLOATING", "NAMES", "value_bytes"]

BITS = {
    1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64, 15:
    128, 16: 16, 17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8, 25: 2, 26: 2, 27: 6, 28: 6,
}  # fmt: skip
"""Bits of an element by ONNX element type (types under a byte are packed); strings (8) have none."""

NAMES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15:
    "complex128", 16: "bfloat16", 17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20:
    "float8e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26:
    "int2", 27: "float6e2m3", 28: "float6e3m2",
}  # fmt: skip

FLOATING = frozenset({1, 10, 11, 14, 15, 16, 17, 18, 19, 20, 23, 24, 27, 28})


def value_bytes(element: int, shape: Sequence[int], dtype: Literal["file", "int8", "int16"]) -> int:
    """Return the bytes of a value of an ONNX element type; `dtype` int8 or int16 resizes floats."""
    bits = BITS[element]
    if dtype != "file" and element in FLOATING:
        bits = 8 if dtype == "int8" else 16
    return (math.prod(shape) * bits + 7) // 8
