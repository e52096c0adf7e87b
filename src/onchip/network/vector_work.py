"""The vector operations of an operator: so many for an element of its output, by the words of its type.

A type of several words, as `MatMul+Softmax`, is of operators that were merged. Products are no vector
operations; a bias is one.
"""

from __future__ import annotations

from onchip.network.elementwise import ELEMENTWISE_TYPES
from onchip.network.network import Network

__all__ = ["vector_operations"]

_NORM, _SOFTMAX = 4, 5

_TYPES = {
    "layernorm": _NORM, "layernormalization": _NORM, "layer_norm": _NORM, "native_layer_norm": _NORM,
    "rmsnorm": _NORM, "rmsnormalization": _NORM, "instancenormalization": _NORM, "groupnormalization": _NORM,
    "group_norm": _NORM, "norm": _NORM, "softmax": _SOFTMAX, "logsoftmax": _SOFTMAX, "bias": 1,
}  # fmt: skip


def vector_operations(network: Network, operator: int) -> int:
    """Return the vector operations for each element of an operator's output.

    A word of an element-wise type is 1, a norm 4, a softmax 5, any other word 0; a constant that takes part
    once sums are complete is 1.
    """
    op = network.operators[operator]
    late = 0 if op.reach is None else sum(constant.late for constant in op.reach.weights)
    return late + sum(map(_of_word, op.type.split("+")))


def _of_word(word: str) -> int:
    plain = word.lower().rstrip("_")
    return _TYPES.get(plain, 1 if plain in ELEMENTWISE_TYPES else 0)
