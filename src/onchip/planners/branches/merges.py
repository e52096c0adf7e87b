"""The operators that are merges, and those that are layers, by their types and geometry.

A merge is a concatenation or an element-wise sum (A Simple Method, section 2, condition 3), whatever is
merged with it: `Concat+BatchNormalization+Relu`, `Add+Relu`. Other operators that read two tensors are not
merges: a product of a map with its gate, an attention.
"""

from __future__ import annotations

from onchip.network import Operator

__all__ = ["is_concat", "is_layer", "is_plain_concat", "is_sum"]

_CONCATS = frozenset({"cat", "concat", "concatenate", "concatenation", "concatv2", "qlinearconcat"})
_SUMS = frozenset({"add", "add_n", "addn", "addv2", "qlinearadd", "sum"})
_OTHERS = frozenset({
    "and", "div", "equal", "greater", "less", "max", "maximum", "mean", "min", "minimum", "mod", "mul", "or",
    "pow", "prelu", "sub", "where", "xor",
})  # fmt: skip
"""Other operators that may read two tensors element by element."""

_WINDOWED = frozenset({"conv", "depthwise", "fully_connected"})


def is_concat(operator: Operator) -> bool:
    """Return whether it joins its operands, plainly or gathered from several places (ShuffleNet's)."""
    if operator.geometry is not None and operator.geometry.looks_like == "concat":
        return True
    return _words(operator)[0] in _CONCATS


def is_sum(operator: Operator) -> bool:
    """Return whether it adds its operands element by element.

    A layer that has absorbed the sum behind it (`Conv+Add` with two operands) counts; `MatMul+Add` and
    `Mul+Add`, which add parameters to the product of their operands, do not.
    """
    words = _words(operator)
    if operator.geometry is None:
        return words[0] in _SUMS
    if operator.geometry.looks_like == "elementwise":
        return next((word for word in words if word in _SUMS | _OTHERS), "") in _SUMS
    return operator.geometry.looks_like in _WINDOWED and not _SUMS.isdisjoint(words)


def is_plain_concat(operator: Operator) -> bool:
    """Return whether it only puts operands side by side, and so costs nothing if they are made in place."""
    geometry = operator.geometry
    return (
        geometry is not None
        and geometry.kind == "concat"
        and all(word in _CONCATS for word in _words(operator))
    )


def is_layer(operator: Operator) -> bool:
    """Return whether it counts as a layer in the length of a way.

    Plain concats do not, nor do element-wise operators of one operand (an activation, a batch-norm): these
    run within the layer before them, so that a network measures the same at both granularities.
    """
    geometry = operator.geometry
    alone = len(operator.inputs) == 1 and geometry is not None and geometry.kind == "elementwise"
    return not alone and not is_plain_concat(operator)


def _words(operator: Operator) -> list[str]:
    return [word.lower().rstrip("_") for word in operator.type.split("+")]
