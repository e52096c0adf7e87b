"""Vendors' and quantised operators in ONNX's own words: the standard operator that each one is around.

`QLinearConv` is a convolution of integers, `FusedConv` one with a function behind it: both walk over their
operands as `Conv` does. Geometry, reach, layouts and work are asked of that plain node; shapes, too, where it
is the same. Nodes themselves stay as they are in the file, and are executed so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from onchip.readers.onnx_graph import Graph, Node
from onchip.readers.traits import VENDOR

__all__ = ["in_parts", "made_as", "plain_of"]


@dataclass(frozen=True, slots=True)
class _Plain:
    """The standard operator `op`, of these operands of the node; without `when`, always.

    The result has the type of operand `zero`, a zero point, if there is one there; else `other`, or the first
    operand's. `parts`: the sum may be made in parts, which are scaled, rounded, or given to a function when
    it is complete.
    """

    op: str
    operands: Callable[[Sequence[str]], Sequence[str]]
    zero: int = -1
    other: int = 0
    when: Callable[[Node], bool] = lambda node: True
    parts: bool = False


def _at(*positions: int) -> Callable[[Sequence[str]], Sequence[str]]:
    """Return the choice of operands by position; absent ones at the end are left out."""

    def chosen(inputs: Sequence[str]) -> Sequence[str]:
        found = [inputs[i] if i < len(inputs) else "" for i in positions]
        while found and not found[-1]:
            found.pop()
        return found

    return chosen


def _channels_first(node: Node) -> bool:
    return not node.integer("channels_last", 0)


def _as_it_lies(node: Node) -> bool:
    return not any(node.integer(name, 0) for name in ("transA", "transB", "transBatchA", "transBatchB"))


def _softmax_of_one_axis(node: Node) -> bool:
    return node.integer("opset", 13) >= 13


_INT32, _FLOAT = 6, 1

_PLAIN: dict[tuple[str, str], _Plain] = {
    ("", "QLinearConv"): _Plain("Conv", _at(0, 3, 8), zero=7, parts=True),
    ("", "QLinearMatMul"): _Plain("MatMul", _at(0, 3), zero=7, parts=True),
    ("", "ConvInteger"): _Plain("Conv", _at(0, 1), other=_INT32, parts=True),
    ("", "MatMulInteger"): _Plain("MatMul", _at(0, 1), other=_INT32, parts=True),
    ("", "SimplifiedLayerNormalization"): _Plain("RMSNormalization", _at(0, 1)),
    (VENDOR, "QuantizeLinear"): _Plain("QuantizeLinear", _at(0, 1, 2), zero=2, other=2),
    (VENDOR, "DequantizeLinear"): _Plain("DequantizeLinear", _at(0, 1, 2), zero=1),
    (VENDOR, "QLinearAdd"): _Plain("Add", _at(0, 3), zero=7),
    (VENDOR, "QLinearMul"): _Plain("Mul", _at(0, 3), zero=7),
    (VENDOR, "QLinearSigmoid"): _Plain("Sigmoid", _at(0), zero=4),
    (VENDOR, "QLinearLeakyRelu"): _Plain("LeakyRelu", _at(0), zero=4),
    (VENDOR, "QLinearSoftmax"): _Plain("Softmax", _at(0), zero=4, when=_softmax_of_one_axis),
    (VENDOR, "QLinearConcat"): _Plain("Concat", lambda inputs: inputs[2::3], zero=2),
    (VENDOR, "QLinearGlobalAveragePool"): _Plain("GlobalAveragePool", _at(0), zero=4, when=_channels_first),
    (VENDOR, "QLinearAveragePool"): _Plain("AveragePool", _at(0), zero=4, when=_channels_first),
    (VENDOR, "QGemm"): _Plain("Gemm", _at(0, 3, 6), zero=8, other=_FLOAT, parts=True),
    (VENDOR, "MatMulIntegerToFloat"): _Plain("MatMul", _at(0, 1), other=_FLOAT, parts=True),
    (VENDOR, "FusedConv"): _Plain("Conv", _at(0, 1, 2), parts=True),
    (VENDOR, "FusedGemm"): _Plain("Gemm", _at(0, 1, 2), parts=True),
    (VENDOR, "FusedMatMul"): _Plain("MatMul", _at(0, 1), when=_as_it_lies, parts=True),
    (VENDOR, "Gelu"): _Plain("Gelu", _at(0)),
    (VENDOR, "QuickGelu"): _Plain("Sigmoid", _at(0)),
    (VENDOR, "FastGelu"): _Plain("Sum", _at(0, 1)),
    (VENDOR, "BiasGelu"): _Plain("Add", _at(0, 1)),
}


def plain_of(node: Node) -> Node:
    """Return the node in ONNX's own words, or itself."""
    rule = _PLAIN.get((node.domain, node.op))
    if rule is None or not rule.when(node):
        return node
    if node.plain is None:
        import onnx

        inputs = tuple(rule.operands(node.inputs))
        proto = onnx.helper.make_node(rule.op, inputs, node.outputs[:1], name=node.proto.name)
        known = _attributes(rule.op)
        proto.attribute.extend(a for a in node.proto.attribute if a.name in known)
        node.plain = Node(node.index, proto, rule.op, "", inputs, node.outputs[:1])
    node.plain.index = node.index
    return node.plain


def in_parts(node: Node) -> bool:
    """Return whether a node's sum may be made in parts: always, if it has no other form."""
    rule = _PLAIN.get((node.domain, node.op))
    return rule is None or rule.parts


def made_as(graph: Graph, node: Node) -> int:
    """Return the ONNX element type of the first result of a node that has a plain form; 0 if not known."""
    rule = _PLAIN[node.domain, node.op]
    if 0 <= rule.zero < len(node.inputs) and node.inputs[rule.zero]:
        return graph.element.get(node.inputs[rule.zero], 0)
    if rule.other:
        return rule.other
    return graph.element.get(node.inputs[0], 0) if node.inputs else 0


@cache
def _attributes(op: str) -> frozenset[str]:
    import onnx

    return frozenset(onnx.defs.get_schema(op).attributes)
