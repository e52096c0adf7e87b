"""Element-wise operators by the names of their types, for networks that state no geometry.

A network in JSON may state no more of an operator than a word: `relu`, `add_`, `add+relu` for two merged
operators. The words below imply the operator's walk, and no shape is needed: element i of the output depends
on element i of each operand of its size (smaller ones are broadcast) and on parameters.
"""

from __future__ import annotations

from onchip.network import Geometry

__all__ = ["ELEMENTWISE_TYPES", "elementwise_geometry"]

ELEMENTWISE_TYPES = frozenset({
    "abs", "add", "batch_norm", "batchnorm", "batchnormalization", "ceil", "celu", "clamp", "clip",
    "cos", "div", "dropout", "elu", "erf", "exp", "floor", "gelu", "hardsigmoid", "hardswish",
    "hardtanh", "leaky_relu", "leakyrelu", "log", "maximum", "minimum", "mish", "mul", "neg", "pow",
    "prelu", "reciprocal", "relu", "relu6", "round", "rsqrt", "selu", "sigmoid", "sign", "silu", "sin",
    "softplus", "softsign", "sqrt", "sub", "swish", "tanh",
})  # fmt: skip
"""Operators that normalise over a row or pick from it (softmax), or move elements, are excluded."""

_WIDTH = {"int8": 1, "uint8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4}


def elementwise_geometry(type_: str, inputs: list[int], outputs: list[int], element: str) -> Geometry | None:
    """Return the geometry of an operator of that type; None if its words or sizes are not element-wise.

    `inputs` and `outputs` are bytes, `element` the network's element type. The comparison of words ignores
    case and an underscore at the end (torch's name for an operator that writes into its operand).
    """
    if not all(word.lower().rstrip("_") in ELEMENTWISE_TYPES for word in type_.split("+")):
        return None
    if len(outputs) != 1 or not inputs or max(inputs) != outputs[0]:
        return None
    elements, rest = divmod(outputs[0], _WIDTH.get(element, outputs[0] + 1))
    if rest:
        return None
    return Geometry("elementwise", input=(elements,), output=(elements,))
