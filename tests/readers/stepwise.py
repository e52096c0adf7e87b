"""The test of `Executable.nodes`: every operator as a model of its own must give the whole network's bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from onchip.readers import Executable, Source

Array = np.ndarray[Any, Any]


def session(model: onnx.ModelProto) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def random_inputs(source: Source, seed: int) -> dict[str, Array]:
    """Values for every tensor of kind input, by value name."""
    random = np.random.default_rng(seed)
    executable = source.executable
    assert executable is not None
    feeds = {}
    for tensor in source.network.tensors:
        if tensor.kind == "input":
            shape = executable.shape[tensor.id]
            type_ = onnx.helper.tensor_dtype_to_np_dtype(executable.dtype[tensor.id])
            if type_ == np.bool_:
                value = random.random(shape) < 0.5
            elif np.issubdtype(type_, np.integer):
                value = random.integers(0, 3, shape)
            else:
                value = random.standard_normal(shape)
            feeds[executable.value[tensor.id]] = np.asarray(value).astype(type_)
    return feeds


def part(
    executable: Executable, nodes: tuple[int, ...], inputs: list[str], outputs: list[str]
) -> onnx.ModelProto:
    """Some nodes as a model."""
    model = executable.model
    chosen = [model.graph.node[i] for i in nodes]
    needed = {name for node in chosen for name in node.input}
    types = {v: (e, s) for v, e, s in zip(executable.value, executable.dtype, executable.shape, strict=True)}
    made = onnx.ModelProto(ir_version=max(model.ir_version, 4))
    made.opset_import.extend(model.opset_import)
    made.graph.name = "part"
    made.graph.node.extend(chosen)
    made.graph.initializer.extend(t for t in model.graph.initializer if t.name in needed)
    made.graph.input.extend(onnx.helper.make_tensor_value_info(n, *types[n]) for n in inputs)
    made.graph.output.extend(onnx.helper.make_tensor_value_info(n, *types[n]) for n in outputs)
    return made


def whole(source: Source, feeds: dict[str, Array]) -> dict[str, Array]:
    """Every tensor's value in the whole network, run without optimisations."""
    executable = source.executable
    assert executable is not None
    model = onnx.ModelProto()
    model.CopyFrom(executable.model)
    initial = {t.name for t in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name in feeds]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, 4)
    del model.graph.output[:]
    wanted = []
    for name, element, shape in zip(executable.value, executable.dtype, executable.shape, strict=True):
        if name not in feeds and name not in initial:
            model.graph.output.append(onnx.helper.make_tensor_value_info(name, element, shape))
            wanted.append(name)
    return dict(zip(wanted, session(model).run(wanted, feeds), strict=True)) | feeds


def differing(source: Source, seed: int = 0) -> list[str]:
    """The tensors on which running operator by operator differs from the whole network, in any bit."""
    network, executable = source.network, source.executable
    assert executable is not None
    feeds = random_inputs(source, seed)
    expected = whole(source, feeds)
    values = dict(feeds)
    wrong = []

    def read(tensor: int) -> Array:
        name = executable.value[tensor]
        for view in network.views:
            if view.tensor == tensor and name not in values:
                size = network.tensors[tensor].bytes
                parent = values[executable.value[view.of]]
                scale = (
                    parent.nbytes // network.tensors[view.of].bytes
                )  # the file's element size over the planned one
                raw = parent.tobytes()[view.offset * scale : (view.offset + size) * scale]
                shape = executable.shape[tensor]
                values[name] = np.frombuffer(raw, parent.dtype, math.prod(shape)).reshape(shape)
        return values[name]

    for v in network.order:
        operator = network.operators[v]
        inputs = [executable.value[t] for t in operator.inputs]
        outputs = [executable.value[t] for t in operator.outputs]
        operands = {name: read(t) for name, t in zip(inputs, operator.inputs, strict=True)}
        results = session(part(executable, executable.nodes[v], inputs, outputs)).run(outputs, operands)
        for tensor, name, value in zip(operator.outputs, outputs, results, strict=True):
            values[name] = value
            assert value.shape == executable.shape[tensor], (name, value.shape)
    for tensor in network.tensors:
        name = executable.value[tensor.id]
        if read(tensor.id).tobytes() != expected[name].tobytes():
            wrong.append(name)
    return wrong


def loose_nodes(source: Source) -> list[str]:
    """Nodes that compute from inputs and belong to no operator, though they should.

    They need not where they only say where a view lies, or give another shape to a graph output that is an
    input or a view.
    """
    network, executable = source.network, source.executable
    assert executable is not None
    nodes = executable.model.graph.node
    placed = {i for members in executable.nodes for i in members}
    root = {executable.value[t.id]: network.root[t.id] == t.id for t in network.tensors}
    inputs = {executable.value[t.id] for t in network.tensors if t.kind == "input"}
    views = [name for name, whole in root.items() if not whole]
    constant = {t.name for t in executable.model.graph.initializer} | {""}
    producer = {name: i for i, node in enumerate(nodes) for name in node.output}
    excused: set[int] = set()
    for start in [*views, *(o.name for o in executable.model.graph.output)]:
        chain, name = [], start
        while name in producer and (name == start or name not in root):
            chain.append(producer[name])
            name = nodes[producer[name]].input[0] if nodes[producer[name]].input else ""
        if start in root or name in inputs or not root.get(name, True):
            excused.update(chain)
    loose = []
    for i, node in enumerate(nodes):
        if all(name in constant for name in node.input):
            constant.update(node.output)
        elif i not in placed and i not in excused:
            loose.append(f"{node.name} ({node.op_type})")
    return loose
