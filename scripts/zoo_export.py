"""Torch module -> ONNX: one node per ATen operator, named by the path of the module that called it.

`torch.export` gives the graph as the definition's author wrote it (nothing folded, decomposed or fused); each
ATen operator has one ONNX counterpart here. That keeps batch normalisation, attention and the paddings as the
operators they are, and makes names and bytes independent of any exporter's passes. What is not listed is
refused by name. Views of all bytes in place (reshape, flatten, a transpose of dimensions of size 1) become
`Reshape` or `Flatten`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

IR_VERSIONS = {18: 8, 23: 11}
"""ONNX file format that belongs to each operator set used here."""

Attributes = dict[str, Any]


class Exporter:
    """Walks one exported program and collects ONNX nodes; `values` maps a torch node to its ONNX value."""

    def __init__(self, module: torch.nn.Module, program: torch.export.ExportedProgram, opset: int) -> None:
        self.module, self.graph, self.opset = module, program.graph, opset
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[TensorProto] = []
        self.values: dict[torch.fx.Node, str] = {}
        self.taken: set[str] = set()
        self.reshaped: dict[str, tuple[str, list[int]]] = {}
        signature = program.graph_signature
        self.weights = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        self.inputs = [node for node in self.graph.nodes if node.name in signature.user_inputs]
        self.used_weights: dict[str, None] = {}
        self.attention = dict(_packed_attention(self.graph))
        self.skipped = {node for chain in self.attention.values() for node in chain[1:]}

    def run(self) -> None:
        for node in self.inputs:
            self.values[node] = self.unique(node.name)
        for node in self.graph.nodes:
            if node.op == "placeholder" and node.name in self.weights:
                self.values[node] = self.weights[node.name]
            elif node.op == "call_function" and node not in self.skipped:
                self.translate(node)

    def translate(self, node: torch.fx.Node) -> None:
        if node.target.__module__ == "_operator" or node.target is torch.ops.aten.sym_size.int:
            return  # an output of several, named by its operator; or a size, see `sizes`
        kind = node.target.__name__.split(".")[0].rstrip("_")
        rule = RULES.get(kind)
        if rule is None:
            raise NotImplementedError(f"{node.target} ({self.path(node)}) has no ONNX counterpart here")
        rule(self, node)

    # ------------------------------------------------------------------ names

    def path(self, node: torch.fx.Node) -> str:
        """The calling module's dotted path, with the operator's name unless that module is a leaf."""
        kind = node.target.__name__.split(".")[0].strip("_")
        for argument in node.args:
            if kind == "linear" and isinstance(argument, torch.fx.Node) and argument.name in self.weights:
                return self.weights[argument.name].removesuffix("weight").rstrip("._")
        stack = list(node.meta.get("nn_module_stack", {}).values())
        owner = stack[-1][0].split("@")[0] if stack else ""
        if owner and not any(self.module.get_submodule(owner).children()):
            return owner
        return f"{owner}.{kind}" if owner else kind

    def unique(self, name: str) -> str:
        candidate, count = name, 0
        while candidate in self.taken:
            count += 1
            candidate = f"{name}_{count}"
        self.taken.add(candidate)
        return candidate

    # ------------------------------------------------------------------ emission

    def value(self, node: torch.fx.Node) -> str:
        name = self.values[node]
        if node.op == "placeholder" and node.name in self.weights:
            self.used_weights[name] = None
        return name

    def constant(self, name: str, data: float | Sequence[int], dtype: type = np.int64) -> str:
        name = self.unique(name)
        self.constants.append(numpy_helper.from_array(np.asarray(data, dtype), name))
        return name

    def emit(self, op: str, name: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Append one node with one output; the value is named like the node."""
        name = self.unique(name)
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def sizes(self, name: str, node: torch.fx.Node) -> str:
        """The node's shape: a constant, unless height and width are free.

        Then they are those of the nearest value before that has the same, read by `Shape`: this is how
        definitions say it, where torch writes arithmetic on the input's size instead.
        """
        sizes = node.meta["val"].shape
        if all(isinstance(size, int) for size in sizes):
            return self.constant(name, shape(node))
        before = itertools.takewhile(lambda other: other is not node, self.graph.nodes)
        same = [
            other
            for other in before
            if isinstance(other.meta.get("val"), torch.Tensor)
            and [str(size) for size in other.meta["val"].shape[2:]] == [str(size) for size in sizes[-2:]]
        ]
        like = self.values[same[-1]]
        free = self.emit("Shape", f"{name}.free", [like], start=2)
        fixed = self.constant(f"{name}.fixed", shape(node)[:-2])
        return self.emit("Concat", name, [fixed, free], axis=0)

    def reshape(
        self, name: str, value: str, before: Sequence[int], after: Sequence[int], target: str = ""
    ) -> str:
        """A `Reshape`, straight from the value that a chain of them started with."""
        root, before = self.reshaped.get(value, (value, list(before)))
        if before == list(after):
            return root
        name = self.unique(name)
        target = target or self.constant(f"{name}.shape", after)
        self.nodes.append(helper.make_node("Reshape", [root, target], [name], name=name))
        self.reshaped[name] = (root, before)
        return name

    def drop_unread_reshapes(self, outputs: Sequence[str]) -> None:
        """Those which a later one in the chain has replaced."""
        read = {value for node in self.nodes for value in node.input} | set(outputs)
        self.nodes = [node for node in self.nodes if node.op_type != "Reshape" or node.output[0] in read]
        read = {value for node in self.nodes for value in node.input}
        self.constants = [constant for constant in self.constants if constant.name in read]


# ---------------------------------------------------------------------- rules

RULES: dict[str, Callable[[Exporter, torch.fx.Node], None]] = {}


def rule(*kinds: str) -> Callable[[Callable[[Exporter, torch.fx.Node], None]], None]:
    def register(function: Callable[[Exporter, torch.fx.Node], None]) -> None:
        RULES.update(dict.fromkeys(kinds, function))

    return register


def arguments(node: torch.fx.Node) -> dict[str, Any]:
    """The call's arguments by the names in the operator's schema, defaults included."""
    given = dict(zip((a.name for a in node.target._schema.arguments), node.args, strict=False))
    defaults = {a.name: a.default_value for a in node.target._schema.arguments if a.has_default_value()}
    return {**defaults, **given, **node.kwargs}


def shape(node: torch.fx.Node) -> list[int]:
    """The shape at the example's size."""
    return [size if isinstance(size, int) else size.node.hint for size in node.meta["val"].shape]


def per_axis(setting: int | Sequence[int], axes: int) -> list[int]:
    values = [setting] if isinstance(setting, int) else list(setting)
    return values * axes if len(values) == 1 else values


@rule("conv2d", "conv3d")
def _(to: Exporter, node: torch.fx.Node) -> None:
    a = arguments(node)
    kernel = shape(a["weight"])[2:]
    operands = [to.value(a[key]) for key in ("input", "weight", "bias") if a[key] is not None]
    to.values[node] = to.emit(
        "Conv",
        to.path(node),
        operands,
        kernel_shape=kernel,
        strides=per_axis(a["stride"], len(kernel)),
        pads=per_axis(a["padding"], len(kernel)) * 2,
        dilations=per_axis(a["dilation"], len(kernel)),
        group=a["groups"],
    )


@rule("batch_norm")
def _(to: Exporter, node: torch.fx.Node) -> None:
    a = arguments(node)
    operands = [to.value(a[key]) for key in ("input", "weight", "bias", "running_mean", "running_var")]
    to.values[node] = to.emit("BatchNormalization", to.path(node), operands, epsilon=a["eps"])


@rule("layer_norm")
def _(to: Exporter, node: torch.fx.Node) -> None:
    a = arguments(node)
    operands = [to.value(a[key]) for key in ("input", "weight", "bias")]
    axis = -len(a["normalized_shape"])
    to.values[node] = to.emit("LayerNormalization", to.path(node), operands, axis=axis, epsilon=a["eps"])


@rule("linear")
def _(to: Exporter, node: torch.fx.Node) -> None:
    """`Gemm` is the one operator that has the bias inside; it wants matrices."""
    a = arguments(node)
    name, source = to.path(node), shape(a["input"])
    value = to.value(a["input"])
    if len(source) != 2:
        value = to.reshape(f"{name}.rows", value, source, [math.prod(source[:-1]), source[-1]])
    operands = [value] + [to.value(a[key]) for key in ("weight", "bias") if a[key] is not None]
    value = to.emit("Gemm", name, operands, transB=1)
    if len(source) != 2:
        rows = [math.prod(source[:-1]), shape(node)[-1]]
        value = to.reshape(f"{name}.tokens", value, rows, shape(node))
    to.values[node] = value


@rule("relu", "sigmoid", "hardswish", "gelu")
def _(to: Exporter, node: torch.fx.Node) -> None:
    a = arguments(node)
    kind = node.target.__name__.split(".")[0].rstrip("_")
    assert a.get("approximate", "none") == "none"
    op = {"relu": "Relu", "sigmoid": "Sigmoid", "hardswish": "HardSwish", "gelu": "Gelu"}[kind]
    to.values[node] = to.emit(op, to.path(node), [to.value(node.args[0])])


@rule("hardsigmoid")
def _(to: Exporter, node: torch.fx.Node) -> None:
    to.values[node] = to.emit("HardSigmoid", to.path(node), [to.value(node.args[0])], alpha=1 / 6, beta=0.5)


@rule("hardtanh")
def _(to: Exporter, node: torch.fx.Node) -> None:
    a = arguments(node)
    name = to.path(node)
    bounds = [to.constant(f"{name}.{key}", a[f"{key}_val"], np.float32) for key in ("min", "max")]
    to.values[node] = to.emit("Clip", name, [to.value(a["self"]), *bounds])


@rule("add", "mul")
def _(to: Exporter, node: torch.fx.Node) -> None:
    a = arguments(node)
    assert a.get("alpha", 1) == 1
    op = "Add" if node.target.__name__.startswith("add") else "Mul"
    to.values[node] = to.emit(op, to.path(node), [to.value(a["self"]), to.value(a["other"])])


@rule("cat")
def _(to: Exporter, node: torch.fx.Node) -> None:
    a = arguments(node)
    to.values[node] = to.emit("Concat", to.path(node), [to.value(t) for t in a["tensors"]], axis=a["dim"])


@rule("max_pool2d", "max_pool3d", "avg_pool2d", "avg_pool3d")
def _(to: Exporter, node: torch.fx.Node) -> None:
    a = arguments(node)
    axes = len(shape(node)) - 2
    attributes: Attributes = {
        "kernel_shape": per_axis(a["kernel_size"], axes),
        "strides": per_axis(a["stride"] or a["kernel_size"], axes),
        "pads": per_axis(a["padding"], axes) * 2,
    }
    if a["ceil_mode"]:
        attributes["ceil_mode"] = 1
    if node.target.__name__.startswith("max"):
        op = "MaxPool"
        attributes["dilations"] = per_axis(a["dilation"], axes)
    else:
        op = "AveragePool"
        assert a["divisor_override"] is None
        attributes["count_include_pad"] = int(a["count_include_pad"])
    to.values[node] = to.emit(op, to.path(node), [to.value(a["self"])], **attributes)


@rule("adaptive_avg_pool2d", "adaptive_avg_pool3d")
def _(to: Exporter, node: torch.fx.Node) -> None:
    source = node.args[0]
    if shape(source) == shape(node):  # pools of one pixel: VGG at its own resolution
        to.values[node] = to.emit("Identity", to.path(node), [to.value(source)])
        return
    assert set(shape(node)[2:]) == {1}, f"{to.path(node)}: pools to {shape(node)}"
    to.values[node] = to.emit("GlobalAveragePool", to.path(node), [to.value(source)])


@rule("mean")
def _(to: Exporter, node: torch.fx.Node) -> None:
    a = arguments(node)
    name = to.path(node)
    axes = to.constant(f"{name}.axes", a["dim"])
    to.values[node] = to.emit("ReduceMean", name, [to.value(a["self"]), axes], keepdims=int(a["keepdim"]))


@rule("pad")
def _(to: Exporter, node: torch.fx.Node) -> None:
    """Torch lists (before, after) from the last axis on, ONNX all befores and then all afters."""
    a = arguments(node)
    assert a["mode"] == "constant"
    name, rank = to.path(node), len(shape(node))
    amounts = list(a["pad"]) + [0] * (2 * rank - len(a["pad"]))
    before, after = amounts[-2::-2], amounts[::-2]
    operands = [to.value(a["self"]), to.constant(f"{name}.pads", before + after)]
    if a["value"]:
        operands.append(to.constant(f"{name}.value", a["value"], np.float32))
    to.values[node] = to.emit("Pad", name, operands)


@rule("upsample_bilinear2d")
def _(to: Exporter, node: torch.fx.Node) -> None:
    a = arguments(node)
    name = to.path(node)
    sizes = to.sizes(f"{name}.sizes", node)
    mode = "align_corners" if a["align_corners"] else "half_pixel"
    operands = [to.value(a["input"]), "", "", sizes]
    to.values[node] = to.emit("Resize", name, operands, mode="linear", coordinate_transformation_mode=mode)


@rule("dropout", "contiguous")
def _(to: Exporter, node: torch.fx.Node) -> None:
    assert not (len(node.args) == 3 and node.args[2]), "dropout in training mode"
    to.values[node] = to.value(node.args[0])


@rule("flatten")
def _(to: Exporter, node: torch.fx.Node) -> None:
    assert arguments(node)["start_dim"] == 1
    assert arguments(node)["end_dim"] == -1
    to.values[node] = to.emit("Flatten", to.path(node), [to.value(node.args[0])], axis=1)


@rule("view", "reshape", "unflatten", "unsqueeze", "squeeze", "expand")
def _(to: Exporter, node: torch.fx.Node) -> None:
    source = node.args[0]
    assert math.prod(shape(source)) == math.prod(shape(node)), f"{to.path(node)} copies"
    name, target = to.path(node), ""
    if not all(isinstance(size, int) for size in node.meta["val"].shape):
        target = to.sizes(f"{name}.shape", node)
    to.values[node] = to.reshape(name, to.value(source), shape(source), shape(node), target)


@rule("transpose", "permute")
def _(to: Exporter, node: torch.fx.Node) -> None:
    source, rank = node.args[0], len(shape(node))
    if "transpose" in node.target.__name__:
        order = list(range(rank))
        first, second = (axis % rank for axis in node.args[1:])
        order[first], order[second] = second, first
    else:
        order = [axis % rank for axis in node.args[1]]
    moved = [axis for axis in order if shape(source)[axis] != 1]
    if moved == sorted(moved):
        to.values[node] = to.reshape(to.path(node), to.value(source), shape(source), shape(node))
    else:
        to.values[node] = to.emit("Transpose", to.path(node), [to.value(source)], perm=order)


@rule("select")
def _(to: Exporter, node: torch.fx.Node) -> None:
    """One index of an axis: a slice, so that a reader sees which bytes it is, and a reshape."""
    source, axis, index = node.args
    name = to.path(node)
    bounds = {"starts": index, "ends": index + 1, "axes": axis}
    operands = [to.constant(f"{name}.{key}", [bound]) for key, bound in bounds.items()]
    value = to.emit("Slice", name, [to.value(source), *operands])
    kept = [1 if i == axis else size for i, size in enumerate(shape(source))]
    to.values[node] = to.reshape(f"{name}.reshape", value, kept, shape(node))


@rule("chunk")
def _(to: Exporter, node: torch.fx.Node) -> None:
    parts = sorted((user.args[1], user) for user in node.users)
    name = to.unique(to.path(node))
    outputs = [to.unique(f"{name}.{index}") for index, _ in parts]
    sizes = to.constant(f"{name}.sizes", [shape(user)[arguments(node)["dim"]] for _, user in parts])
    operands = [to.value(node.args[0]), sizes]
    to.nodes.append(helper.make_node("Split", operands, outputs, name=name, axis=arguments(node)["dim"]))
    for (_, user), output in zip(parts, outputs, strict=True):
        to.values[user] = output


# ---------------------------------------------------------------------- attention


def _packed_attention(graph: torch.fx.Graph) -> Iterator[tuple[torch.fx.Node, list[torch.fx.Node]]]:
    """Every self-attention over one packed projection, with the layout nodes that ONNX does not need.

    ONNX's `Attention` takes queries, keys and values as (batch, tokens, heads * width), which is what the
    packed projection holds side by side; torch moves heads to the front and back again. Yields the node whose
    value the `Attention` gives (the reshape behind it) and [the attention node, every node of the chains,
    ...].
    """
    for node in graph.nodes:
        if node.op != "call_function" or "scaled_dot_product_attention" not in node.target.__name__:
            continue
        chains = []
        for position, operand in enumerate(node.args[:3]):
            chain, steps = [operand], ["view", "transpose", "view", "select", "contiguous", "squeeze"]
            steps += ["transpose", "unsqueeze", "unflatten"]
            for step in steps:
                assert chain[-1].target.__name__.startswith(step), (chain[-1], step)
                if step == "select":
                    assert chain[-1].args[1:] == (0, position)
                chain.append(chain[-1].args[0])
            chains.append(chain)
        source = chains[0][-1]
        assert all(chain[-1] is source for chain in chains)
        (permute,) = node.users
        (reshape,) = permute.users
        assert list(permute.args[1]) == [2, 0, 1, 3]
        skipped = {inner: None for chain in chains for inner in chain[:-1]}
        yield node, [source, *skipped, permute, reshape]


@rule("scaled_dot_product_attention")
def _(to: Exporter, node: torch.fx.Node) -> None:
    source, *_, reshape = to.attention[node]
    assert len(node.args) == 3, "no mask, no dropout"
    assert not node.kwargs
    assert to.opset >= 23, "Attention came with operator set 23"
    batch, heads, tokens, width = shape(node)
    name = to.path(node).removesuffix(".scaled_dot_product_attention")
    together = [batch, tokens, 3 * heads * width]
    packed = to.reshape(f"{name}.packed", to.value(source), shape(source), together)
    parts = [to.unique(f"{name}.{part}") for part in ("query", "key", "value")]
    sizes = to.constant(f"{name}.split.sizes", [heads * width] * 3)
    split = to.unique(f"{name}.split")
    to.nodes.append(helper.make_node("Split", [packed, sizes], parts, name=split, axis=2))
    value = to.emit("Attention", f"{name}.attention", parts, q_num_heads=heads, kv_num_heads=heads)
    together = [batch, tokens, heads * width]
    to.values[reshape] = to.reshape(f"{name}.rows", value, together, shape(reshape))


# ---------------------------------------------------------------------- the whole model


def export(
    module: torch.nn.Module, example: torch.Tensor, name: str, opset: int, free_sizes: bool
) -> onnx.ModelProto:
    """The module in evaluation mode as an ONNX model with its weights; every shape is as in torch.

    With `free_sizes`, height and width (the last two axes) are free during the export, and what depends on
    them in the network stays a `Shape`.
    """
    free = {example.dim() - 2: torch.export.Dim.AUTO, example.dim() - 1: torch.export.Dim.AUTO}
    program = torch.export.export(module.eval(), (example,), dynamic_shapes=(free,) if free_sizes else None)
    to = Exporter(module, program, opset)
    to.run()
    (results,) = (node.args[0] for node in to.graph.nodes if node.op == "output")
    outputs = [node for node in results if node is not None]
    to.drop_unread_reshapes([to.values[node] for node in outputs])
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    weights = [numpy_helper.from_array(state[key].detach().numpy(), key) for key in to.used_weights]

    def described(node: torch.fx.Node) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(to.values[node], TensorProto.FLOAT, shape(node))

    model = helper.make_model(
        helper.make_graph(
            to.nodes,
            name,
            [described(node) for node in to.inputs],
            [described(node) for node in outputs],
            [*weights, *to.constants],
        ),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=IR_VERSIONS[opset],
        producer_name="onchip",
    )
    _compare_shapes(
        model, {to.values[n]: shape(n) for n in to.values if isinstance(n.meta["val"], torch.Tensor)}
    )
    return model


def strip(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model without the weights' data: dims and element type stay, and so do integer constants."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    names = {constant.name for constant in bare.graph.initializer if is_weight(constant)}
    for tensor in bare.graph.initializer:
        if tensor.name in names:
            tensor.ClearField("raw_data")
    return bare


def is_weight(tensor: TensorProto) -> bool:
    """Whether an initializer is a weight. Constants of the export are integers or scalars."""
    return tensor.data_type == TensorProto.FLOAT and len(tensor.dims) > 0


def _compare_shapes(model: onnx.ModelProto, expected: dict[str, list[int]]) -> None:
    inferred = onnx.shape_inference.infer_shapes(
        strip(model), check_type=True, strict_mode=True, data_prop=True
    )
    found = {
        value.name: [axis.dim_value for axis in value.type.tensor_type.shape.dim]
        for value in [*inferred.graph.value_info, *inferred.graph.output]
    }
    for name, dims in expected.items():
        if name in found and found[name] != dims:
            raise AssertionError(f"{name}: ONNX infers {found[name]}, torch has {dims}")
