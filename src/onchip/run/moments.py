"""How large every value of a network will be: second moments, from the graph alone.

Seeded weights have to keep a deep network's values in range and its output dependent on its input. That needs
the second moment E[x^2] of what each weight will multiply: for zero-mean independent weights of variance s^2,
a sum over `fan_in` products has the second moment fan_in * s^2 * E[x^2] whatever the input's own distribution
(He et al. 2015, eq. 6-10, with E[x^2] followed through the graph instead of assumed to halve at each ReLU:
residual sums, concats, gates and poolings would drift otherwise). The estimates need not be sharp, because
every seeded weight divides by the estimate before it and so starts afresh.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

__all__ = ["Spread", "follow"]

_HALVING = frozenset(
    {"Relu", "LeakyRelu", "Elu", "Celu", "Selu", "Gelu", "HardSwish", "Mish", "PRelu", "Clip"}
)
_POOLING = frozenset({"AveragePool", "GlobalAveragePool", "ReduceMean"})
_SUM = frozenset({"Add", "Sub", "Sum"})
_NORM = frozenset({"LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization"})
_MOST, _LEAST = 1e6, 1e-6
"""Estimates are kept between these, so that one odd operator cannot make a weight zero or infinite."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The range that a seeded weight is drawn from, uniformly."""

    low: float
    high: float

    @classmethod
    def around(cls, centre: float, deviation: float) -> Spread:
        """Uniform with this mean and standard deviation."""
        half = 3**0.5 * deviation
        return cls(centre - half, centre + half)

    @property
    def moment(self) -> float:
        """E[w^2]."""
        return (self.low**2 + self.low * self.high + self.high**2) / 3


def follow(
    graph: onnx.GraphProto,
    placeholders: Mapping[str, tuple[int, ...]],
    known: Mapping[str, float],
    shapes: Mapping[str, tuple[int, ...]],
) -> dict[str, Spread]:
    """A spread for every placeholder (name to shape), by one walk over the nodes.

    `known` are the second moments of constants that have data; `shapes` those of any values known.
    A placeholder's spread is decided by its first reader in the graph's order; layout operators pass it on.
    """
    walk = _Walk(placeholders, known, shapes)
    for node in graph.node:
        walk.visit(node)
    rest = {name: Spread.around(0.0, 0.5) for name in placeholders if name not in walk.spreads}
    return walk.spreads | rest


class _Walk:
    def __init__(
        self,
        placeholders: Mapping[str, tuple[int, ...]],
        known: Mapping[str, float],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> None:
        self.moments: dict[str, float] = dict(known)
        self.shapes = {**shapes, **placeholders}
        self.origin = {name: name for name in placeholders}  # value -> the placeholder it is a layout of
        self.spreads: dict[str, Spread] = {}

    def visit(self, node: onnx.NodeProto) -> None:
        inputs = [name for name in node.input if name]
        if (
            node.op_type in _LAYOUT
            and inputs
            and inputs[0] in self.origin
            and node.output[0] not in self.origin
        ):
            self.origin[node.output[0]] = self.origin[inputs[0]]
            if node.op_type == "Transpose" and node.output[0] not in self.shapes:
                self.shapes[node.output[0]] = self.shapes[inputs[0]][::-1]
            return
        moment = min(max(self.output(node, list(node.input)), _LEAST), _MOST)
        for name in node.output:
            if name not in self.origin:  # a constant-fill node's output is itself a placeholder
                self.moments[name] = moment

    def is_open(self, name: str) -> bool:
        """A placeholder, through layout operators, whose spread is still to be decided."""
        return name in self.origin and self.origin[name] not in self.spreads

    def moment(self, name: str, default: Spread) -> float:
        """E[x^2] of an operand; an undecided placeholder takes `default`."""
        if name in self.origin:
            return self.spreads.setdefault(self.origin[name], default).moment
        return self.moments.get(name, 1.0)

    def output(self, node: onnx.NodeProto, inputs: list[str]) -> float:
        first = self.moment(inputs[0], Spread.around(0.0, 0.5)) if inputs and inputs[0] else 1.0
        kind = node.op_type
        if kind in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
            return self.product(node, inputs)
        if kind in ("LSTM", "GRU", "RNN"):
            for name in inputs[1:3]:
                fan_in = max(self.shapes.get(name, (1,))[-1], 1)
                self.moment(name, Spread.around(0.0, fan_in**-0.5))
            for name in inputs[3:]:
                self.moment(name, Spread.around(0.0, 0.05))
            return 0.3
        if kind == "BatchNormalization":
            scale = self.moment(inputs[1], Spread(0.8, 1.2))
            offset = self.moment(inputs[2], Spread.around(0.0, 0.05))
            mean = self.moment(inputs[3], Spread.around(0.0, 0.05))
            variance = math.sqrt(self.moment(inputs[4], Spread(0.5, 1.5)))
            return scale * (first + mean) / max(variance, 1e-5) + offset
        if kind in _NORM:
            scale = self.moment(inputs[1], Spread(0.8, 1.2)) if len(inputs) > 1 else 1.0
            return scale + sum(self.moment(name, Spread.around(0.0, 0.05)) for name in inputs[2:])
        return self.elementwise(node, inputs, first)

    def product(self, node: onnx.NodeProto, inputs: list[str]) -> float:
        """A sum of products: the operand without data gets the deviation that makes the output's moment 1."""
        placeholder = next((i for i in (1, 0) if self.is_open(inputs[i])), None)
        bias = inputs[2] if len(inputs) > 2 else ""
        offset = self.moment(bias, Spread.around(0.0, 0.02)) if bias else 0.0
        fan_in = self.fan_in(node, inputs)
        if placeholder is None:
            return fan_in * self.moment(inputs[0], _UNIT) * self.moment(inputs[1], _UNIT) + offset
        # A bias that came with the file must not drown what depends on the input.
        target = 1.0 + 4.0 * offset if offset > 0.01 else 1.0
        other = self.moment(inputs[1 - placeholder], _UNIT)
        self.moment(inputs[placeholder], Spread.around(0.0, (target / (fan_in * other)) ** 0.5))
        return target + offset

    def fan_in(self, node: onnx.NodeProto, inputs: list[str]) -> int:
        """How many products one output element sums."""
        weight = self.shapes.get(inputs[1], ())
        attributes = {a.name: a.i for a in node.attribute if a.name in ("transA", "transB", "group")}
        if node.op_type == "Conv" and len(weight) > 1:
            return max(math.prod(weight[1:]), 1)
        if node.op_type == "ConvTranspose" and len(weight) > 1:
            strides = next((a.ints for a in node.attribute if a.name == "strides"), [1])
            taps = weight[0] * math.prod(weight[2:]) // int(attributes.get("group", 1))
            return max(taps // math.prod(strides), 1)
        if node.op_type == "Gemm" and len(weight) == 2:
            return max(weight[1 if attributes.get("transB") else 0], 1)
        if weight:
            return max(weight[-2] if len(weight) > 1 else weight[0], 1)
        first = self.shapes.get(inputs[0], (1,))
        return max(first[-1] if first else 1, 1)

    def elementwise(self, node: onnx.NodeProto, inputs: list[str], first: float) -> float:
        kind = node.op_type
        if kind in _HALVING:
            if kind == "PRelu":
                self.moment(inputs[1], Spread(0.1, 0.3))
            return min(first / 2, 36.0) if kind == "Clip" else first / 2
        if kind in _SUM:
            return sum(self.moment(n, Spread.around(0.0, 0.05 if self.is_vector(n) else 0.2)) for n in inputs)
        if kind == "Mul":
            return first * self.moment(inputs[1], Spread(0.8, 1.2))
        if kind == "Div":
            return first / max(self.moment(inputs[1], Spread(0.8, 1.2)), _LEAST)
        if kind in ("Concat", "Max", "Min", "Mean"):
            moments = [self.moment(name, Spread.around(0.0, 0.5)) for name in inputs if name]
            return sum(moments) / len(moments)
        if kind == "Softmax":
            return 1.0 / max(self.shapes.get(inputs[0], (1,))[-1], 1) ** 2
        if kind in ("Sigmoid", "HardSigmoid"):
            return 0.3
        if kind in ("Tanh", "Softsign"):
            return first / (1 + first)
        if kind in _POOLING:
            return 0.65 * first
        if kind == "MaxPool":
            return 1.5 * first
        if kind in ("Gather", "GatherND", "Embedding"):
            return self.moment(inputs[0], _UNIT)
        for name in inputs[1:]:
            if name:
                self.moment(name, Spread.around(0.0, 0.5))
        return first

    def is_vector(self, name: str) -> bool:
        return sum(d > 1 for d in self.shapes.get(name, ())) <= 1


_LAYOUT = frozenset({"Transpose", "Reshape", "Identity", "Unsqueeze", "Squeeze", "Flatten", "Cast", "Expand"})
_UNIT = Spread.around(0.0, 1.0)
