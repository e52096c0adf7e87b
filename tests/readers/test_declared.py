"""Operators of a vendor's domain: read when ONNX knows them, element-wise only when declared."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MODEL = """
import sys
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.defs import OpSchema, register_schema

for name in ("FastGelu", "Relu"):
    made = OpSchema(
        name, "com.acme", 1, inputs=[OpSchema.FormalParameter("x", "T")],
        outputs=[OpSchema.FormalParameter("y", "T")], type_constraints=[("T", ["tensor(float)"], "")],
    )
    made.set_type_and_shape_inference_function(lambda c: c.set_output_type(0, c.get_input_type(0)))
    register_schema(made)

def model(op):
    w = numpy_helper.from_array(np.zeros((8, 4, 3, 3), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["a"]),
         helper.make_node(op, ["a"], ["y"], domain="com.acme")],
        "acme", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 9, 9])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 7, 7])], [w])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.acme", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), op + ".onnx")
    return op + ".onnx"

import onchip
from onchip.readers import declare_elementwise

def types(op, **options):
    return [o.type for o in onchip.load(model(op), **options).network.operators]

def promises(op):
    last = onchip.load(model(op), granularity="op").network.operators[-1]
    return last.geometry is not None and last.geometry.promises

assert types("FastGelu") == ["Conv", "FastGelu"] and not promises("FastGelu")
assert types("Relu") == ["Conv", "Relu"] and not promises("Relu")  # a vendor's own, whatever its name
declare_elementwise("com.acme", "FastGelu")
assert types("FastGelu") == ["Conv+FastGelu"] and promises("FastGelu")
assert types("Relu") == ["Conv", "Relu"] and not promises("Relu")
"""

REACH = """
from onchip.readers import declare_reach
from onchip.plans import Loop
from onchip.readers.digits import flat, moved, widened

def fused(op, budget):
    plan = onchip.plan(model(op), granularity="op", budget=budget, fuse=True, dtype="int8")
    assert plan.check() == plan.result
    return [(len(g.operators), any(isinstance(item, Loop) for item in g.tiling.body)) for g in plan.groups]

assert (2, True) not in fused("Relu", 784)  # in 783 bytes it has no plan

def smoothed(walk, node, position, dims):
    image, channel, row, column = dims  # three rows, all columns, all channels
    height = walk.shape(node.inputs[0])[2]
    rows = moved(row, height, before=1, span=3)
    return {node.inputs[0]: flat([image, widened(channel), rows, widened(column)])}

declare_reach("com.acme", "Relu", smoothed)
assert fused("Relu", 700) == [(2, True)]
"""


@pytest.mark.thorough
def test_an_operator_runs_in_bands_with_others_once_its_reach_is_declared(tmp_path: Path) -> None:
    code = MODEL.partition("assert ")[0] + REACH
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.thorough
def test_an_operator_is_elementwise_once_it_is_declared(tmp_path: Path) -> None:
    """In a process of its own: schemas and declarations are for all of it."""
    done = subprocess.run([sys.executable, "-c", MODEL], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
