"""Dynamic quantisation in its parts: the range of all elements, which is a reduction, and their conversion.

`DynamicQuantizeLinear` needs every element for its scale before it makes the first one. As one operator it
has no tiles: it would hold its whole operand. In parts the least and the greatest element are reductions,
which go along with what makes the operand, and `QuantizeLinear` goes along with what reads the result. The
parts are those of the operator's definition (ONNX, operator set 11), and every element is what it was. Where
all elements are 0 the definition divides 0 by 0; here the scale is the least normal number then, and 1 in
onnxruntime: elements and zero point are 0 in both. onnxruntime's `DynamicQuantizeMatMul` is such a conversion
and a product.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from onchip.base.allowance import spend
from onchip.readers.traits import VENDOR

if TYPE_CHECKING:
    import onnx

__all__ = ["with_ranges_apart"]

_QUANTISES, _MULTIPLIES = "DynamicQuantizeLinear", "DynamicQuantizeMatMul"
_FIRST = 11
"""The operator set that has the parts, and `DynamicQuantizeLinear`; onnxruntime's operator is older."""
_UINT8 = 2
_LEAST = 2.0**-126
"""The least normal number (float32)."""


def with_ranges_apart(content: bytes) -> bytes:
    """Return an ONNX file's bytes with its dynamic quantisations taken apart.

    A file that is no ONNX model, has none such, or is of an operator set without their parts is returned
    unchanged. Those inside of functions stay as they are.
    """
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    if _QUANTISES.encode() not in content and _MULTIPLIES.encode() not in content:
        return content
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except (DecodeError, ValueError, RecursionError):
        return content
    if max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0) < _FIRST:
        return content
    graph = model.graph
    named = (name for node in graph.node for name in (node.name, *node.input, *node.output))
    taken = {*named, *(value.name for value in (*graph.initializer, *graph.input, *graph.value_info))}
    apart = _Apart(taken)
    nodes = []
    for node in graph.node:
        spend(node.name)
        nodes += apart.of(node)
    if not apart.numbers:
        return content
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    graph.initializer.extend(apart.initializers())
    return bytes(model.SerializeToString(deterministic=True))


class _Apart:
    """Takes nodes apart, with names that none of `taken` is."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.numbers: dict[float, str] = {}
        """The names of the numbers that the parts read."""

    def of(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Return the parts of a node, or the node alone."""
        own, inputs, outputs = node.domain in ("", "ai.onnx"), list(node.input), list(node.output)
        if node.op_type == _QUANTISES and own and (len(inputs), len(outputs)) == (1, 3) and all(outputs):
            return list(self._quantised(node.name or outputs[0], inputs[0], *outputs))
        vendor = node.domain == VENDOR
        if node.op_type == _MULTIPLIES and vendor and len(inputs) > 2 and all(inputs[:3]):
            return list(self._multiplied(node))
        return [node]

    def initializers(self) -> Iterator[onnx.TensorProto]:
        """Yield the numbers that the parts read."""
        import numpy as np
        from onnx import numpy_helper

        for value, name in self.numbers.items():
            yield numpy_helper.from_array(np.asarray(value, np.float32), name)

    def _fresh(self, wanted: str) -> str:
        name, count = wanted, 1
        while name in self.taken:
            name, count = f"{wanted}_{count}", count + 1
        self.taken.add(name)
        return name

    def _number(self, value: float) -> str:
        if value not in self.numbers:
            self.numbers[value] = self._fresh(f"number_{value:g}")
        return self.numbers[value]

    def _quantised(self, name: str, x: str, y: str, scale: str, zero: str) -> Iterator[onnx.NodeProto]:
        """Yield the parts of `DynamicQuantizeLinear`."""
        from onnx import helper

        def made(op: str, inputs: list[str], what: str, output: str = "", **settings: int) -> str:
            own = self._fresh(f"{name}_{what}")
            parts.append(helper.make_node(op, inputs, [output or own], name=own, **settings))
            return output or own

        parts: list[onnx.NodeProto] = []
        none, most = self._number(0.0), self._number(255.0)
        least = made("Min", [made("ReduceMin", [x], "min", keepdims=0), none], "low")
        greatest = made("Max", [made("ReduceMax", [x], "max", keepdims=0), none], "high")
        step = made("Div", [made("Sub", [greatest, least], "range"), most], "step")
        made("Max", [step, self._number(_LEAST)], "scale", scale)
        middle = made("Sub", [none, made("Div", [least, scale], "below")], "zero_unrounded")
        whole = made("Round", [made("Clip", [middle, none, most], "zero_clipped")], "zero_rounded")
        made("Cast", [whole], "zero", zero, to=_UINT8)
        made("QuantizeLinear", [x, scale, zero], "elements", y)
        yield from parts

    def _multiplied(self, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
        """Yield the parts of `DynamicQuantizeMatMul`: a, b, the scale and zero point of b, an addend."""
        from onnx import helper

        name = node.name or node.output[0]
        a, b, factor, zero, addend = (*node.input, "", "")[:5]
        y, scale, at = (self._fresh(f"{name}_{what}") for what in ("quantised", "scale", "zero"))
        yield from self._quantised(name, a, y, scale, at)
        inputs = [y, b, scale, factor, at, zero, addend]
        while not inputs[-1]:
            inputs.pop()
        yield helper.make_node("MatMulIntegerToFloat", inputs, node.output, name=node.name, domain=VENDOR)
