"""Random networks made of modules: branches into concats and sums, nested, with what lies around them.

`random_module_network` takes a `random.Random`; `module_networks` is the same as a hypothesis strategy. What
comes out is a list of layers that becomes an onchip `Network` (8-bit, as the reader sees the model at
granularity `fused`) or an ONNX model of the same names, so that plans for one can be executed with the other.
Where nothing was added that disturbs them (`leaks`, `long_skips`), the modules are known by construction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from onchip.network import Geometry, Network, OperatorSpec

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["Layer", "MadeModule", "ModuleNetwork", "module_networks", "random_module_network"]

Shape = tuple[int, int, int]
"""Channels, rows, columns of the one image."""


@dataclass(frozen=True)
class Layer:
    """One operator: Conv, MaxPool, AveragePool, Concat, Add, Sum, Mul, Gemm or GlobalAveragePool."""

    name: str
    type: str
    inputs: tuple[str, ...]
    shape: Shape
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    padding: tuple[int, int] = (0, 0)
    groups: int = 1
    bias: bool = False
    after: str = ""
    """An element-wise node that runs with it: Relu or Sigmoid."""


@dataclass(frozen=True)
class MadeModule:
    """A module as it was made: its name, the tensor it starts at, its merge, the module around it."""

    name: str
    start: str
    merge: str
    around: str | None


@dataclass(frozen=True)
class ModuleNetwork:
    """Layers in a legal order; each writes one tensor of its own name. `x` is the input."""

    input: Shape
    layers: tuple[Layer, ...]
    outputs: tuple[str, ...]
    modules: tuple[MadeModule, ...]
    disturbed: bool
    """Whether something was added that may change which modules there are."""

    def shape(self, tensor: str) -> Shape:
        """Channels, rows and columns of a tensor."""
        return self.input if tensor == "x" else next(row.shape for row in self.layers if row.name == tensor)

    def network(self) -> Network:
        """As the reader gives it: one byte an element, activations merged into what they follow."""
        shapes = {"x": self.input} | {layer.name: layer.shape for layer in self.layers}
        operators = []
        for row in self.layers:
            of, to = shapes[row.inputs[0]], row.shape
            taps, weights = row.kernel, 0
            kind = {"Concat": "concat", "MaxPool": "pool", "AveragePool": "pool", "Conv": "conv"}.get(
                row.type
            )
            sides = (1, *of), (1, *to)
            if kind is None and row.type in ("Add", "Mul", "Sum"):
                geometry = Geometry("elementwise", sides[1], sides[1])
            elif row.type == "GlobalAveragePool":
                geometry = Geometry("pool", *sides, kernel=of[1:])
            elif row.type == "Gemm":
                geometry = Geometry("fully_connected", (1, prod(of)), (1, to[0]))
                weights = prod(of) * to[0]
            elif kind == "concat":
                geometry = Geometry("concat", *sides)
            else:
                assert kind is not None
                if kind == "conv":
                    weights = to[0] * of[0] // row.groups * taps[0] * taps[1]
                    kind = "depthwise" if row.groups > 1 else "conv"
                geometry = Geometry(
                    kind, *sides, taps, (row.stride,) * 2, row.padding * 2, (1, 1), row.groups
                )  # fmt: skip
            weights += to[0] if row.bias else 0
            type_ = f"{row.type}+{row.after}" if row.after else row.type
            operators.append(OperatorSpec(row.name, type_, row.inputs, [row.name], weights, 0, geometry))
        tensors = [("x", prod(self.input), "input")]
        tensors += [(row.name, prod(row.shape), "activation") for row in self.layers]
        return Network.build("modules", tensors, operators, self.outputs)  # type: ignore[arg-type]

    def model(self) -> ModelProto:
        """The same as an ONNX model; its weights have no data (a run fills them from a seed)."""
        from onnx import TensorProto, helper

        shapes = {"x": self.input} | {layer.name: layer.shape for layer in self.layers}
        nodes, weights = [], []

        def weight(*dims: int) -> str:
            weights.append(TensorProto(name=f"w{len(weights)}", dims=dims, data_type=TensorProto.FLOAT))
            return weights[-1].name

        for row in self.layers:
            of, to, reads = shapes[row.inputs[0]], row.shape, list(row.inputs)
            attributes: dict[str, object] = {}
            if row.type in ("Conv", "MaxPool", "AveragePool"):
                attributes = {
                    "kernel_shape": row.kernel,
                    "strides": (row.stride,) * 2,
                    "pads": row.padding * 2,
                }
            if row.type == "Conv":
                attributes["group"] = row.groups
                reads.append(weight(to[0], of[0] // row.groups, *row.kernel))
            elif row.type == "Gemm":
                nodes.append(
                    helper.make_node("Flatten", reads, [f"{row.name}.flat"], name=f"{row.name}.flat")
                )
                reads = [f"{row.name}.flat", weight(prod(of), to[0])]
            elif row.type == "Concat":
                attributes = {"axis": 1}
            if row.bias:
                reads.append(weight(to[0]))
            made = f"{row.name}.raw" if row.after else row.name
            nodes.append(helper.make_node(row.type, reads, [made], name=row.name, **attributes))
            if row.after:
                nodes.append(helper.make_node(row.after, [made], [row.name], name=f"{row.name}.after"))
        graph = helper.make_graph(
            nodes,
            "modules",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, *self.input))],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in self.outputs],
            weights,
        )
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])

    def write(self, path: Path) -> Path:
        """The model as a file; read it with `dtype="int8"` to get `network()`."""
        path.write_bytes(self.model().SerializeToString())
        return path


def random_module_network(
    rng: Random,
    *,
    most_modules: int = 4,
    most_depth: int = 3,
    most_rows: int = 40,
    most_channels: int = 64,
    gates: float = 0.1,
    long_skips: float = 0.0,
    leaks: float = 0.0,
    extra_outputs: float = 0.0,
) -> ModuleNetwork:
    """A network of one to `most_modules` outermost modules, with single layers before, between and after.

    `gates` is how often a step of a branch is a squeeze-and-excitation block; `long_skips` how often a module
    is followed by a join with something made long before; `leaks` how often a layer outside reads something
    in a branch (or it is an output); `extra_outputs` how often a module's output is an output of the network.
    """
    builder = _Builder(rng, most_depth, most_rows, most_channels, gates)
    return builder.build(rng.randint(1, most_modules), long_skips, leaks, extra_outputs)


@st.composite
def module_networks(draw: st.DrawFn, **how: object) -> ModuleNetwork:
    """`random_module_network`, drawn and shrunk by hypothesis."""
    return random_module_network(draw(st.randoms(use_true_random=False)), **how)  # type: ignore[arg-type]


@dataclass
class _Builder:
    rng: Random
    most_depth: int
    most_rows: int
    most_channels: int
    gates: float
    layers: list[Layer] = field(default_factory=list)
    modules: list[MadeModule] = field(default_factory=list)
    shapes: dict[str, Shape] = field(default_factory=dict)
    within: list[str] = field(default_factory=list)
    """Tensors inside of modules."""

    def build(self, count: int, long_skips: float, leaks: float, extra_outputs: float) -> ModuleNetwork:
        rng = self.rng
        self.shapes["x"] = (self.channels(), rng.randint(5, self.most_rows), rng.randint(5, self.most_rows))
        disturbed = False
        extra: list[str] = []
        trunk = [self.chain("stem", "x", rng.choice((0, 1, 1, 2)))]
        for i in range(count):
            at = self.module(f"m{i}", trunk[-1], None, 1)
            if rng.random() < extra_outputs:
                extra.append(at)
            trunk.append(at)
            if rng.random() < long_skips:
                trunk.append(self.join(f"skip{i}", at, trunk))
                disturbed |= trunk[-1] != at
            trunk.append(self.chain(f"between{i}", trunk[-1], rng.choice((0, 0, 0, 1, 2))))
        head = trunk[-1]
        if rng.random() < 0.4:
            head = self.add("head.pool", "GlobalAveragePool", (head,), (self.shapes[head][0], 1, 1))
            classes = rng.randint(1, 12)
            head = self.add("head.fc", "Gemm", (head,), (classes, 1, 1), bias=rng.random() < 0.7)
        for i, inner in enumerate(self.within):
            if rng.random() < leaks:
                disturbed = True
                extra.append(self.convolution(f"aux{i}", inner, 1) if rng.random() < 0.6 else inner)
        if head == "x":
            head = self.convolution("only", "x", self.channels())
        outputs = tuple(dict.fromkeys([*(name for name in extra if name != "x"), head]))
        return ModuleNetwork(
            self.shapes["x"], tuple(self.layers), outputs, tuple(self.modules), disturbed
        )  # fmt: skip

    # -- modules ---------------------------------------------------------------------------------------------

    def module(self, name: str, start: str, around: str | None, depth: int) -> str:
        """A module behind `start`; gives its output."""
        rng = self.rng
        channels, rows, columns = self.shapes[start]
        before = len(self.layers)
        adds = rng.random() < 0.45
        stride = 2 if depth == 1 and rng.random() < 0.2 and min(rows, columns) >= 5 else 1
        valid = stride == 2 and rng.random() < 0.5
        identity = stride == 1 and rng.random() < (0.7 if adds else 0.15)
        wanted = channels if adds and identity else self.channels() if adds else None
        operands = []
        for i in range(rng.choice((1, 1, 2, 3) if identity else (2, 2, 3, 4))):
            strided: bool | None = valid if stride == 2 else None
            operands.append(self.branch(f"{name}.b{i}", start, strided, wanted, name, depth))
        if identity:
            operands.insert(rng.randint(0, len(operands)), start)
        made = self.shapes[operands[-1] if operands[-1] != start else operands[0]]
        merge = f"{name}.merge"
        if adds:
            after = "Relu" if rng.random() < 0.5 else ""
            self.add(merge, "Add" if len(operands) == 2 else "Sum", tuple(operands), made, after=after)
        else:
            total = sum(self.shapes[t][0] for t in operands)
            self.add(merge, "Concat", tuple(operands), (total, *made[1:]))
        self.modules.append(MadeModule(name, start, merge, around))
        self.within += [row.name for row in self.layers[before:-1] if row.name not in self.within]
        return merge

    def branch(
        self, name: str, start: str, strided: bool | None, channels: int | None, module: str, depth: int
    ) -> str:
        """Layers and nested modules; one layer has stride 2 (without padding, where `strided` says so)."""
        rng = self.rng
        steps = rng.choice((1, 1, 2, 2, 3)) if depth == 1 else rng.choice((1, 1, 2))
        slow = rng.randrange(steps) if strided is not None else None
        at = start
        for i in range(steps):
            step = f"{name}.l{i}"
            if i == slow:
                at = self.window(step, at, 2, bool(strided))
            elif depth < self.most_depth and rng.random() < 0.12:
                at = self.module(f"{name}.m{i}", at, module, depth + 1)
            elif at != start and rng.random() < self.gates:
                at = self.gate(step, at)
            else:
                at = self.window(step, at, 1, False)
        if channels is not None and (self.shapes[at][0] != channels or at == start):
            at = self.convolution(f"{name}.last", at, channels)
        return at

    # -- layers ----------------------------------------------------------------------------------------------

    def channels(self) -> int:
        return self.rng.choice((1, 2, 3, 4, 8, self.rng.randint(1, self.most_channels)))

    def add(self, name: str, type_: str, inputs: tuple[str, ...], shape: Shape, **more: object) -> str:
        self.layers.append(Layer(name, type_, inputs, shape, **more))  # type: ignore[arg-type]
        self.shapes[name] = shape
        return name

    def window(self, name: str, at: str, stride: int, valid: bool) -> str:
        """A convolution, a depthwise one or a pool; at stride 1 it keeps the map's rows and columns."""
        rng = self.rng
        channels, rows, columns = self.shapes[at]
        kernel = (3, 3) if valid else rng.choice(((1, 1), (1, 1), (3, 3), (3, 3), (5, 5), (1, 7), (7, 1)))
        padding = (0, 0) if valid else (kernel[0] // 2, kernel[1] // 2)
        sides = [
            (n + 2 * p - k) // stride + 1 for n, p, k in zip((rows, columns), padding, kernel, strict=True)
        ]
        kind = rng.choice(("Conv", "Conv", "Conv", "depthwise", "MaxPool", "AveragePool"))
        if kind in ("MaxPool", "AveragePool") and kernel == (3, 3):
            shape = (channels, sides[0], sides[1])
            return self.add(name, kind, (at,), shape, kernel=kernel, stride=stride, padding=padding)
        groups = channels if kind == "depthwise" else 1
        shape = (channels if kind == "depthwise" else self.channels(), sides[0], sides[1])
        return self.add(
            name, "Conv", (at,), shape, kernel=kernel, stride=stride, padding=padding, groups=groups,
            bias=rng.random() < 0.5, after=rng.choice(("", "Relu")),
        )  # fmt: skip

    def convolution(self, name: str, at: str, channels: int) -> str:
        return self.add(name, "Conv", (at,), (channels, *self.shapes[at][1:]), bias=self.rng.random() < 0.5)

    def gate(self, name: str, at: str) -> str:
        """A map times a number for each of its channels."""
        channels = self.shapes[at][0]
        pooled = self.add(f"{name}.pool", "GlobalAveragePool", (at,), (channels, 1, 1))
        gate = self.add(f"{name}.fc", "Conv", (pooled,), (channels, 1, 1), bias=True, after="Sigmoid")
        return self.add(name, "Mul", (at, gate), self.shapes[at])

    def chain(self, name: str, at: str, count: int) -> str:
        for i in range(count):
            stride = 2 if min(self.shapes[at][1:]) >= 10 and self.rng.random() < 0.3 else 1
            at = self.window(f"{name}{i}", at, stride, False)
        return at

    def join(self, name: str, at: str, trunk: list[str]) -> str:
        """A sum or a concat with something made before on the trunk or in a module, if one has the shape."""
        candidates: list[Callable[[], str]] = []
        for t in [*trunk[:-1], *self.within[: len(self.within) // 2]]:
            if t != at and self.shapes[t] == self.shapes[at]:
                candidates.append(lambda t=t: self.add(name, "Add", (at, t), self.shapes[at]))  # type: ignore[misc]
            elif t != at and self.shapes[t][1:] == self.shapes[at][1:]:
                both = self.shapes[t][0] + self.shapes[at][0], *self.shapes[at][1:]
                candidates.append(lambda t=t, both=both: self.add(name, "Concat", (t, at), both))  # type: ignore[misc]
        return self.rng.choice(candidates)() if candidates else at
