"""A product that adds a matrix: the product alone, and an addition behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

__all__ = ["addend_apart"]

Array = np.ndarray[Any, Any]


def addend_apart(
    head: onnx.NodeProto, constants: Mapping[str, Array]
) -> tuple[onnx.NodeProto, onnx.NodeProto, dict[str, Array]] | None:
    """Return a `Gemm` without what it adds, an `Add` with that, and the constant that the latter reads.

    None if it adds nothing, or one value for each column: such a bias comes with its channel's weights.
    """
    import onnx
    from onnx import helper

    name = head.input[2] if head.op_type == "Gemm" and len(head.input) > 2 else ""
    value = constants.get(name)
    if value is None or value.size in (1, value.shape[-1]):
        return None
    product = onnx.NodeProto()
    product.CopyFrom(head)
    del product.input[2:]
    product.output[0] = f"{head.output[0]}@product"
    beta = next((a.f for a in head.attribute if a.name == "beta"), 1.0)
    added = helper.make_node("Add", [product.output[0], f"{name}@added"], [head.output[0]])
    return product, added, {f"{name}@added": value * np.asarray(beta, value.dtype)}
