"""ONNX models, in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node


def X() -> Any:
    """The input of every model."""
    return helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])


def Y() -> Any:
    """Its output, of unknown shape."""
    return helper.make_tensor_value_info("y", TensorProto.FLOAT, None)


def model(
    nodes: Sequence[Any],
    constants: Sequence[Any] = (),
    *,
    inputs: Sequence[Any] = (),
    opset: int = 17,
    functions: Sequence[Any] = (),
) -> bytes:
    """A model of these nodes from x to y; functions are of the domain `d`."""
    graph = helper.make_graph(list(nodes), "g", [X(), *inputs], [Y()], list(constants))
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid("d", 1)] * bool(functions)
    made = helper.make_model(graph, opset_imports=opsets, functions=list(functions))
    made.ir_version = 9
    return bytes(made.SerializeToString())


def integers(name: str, values: Any) -> Any:
    return numpy_helper.from_array(np.array(values, dtype=np.int64), name)
