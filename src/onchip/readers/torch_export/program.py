"""A whole exported program as an ONNX model: the nodes that `Exporter` collects, assembled and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx
import torch
from onnx import TensorProto, helper

from onchip.readers.torch_export.attention import find_packed
from onchip.readers.torch_export.exporter import ELEMENT, Exporter, Node, shape
from onchip.readers.torch_export.response_norm import find_response_norms

__all__ = ["Exported", "export"]

IR_VERSIONS = {18: 8, 23: 11, 24: 11}
"""The ONNX file format for each operator set used here."""


@dataclass(frozen=True)
class Exported:
    """`model` holds no data of weights, only of constants; `weights` are the program's own tensors."""

    model: onnx.ModelProto
    weights: Mapping[str, torch.Tensor]


def export(
    program: torch.export.ExportedProgram,
    name: str,
    *,
    where: str = "",
    opset: int | None = None,
    module: torch.nn.Module | None = None,
) -> Exported:
    """Return the program as an ONNX model without the weights' data; every shape is as in torch.

    Without `opset`, the first that has every operator needed. `module`, if given, tells which modules have
    others inside even where no operator shows it. Free sizes are those of the example, and values that the
    network computes from them stay a `Shape`. Raises `ModelError` naming the call that has no counterpart.
    """
    to = Exporter(program, where or name, opset or 23)
    if module is not None:
        to.inner |= {path for path, inner in module.named_modules() if any(inner.children())}
    find_packed(to)
    find_response_norms(to)
    to.run()
    if opset is None and any(node.op_type == "Swish" for node in to.nodes):
        to.opset = 24
    (results,) = (node.args[0] for node in to.graph.nodes if node.op == "output")
    mutated = set(program.graph_signature.buffers_to_mutate) | set(
        program.graph_signature.user_inputs_to_mutate
    )
    outputs = [
        node
        for node in results
        if isinstance(node, Node) and node.name not in mutated and isinstance(node.meta["val"], torch.Tensor)
    ]
    names: list[str] = []
    for node in outputs:
        value = to.value(node)
        if value in names:  # an output twice: ONNX requires distinct names
            value = to.emit("Identity", f"{value}.again", [value])
        names.append(value)
    to.drop_unread(names)
    weights = {name: tensor for name, tensor in to.tensors.items() if name in to.used_weights}
    declared = []
    by_name = {
        to.weights[n.name]: n for n in to.graph.nodes if n.op == "placeholder" and n.name in to.weights
    }
    for weight in to.used_weights:
        node = by_name[weight]
        declared.append(TensorProto(name=weight, dims=shape(node), data_type=ELEMENT[node.meta["val"].dtype]))

    def described(node: Node, value: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(value, ELEMENT[node.meta["val"].dtype], shape(node))

    model = helper.make_model(
        helper.make_graph(
            to.nodes,
            name,
            [described(node, to.values[node]) for node in to.inputs],
            [described(node, value) for node, value in zip(outputs, names, strict=True)],
            [*declared, *to.constants],
        ),
        opset_imports=[helper.make_opsetid("", to.opset)],
        ir_version=IR_VERSIONS[to.opset],
        producer_name="onchip",
    )
    _compare_shapes(to, model)
    return Exported(model, weights)


def _compare_shapes(to: Exporter, model: onnx.ModelProto) -> None:
    """Refuse a graph whose shapes differ between torch and ONNX."""
    found = {}
    for value in onnx.shape_inference.infer_shapes(model, data_prop=True).graph.value_info:
        dims = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(d.HasField("dim_value") for d in dims):
            found[value.name] = [d.dim_value for d in dims]
    for node, value in to.values.items():
        if isinstance(node.meta["val"], torch.Tensor) and found.get(value, shape(node)) != shape(node):
            raise to.refuse(node, f"is {shape(node)} in torch, and {found[value]} as ONNX")
