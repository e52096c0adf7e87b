"""The nodes of an operator as one product, if there is one, and what follows it element by element.

Nodes that only give elements another shape or order leave no trace: where an element lies is told by the
axes of the operator's uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

__all__ = ["BINARY", "PRODUCTS", "ROWS", "UNARY", "Applied", "Chain", "chain_of"]

PRODUCTS = frozenset({"MatMul", "Gemm", "Conv"})
UNARY = {
    "Erf": "vec_erf({x})",
    "Exp": "vec_exp({x})",
    "Neg": "-{x}",
    "Relu": "vec_max({x}, vec_all(0.0f))",
    "Sigmoid": "1.0f / (1.0f + vec_exp(-{x}))",
    "Tanh": "1.0f - 2.0f / (1.0f + vec_exp(2.0f * {x}))",
}
"""Functions of a vector x of floats."""
BINARY = {"Add": "+", "Div": "/", "Mul": "*", "Sub": "-"}
ROWS = frozenset({"LayerNormalization", "Softmax"})
SHAPES = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})


@dataclass(frozen=True, slots=True)
class Applied:
    """A node that makes an element of `result` of elements at the same place: of names, or of numbers."""

    node: onnx.NodeProto
    result: str
    operands: tuple[str | float, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """An operator's nodes: the `product` of two names, and its result; then nodes one by one, of which the
    last makes `wanted`.
    """

    product: onnx.NodeProto | None
    factors: tuple[str, ...]
    total: str
    bias: str
    applied: tuple[Applied, ...]
    wanted: str


def chain_of(
    nodes: Sequence[onnx.NodeProto], operands: Mapping[str, Any], constants: Mapping[str, Any], wanted: str
) -> Chain | None:
    """Return the chain of an operator's nodes between its `operands` and `wanted`; None if they are none."""
    alias: dict[str, str] = {}
    product: onnx.NodeProto | None = None
    factors: tuple[str, ...] = ()
    total = bias = ""
    applied: list[Applied] = []
    made: set[str] = set()

    def named(name: str) -> str | float | None:
        name = alias.get(name, name)
        if name in operands or name in made:
            return name
        value = constants.get(name)
        return float(np.asarray(value).reshape(-1)[0]) if value is not None and value.size == 1 else None

    for node in nodes:
        if node.op_type in SHAPES:
            known = named(node.input[0])
            if not isinstance(known, str):
                return None
            alias[node.output[0]] = known
            continue
        if len(node.output) > 1 or node.domain not in ("", "ai.onnx"):
            return None
        given = [named(name) for name in node.input if name]
        if any(one is None for one in given):
            return None
        if node.op_type in PRODUCTS:
            names = [one for one in given[:2] if isinstance(one, str) and one in operands]
            if product is not None or len(names) < 2 or _numbers(node) != (1.0, 1.0):
                return None
            product, factors, total = node, tuple(names), node.output[0]
            if len(given) > 2:
                if not isinstance(given[2], str):
                    return None
                bias = given[2]
        elif node.op_type in UNARY or node.op_type in BINARY or node.op_type in ROWS:
            applied.append(Applied(node, node.output[0], tuple(one for one in given if one is not None)))
        else:
            return None
        made.add(node.output[0])
    return Chain(product, factors, total, bias, tuple(applied), alias.get(wanted, wanted))


def _numbers(node: onnx.NodeProto) -> tuple[float, float]:
    found = {a.name: a.f for a in node.attribute if a.name in ("alpha", "beta")}
    return found.get("alpha", 1.0), found.get("beta", 1.0)
