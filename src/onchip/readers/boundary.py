"""The boundary of a quantised network: its integers begin at the inputs and end at the outputs.

A quantiser leaves a network's inputs and outputs as floats, for the programs that called it before: the first
operator quantises, the last one dequantises. A chip for integers is handed integers, as a `.tflite` file of
integers is. So an input that is only quantised, by one scale, is those integers, and an output that is only
dequantised is what it is made from. Whoever calls the network converts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from onchip.base.allowance import spend

if TYPE_CHECKING:
    import onnx

__all__ = ["with_integers_outside"]

_FLOATS = frozenset({1, 10, 16})
_INTEGERS = frozenset({2, 3, 4, 5})


def with_integers_outside(content: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return an ONNX file's bytes with integers as inputs and outputs where its nodes allow it, and a line
    for each of them.

    A file that is no ONNX model, or has none such, is returned unchanged.
    """
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    if b"QuantizeLinear" not in content and b"DequantizeLinear" not in content:
        return content, ()
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except (DecodeError, ValueError, RecursionError):
        return content, ()
    boundary = _Boundary(model.graph)
    said = [*filter(None, map(boundary.input, list(model.graph.input)))]
    said += filter(None, map(boundary.output, list(model.graph.output)))
    if not said:
        return content, ()
    boundary.write()
    return bytes(model.SerializeToString(deterministic=True)), tuple(said)


class _Boundary:
    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph, self.nodes = graph, list(graph.node)
        self.constants = {tensor.name: tensor for tensor in graph.initializer}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        self.makers: dict[str, onnx.NodeProto] = {}
        for node in self.nodes:
            if node.op_type == "Constant" and node.output:
                made = node.output[0]
                self.constants.update((made, a.t) for a in node.attribute if a.name == "value")
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
            for name in node.output:
                self.makers[name] = node
        self.results = {value.name for value in graph.output}
        self.gone: set[int] = set()
        self.names: dict[str, str] = {}

    def input(self, value: onnx.ValueInfoProto) -> str:
        """Let an input be what all of its readers quantise it to; return what to say of that, or ""."""
        readers = self.readers.get(value.name, [])
        if value.name in self.constants or value.name in self.results or not readers:
            return ""
        if value.type.tensor_type.elem_type not in _FLOATS:
            return ""
        found = {self.steps(node) if node.op_type == "QuantizeLinear" else None for node in readers}
        if len(found) != 1 or None in found or any(node.input[0] != value.name for node in readers):
            return ""
        made = [node.output[0] for node in readers]
        if self.results.intersection(made):
            return ""
        [steps] = found
        assert steps is not None
        value.type.tensor_type.elem_type = steps[0]
        self.names |= dict.fromkeys(made, value.name)
        self.gone |= set(map(id, readers))
        return f"input {value.name} is its integers: the caller quantises it by {steps[1]:g}, zero {steps[2]}"

    def output(self, value: onnx.ValueInfoProto) -> str:
        """Let an output be what it is dequantised from; return what to say of that, or ""."""
        node = self.makers.get(value.name)
        if node is None or node.op_type != "DequantizeLinear" or self.readers.get(value.name):
            return ""
        steps, source = self.steps(node), node.input[0]
        maker = self.makers.get(source)
        if steps is None or maker is None or id(maker) in self.gone or source in self.results:
            return ""
        if source in self.names.values() or sum(n.input[0] == source for n in self.finals()) > 1:
            return ""
        value.type.tensor_type.elem_type = steps[0]
        self.names[source] = value.name
        self.gone.add(id(node))
        return f"output {value.name} is integers: the caller dequantises it by {steps[1]:g}, zero {steps[2]}"

    def finals(self) -> list[onnx.NodeProto]:
        """Return the nodes that dequantise outputs."""
        makers = (self.makers.get(name) for name in self.results)
        return [node for node in makers if node is not None and node.op_type == "DequantizeLinear"]

    def steps(self, node: onnx.NodeProto) -> tuple[int, float, int] | None:
        """Return the element type, the scale and the zero point of a conversion by one scale; None for
        others."""
        from onnx import numpy_helper

        if len(node.input) < 3 or node.domain not in ("", "ai.onnx", "com.microsoft"):
            return None
        scale, zero = (self.constants.get(name) for name in node.input[1:3])
        if scale is None or zero is None or zero.data_type not in _INTEGERS or scale.data_type != 1:
            return None
        if any(math.prod(tensor.dims) != 1 or tensor.data_location for tensor in (scale, zero)):
            return None
        try:
            by, at = (numpy_helper.to_array(tensor).reshape(-1) for tensor in (scale, zero))
        except (TypeError, ValueError):
            return None
        return int(zero.data_type), float(by[0]), int(at[0])

    def write(self) -> None:
        """Leave the conversions out, and give what they converted the names of inputs and outputs."""
        kept = [node for node in self.nodes if id(node) not in self.gone]
        for node in kept:
            spend(node.name)
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    if name in self.names:
                        names[i] = self.names[name]
        infos = [info for info in self.graph.value_info if info.name not in self.names]
        changed = set(self.names.values())
        del self.graph.value_info[:]
        self.graph.value_info.extend(info for info in infos if info.name not in changed)
        copies = [type(node).FromString(node.SerializeToString()) for node in kept]
        del self.graph.node[:]
        self.graph.node.extend(copies)
