"""The walk over an exported program, and the functions that the rules of every family use."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch._subclasses.fake_tensor import FakeTensorMode

from onchip.base.errors import ModelError

if TYPE_CHECKING:

    class Node:
        """The used part of `torch.fx.Node`, for a type checker that has no torch."""

        name: str
        op: str
        target: Any
        args: Any
        kwargs: dict[str, Any]
        meta: dict[str, Any]
        users: dict[Node, None]
        all_input_nodes: list[Node]

else:
    from torch.fx import Node

__all__ = [
    "ELEMENT",
    "Exporter",
    "Node",
    "Rule",
    "arguments",
    "kind_of",
    "rule",
    "shape",
]

ELEMENT: dict[torch.dtype, int] = {
    torch.float32: 1, torch.uint8: 2, torch.int8: 3, torch.int16: 5, torch.int32: 6, torch.int64: 7,
    torch.bool: 9, torch.float16: 10, torch.float64: 11, torch.bfloat16: 16,
}  # fmt: skip
"""ONNX element types."""

LARGEST_CONSTANT = 1 << 26
"""The most bytes of a constant that is computed while exporting."""

Rule = Callable[["Exporter", Node], None]
RULES: dict[str, Rule] = {}


def rule(*kinds: str) -> Callable[[Rule], Rule]:
    """Register a function that translates calls of these ATen operators (without trailing underscores)."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, function))
        return function

    return register


def kind_of(node: Node) -> str:
    """Return the operator's name without overload: `aten.relu_.default` is `relu`."""
    name = getattr(node.target, "__name__", str(node.target))
    return str(name).split(".")[0].rstrip("_")


def arguments(node: Node) -> dict[str, Any]:
    """Return the call's arguments by the names in the operator's schema, defaults included."""
    given = dict(zip((a.name for a in node.target._schema.arguments), node.args, strict=False))
    defaults = {a.name: a.default_value for a in node.target._schema.arguments if a.has_default_value()}
    return {**defaults, **given, **node.kwargs}


def shape(node: Node) -> list[int]:
    """Return the shape at the example's size."""
    return [size if isinstance(size, int) else size.node.hint for size in node.meta["val"].shape]


_SENSELESS = (AssertionError, AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError)
"""The errors that Python raises for a call whose arguments do not fit its operator."""


class Exporter:
    """Walks one exported program and collects ONNX nodes; `values` maps a torch node to its ONNX value."""

    def __init__(self, program: torch.export.ExportedProgram, where: str, opset: int) -> None:
        self.graph, self.where, self.opset = program.graph, where, opset
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[TensorProto] = []
        self.values: dict[Node, str] = {}
        self.parts: dict[Node, list[str]] = {}
        """The outputs of an operator with several."""
        self.known: dict[Node, torch.Tensor] = {}
        """Values that depend on no input and no weight."""
        self.reshaped: dict[str, tuple[str, list[int]]] = {}
        signature = program.graph_signature
        self.weights = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
        lifted = signature.inputs_to_lifted_tensor_constants
        self.tensors = {**program.constants, **program.state_dict}
        for node in self.graph.nodes:
            if node.op != "placeholder" or node.name not in {**self.weights, **lifted}:
                continue
            tensor = self.tensors.get(lifted.get(node.name) or self.weights[node.name])
            fixed = node.name in lifted or (tensor is not None and not tensor.dtype.is_floating_point)
            if fixed and tensor is not None and tensor.device.type == "cpu":
                self.known[node] = tensor.detach()
            elif node.name in lifted:
                self.weights[node.name] = lifted[node.name]
        self.inputs = [
            node
            for node in self.graph.nodes
            if node.name in signature.user_inputs and isinstance(node.meta.get("val"), torch.Tensor)
        ]
        self.taken = set(self.weights.values())
        self.used_weights: dict[str, None] = {}
        paths = {
            entry[0].split("@")[0]
            for node in self.graph.nodes
            for entry in node.meta.get("nn_module_stack", {}).values()
        }
        paths |= {name.rpartition(".")[0] for name in self.weights.values()}
        self.inner = {path[:i] for path in paths for i, letter in enumerate(path) if letter == "."}
        """Paths of modules that have modules inside."""
        self.skipped: set[Node] = set()
        self.packed: dict[Node, list[Node]] = {}
        """Attention calls that need no layout nodes, see `attention.find_packed`."""
        self.whole: dict[Node, Callable[[], None]] = {}
        """Calls that end a chain which is one ONNX node, and the function that appends that node."""

    def run(self) -> None:
        for node in self.inputs:
            self.values[node] = self.unique(node.name)
        for node in self.graph.nodes:
            if node.op == "placeholder" and node.name in self.weights and node not in self.known:
                self.values[node] = self.weights[node.name]
            elif node in self.whole:
                self.whole[node]()
            elif node.op == "call_function" and node not in self.skipped:
                try:
                    self.translate(node)
                except _SENSELESS as problem:  # torch loads files whose calls do not fit their operators
                    reason = f"its arguments make no sense ({type(problem).__name__}: {problem})"
                    raise self.refuse(node, reason) from problem

    def translate(self, node: Node) -> None:
        if node.target is operator.getitem:
            source, index = node.args
            assert isinstance(source, Node)
            if source not in self.skipped and node not in self.values and node not in self.skipped:
                self.values[node] = self.parts[source][index]
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            if isinstance(node.target, torch._ops.HigherOrderOperator):
                raise self.refuse(node, "control flow and wrapped regions cannot be planned")
            return  # arithmetic on sizes, see `sizes`
        if node.target.namespace == "aten" and kind_of(node).startswith(("_assert", "sym_")):
            return
        if torch.Tag.nondeterministic_seeded in node.target.tags and not self.is_off(node):
            raise self.refuse(node, "draws random numbers: put the module in evaluation mode")
        if self.fold(node):
            return
        found = RULES.get(kind_of(node)) if node.target.namespace == "aten" else None
        if found is None:
            raise self.refuse(node, "is an operator that cannot be read")
        found(self, node)

    def is_off(self, node: Node) -> bool:
        """Return whether a dropout does nothing."""
        given = arguments(node)
        return not given.get("train", given.get("dropout_p", True))

    def fold(self, node: Node) -> bool:
        """Compute values that depend on constants alone."""
        value = node.meta.get("val")
        several = isinstance(value, (list, tuple)) and all(isinstance(part, torch.Tensor) for part in value)
        if not (several or isinstance(value, torch.Tensor)) or (several and not node.all_input_nodes):
            return False
        if any(n not in self.known for n in node.all_input_nodes):
            return False
        if self.constant_bytes(node) > LARGEST_CONSTANT:
            raise self.refuse(node, f"makes a constant of more than {LARGEST_CONSTANT:,} bytes")
        args = torch.fx.map_arg(node.args, lambda n: self.known[n])
        kwargs = dict(torch.fx.map_arg(node.kwargs, lambda n: self.known[n]))
        if "device" in kwargs:
            kwargs["device"] = "cpu"
        with torch.no_grad(), torch.device("cpu"):
            assert callable(node.target)
            if node.target._schema.is_mutable:
                args = tuple(a.clone() if isinstance(a, torch.Tensor) else a for a in args)
            made = node.target(*args, **kwargs)
        if not several:
            self.known[node] = made
            return True
        for user in node.users:
            if user.target is operator.getitem:
                self.known[user] = made[user.args[1]]
                self.skipped.add(user)
        return True

    def constant_bytes(self, node: Node) -> int:
        """Return the bytes of a call on constants, from the call's own result: a file may state others."""
        with FakeTensorMode() as mode, torch.no_grad():
            args, kwargs = torch.fx.map_arg(
                (node.args, dict(node.kwargs)), lambda n: mode.from_tensor(self.known[n])
            )
            kwargs = dict(kwargs)
            if "device" in kwargs:
                kwargs["device"] = "cpu"
            try:
                made = node.target(*args, **kwargs)
            except _SENSELESS as problem:
                raise self.refuse(node, f"cannot be computed ({type(problem).__name__})") from problem
        parts = list(made) if isinstance(made, (list, tuple)) else [made]
        if not all(isinstance(part, torch.Tensor) for part in parts):
            raise self.refuse(node, f"makes {type(made).__name__}, not a tensor")
        return sum(int(part.numel() * part.element_size()) for part in parts)

    # ------------------------------------------------------------------ messages and names

    def refuse(self, node: Node, reason: str) -> ModelError:
        """Return the error for one call."""
        name = self.path(node)
        name = "".join(c if c.isprintable() else "?" for c in name)
        return ModelError(reason, where=self.where, item=f"node {name} ({node.target})")

    def path(self, node: Node) -> str:
        """Return the calling module's dotted path, with the operator's name unless that module is a leaf."""
        kind = kind_of(node).strip("_")
        for argument in node.args:
            if kind == "linear" and isinstance(argument, Node) and argument.name in self.weights:
                name: str = self.weights[argument.name].removesuffix("weight").rstrip("._")
                if name:
                    return name
        stack = list(node.meta.get("nn_module_stack", {}).values())
        owner = stack[-1][0].split("@")[0] if stack else ""
        if owner and owner not in self.inner:
            return owner
        return f"{owner}.{kind}" if owner else kind

    def unique(self, name: str) -> str:
        candidate, count = name, 0
        while candidate in self.taken:
            count += 1
            candidate = f"{name}_{count}"
        self.taken.add(candidate)
        return candidate

    # ------------------------------------------------------------------ operands

    def value(self, node: Node) -> str:
        """Return the ONNX value of a torch node."""
        if node in self.known and node not in self.values:
            name = self.weights.get(node.name) or (
                node.name if node.op == "placeholder" else f"{self.path(node)}.constant"
            )
            self.values[node] = self.tensor(
                name if node.name in self.weights else self.unique(name), self.known[node]
            )
        name = self.values[node]
        if node.op == "placeholder" and node.name in self.weights and node not in self.known:
            self.used_weights[name] = None
        return name

    def operand(self, name: str, given: Any, dtype: torch.dtype) -> str:
        """Return a node's value or a number's, in this element type."""
        if not isinstance(given, Node):
            return self.tensor(self.unique(name), torch.tensor(given, dtype=dtype))
        value = self.value(given)
        if given.meta["val"].dtype != dtype:
            value = self.emit("Cast", f"{name}.cast", [value], to=ELEMENT[dtype])
        return value

    def constant(self, name: str, data: float | Sequence[int], dtype: type = np.int64) -> str:
        name = self.unique(name)
        self.constants.append(numpy_helper.from_array(np.asarray(data, dtype), name))
        return name

    def tensor(self, name: str, data: torch.Tensor) -> str:
        """Add a constant with data, under exactly this name."""
        data = data.detach().cpu().contiguous()
        proto = TensorProto(name=name, dims=list(data.shape), data_type=ELEMENT[data.dtype])
        proto.raw_data = data.reshape(-1).view(torch.uint8).numpy().tobytes() if data.numel() else b""
        self.constants.append(proto)
        return name

    # ------------------------------------------------------------------ emission

    def emit(self, op: str, name: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Append one node with one output; the value is named like the node."""
        name = self.unique(name)
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def emit_many(
        self, op: str, name: str, inputs: Sequence[str], count: int, **attributes: Any
    ) -> list[str]:
        """Append one node with several outputs."""
        name = self.unique(name)
        outputs = [self.unique(f"{name}.{i}") for i in range(count)]
        self.nodes.append(helper.make_node(op, list(inputs), outputs, name=name, **attributes))
        return outputs

    def split(self, name: str, inputs: Sequence[str], outputs: Sequence[str], axis: int) -> None:
        """Append a `Split` whose outputs have names already."""
        name = self.unique(name)
        self.nodes.append(helper.make_node("Split", list(inputs), list(outputs), name=name, axis=axis))

    def sizes(self, name: str, node: Node) -> str:
        """Return the node's shape: a constant, unless height and width are free.

        Free ones are those of the nearest earlier value that has the same, read by `Shape`: definitions
        state it so, while torch writes arithmetic on the input's size instead.
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
        """Append a `Reshape`, straight from the value that a chain of them started with."""
        root, before = self.reshaped.get(value, (value, list(before)))
        if list(before) == list(after):
            return root
        name = self.unique(name)
        target = target or self.constant(f"{name}.shape", after)
        self.nodes.append(helper.make_node("Reshape", [root, target], [name], name=name))
        self.reshaped[name] = (root, list(before))
        return name

    def drop_unread(self, outputs: Sequence[str]) -> None:
        """Drop reshapes that a later one in the chain has replaced."""
        read = {value for node in self.nodes for value in node.input} | set(outputs)
        self.nodes = [node for node in self.nodes if node.op_type != "Reshape" or node.output[0] in read]
        read = {value for node in self.nodes for value in node.input} | set(outputs)
        self.constants = [constant for constant in self.constants if constant.name in read]
