"""The built-in networks against the reference networks that were made from the same public definitions."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import onnx
import pytest

from onchip import zoo

LAYOUT = {"Reshape", "Flatten", "Transpose", "Split", "Slice", "Identity"}
"""Nodes that only rename or rearrange bytes: the reference networks do not have them."""

NAMES = {
    "conv2d": "Conv",
    "conv3d": "Conv",
    "batch_norm": "BatchNormalization",
    "layer_norm": "LayerNormalization",
    "linear": "Gemm",
    "relu": "Relu",
    "gelu": "Gelu",
    "hardswish": "HardSwish",
    "hardsigmoid": "HardSigmoid",
    "sigmoid": "Sigmoid",
    "add": "Add",
    "mul": "Mul",
    "cat": "Concat",
    "pad": "Pad",
    "max_pool2d": "MaxPool",
    "max_pool3d": "MaxPool",
    "avg_pool2d": "AveragePool",
    "avg_pool3d": "AveragePool",
    "adaptive_avg_pool2d": "GlobalAveragePool",
    "adaptive_avg_pool3d": "GlobalAveragePool",
    "mean": "ReduceMean",
    "upsample_bilinear2d": "Resize",
    "scaled_dot_product_attention": "Attention",
}

Operator = tuple[str, int, tuple[int, ...], int]
"""Type, elements it writes, elements of each tensor it reads, weights."""


def of_zoo(name: str) -> Counter[Operator]:
    model = onnx.load_model_from_string(zoo.model_bytes(name))
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    elements = {
        value.name: math.prod(axis.dim_value for axis in value.type.tensor_type.shape.dim)
        for value in [*model.graph.input, *model.graph.value_info, *model.graph.output]
    }
    weights = {tensor.name: math.prod(tensor.dims) for tensor in model.graph.initializer}
    data = {tensor.name for tensor in model.graph.initializer if tensor.HasField("raw_data")}
    integer = onnx.TensorProto.INT64
    sizes = {v.name for v in model.graph.value_info if v.type.tensor_type.elem_type == integer}
    root: dict[str, str] = {}
    found: Counter[Operator] = Counter()
    for node in model.graph.node:
        if {*node.output} <= sizes:
            continue
        if node.op_type in LAYOUT and node.input[0] in weights:
            weights |= {value: elements[value] for value in node.output}  # a part of a packed projection
            continue
        if node.op_type in LAYOUT:
            root.update(dict.fromkeys(node.output, root.get(node.input[0], node.input[0])))
            continue
        constant = {"", *weights, *sizes}
        read = {root.get(value, value) for value in node.input if value not in constant}
        carried = sum(weights[value] for value in node.input if value in weights and value not in data)
        operands = tuple(sorted(elements[value] for value in read))
        found[(node.op_type, elements[node.output[0]], operands, carried)] += 1
    return found


def of_reference(path: Path) -> Counter[Operator]:
    network = json.loads(path.read_text())
    size = {tensor["name"]: tensor["bytes"] for tensor in network["tensors"]}
    found: Counter[Operator] = Counter()
    for operator in network["operators"]:
        (output,) = operator["outputs"]
        sizes = tuple(sorted(size[value] for value in set(operator["inputs"])))
        kind = NAMES[operator["type"].rstrip("_")]
        found[(kind, size[output], sizes, operator["weight_bytes"])] += 1
    return found


@pytest.mark.parametrize("name", zoo.names())
def test_operators_are_those_of_the_reference(name: str, shared: Path) -> None:
    path = shared / "bench" / "networks" / f"{name}.op.json"
    if not path.is_file():
        pytest.skip("no reference network of this name")
    assert of_zoo(name) == of_reference(path)
