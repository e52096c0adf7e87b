"""The constants of the model that a plan counts under other names."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from onchip.network import Operator
from onchip.network.axes import Buffer, Cut

if TYPE_CHECKING:
    from onchip.run.onnx_engine import OnnxEngine

__all__ = ["kernel_of"]

_WEIGHT = {"Conv": 1, "ConvInteger": 1, "Gemm": 1, "QGemm": 3, "QLinearConv": 3}
"""The position of the weights among a node's inputs."""


def kernel_of(engine: OnnxEngine, op: Operator, cut: Cut, buffers: Sequence[Buffer]) -> dict[str, str]:
    """Return the model's name of the kernel that an operator's geometry implies, by that of its buffer.

    None where the model does not have its values in the order of the buffer.
    """
    known = engine.parts.constants
    made_up = [b for use in cut.constants if (b := buffers[use.buffer]).model_name == f"{op.name}.kernel"]
    operands = [engine.executable.value[t] for t in op.inputs]
    nodes, _ = engine.parts.between(operands, [engine.executable.value[op.outputs[0]]], f"operator {op.name}")
    heads = [node for node in nodes if node.op_type in _WEIGHT]
    if not made_up or len(heads) != 1:
        return {}
    [head] = heads
    turned = any(a.name == "transB" and a.i for a in head.attribute)
    if head.op_type.endswith("emm") and not turned:
        return {}
    name = head.input[_WEIGHT[head.op_type]]
    producer = {result: node for node in nodes for result in node.output}
    while name in producer and producer[name].op_type == "DequantizeLinear":
        name = producer[name].input[0]
    if name not in known or known[name].size != prod(made_up[0].whole):
        return {}
    return {made_up[0].model_name: name}
