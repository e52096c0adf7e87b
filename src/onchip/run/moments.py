"""The magnitude of every value of a network: mean and variance, from the graph alone.

Seeded weights have to keep a deep network's values in range and its output dependent on its input. That needs
the second moment E[x^2] of each weight's operand: for zero-mean independent weights of variance s^2,
a sum over `fan_in` products has the second moment fan_in * s^2 * E[x^2] whatever the input's distribution
(He et al. 2015, eq. 6-10). E[x^2] is followed through the graph instead of assumed to halve at each ReLU,
because residual sums, concats, gates and poolings would drift otherwise. The estimates need not be sharp:
every seeded weight divides by the estimate before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

__all__ = ["Moments", "Spread", "follow"]

_RECTIFIERS = frozenset(
    {"Relu", "LeakyRelu", "Elu", "Celu", "Selu", "Gelu", "HardSwish", "Mish", "PRelu", "Clip", "Swish"}
)
_NORMS = frozenset({"LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization"})
_LAYOUT = frozenset({"Transpose", "Reshape", "Identity", "Unsqueeze", "Squeeze", "Flatten", "Cast", "Expand"})
_MOST, _LEAST = 1e6, 1e-6
"""The limits of second moments, so that one unusual operator cannot make a weight zero or infinite."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean and variance over a value's elements."""

    mean: float
    variance: float

    @property
    def second(self) -> float:
        """E[x^2]."""
        return min(max(self.variance + self.mean**2, _LEAST), _MOST)

    @classmethod
    def of(cls, mean: float, second: float) -> Moments:
        """Return the moments for a mean and E[x^2]."""
        return cls(mean, max(second - mean**2, 0.0))

    def rectified(self) -> Moments:
        """Return the moments of max(x, 0), if x is normal."""
        deviation = math.sqrt(max(self.variance, _LEAST))
        ratio = self.mean / deviation
        density = math.exp(-ratio * ratio / 2) / math.sqrt(2 * math.pi)
        above = (1 + math.erf(ratio / math.sqrt(2))) / 2
        mean = self.mean * above + deviation * density
        return Moments.of(mean, self.second * above + self.mean * deviation * density)

    def gated(self) -> Moments:
        """Return the moments of x sigmoid(x), if x is normal: the gate follows what it gates."""
        deviation = math.sqrt(max(self.variance, _LEAST))
        steps = [(i + 0.5) / 16 - 4 for i in range(128)]
        weights = [math.exp(-z * z / 2) for z in steps]
        values = [
            x / (1 + math.exp(-max(min(x, 60.0), -60.0))) for x in (self.mean + deviation * z for z in steps)
        ]
        total = sum(weights)
        mean = sum(w * y for w, y in zip(weights, values, strict=True)) / total
        return Moments.of(mean, sum(w * y * y for w, y in zip(weights, values, strict=True)) / total)


@dataclass(frozen=True, slots=True)
class Spread:
    """The range that a seeded weight is drawn from, uniformly."""

    low: float
    high: float

    @classmethod
    def around(cls, centre: float, deviation: float) -> Spread:
        """Return the uniform range with this mean and standard deviation."""
        half = 3**0.5 * deviation
        return cls(centre - half, centre + half)

    @property
    def moments(self) -> Moments:
        return Moments((self.low + self.high) / 2, (self.high - self.low) ** 2 / 12)


_UNIT = Spread.around(0.0, 1.0)
_GAIN = Spread(0.8, 1.2)
_OFFSET = Spread.around(0.0, 0.05)
_OTHER = Spread.around(0.0, 0.5)


def follow(
    graph: onnx.GraphProto,
    placeholders: Mapping[str, tuple[int, ...]],
    known: Mapping[str, Moments],
    shapes: Mapping[str, tuple[int, ...]],
) -> dict[str, Spread]:
    """Return a spread for every placeholder (name to shape), by one walk over the nodes.

    `known` are the moments of constants that have data; `shapes` those of any values known. A placeholder's
    first reader in the graph's order decides its spread; layout operators pass it on.
    """
    walk = _Walk(placeholders, known, shapes)
    for node in graph.node:
        walk.visit(node)
    return {name: walk.spreads.get(name, _OTHER) for name in placeholders}


class _Walk:
    def __init__(
        self,
        placeholders: Mapping[str, tuple[int, ...]],
        known: Mapping[str, Moments],
        shapes: Mapping[str, tuple[int, ...]],
    ) -> None:
        self.found: dict[str, Moments] = dict(known)
        self.shapes = {**shapes, **placeholders}
        self.origin = {name: name for name in placeholders}  # value -> the placeholder it is a layout of
        self.spreads: dict[str, Spread] = {}
        self.gates: dict[str, str] = {}
        """The operand of every sigmoid, by its result."""

    def visit(self, node: onnx.NodeProto) -> None:
        inputs = list(node.input)
        if node.op_type in _LAYOUT and inputs[0] in self.origin and node.output[0] not in self.origin:
            self.origin[node.output[0]] = self.origin[inputs[0]]
            if node.op_type == "Transpose" and node.output[0] not in self.shapes:
                self.shapes[node.output[0]] = self.shapes[inputs[0]][::-1]
            return
        if node.op_type in ("Sigmoid", "HardSigmoid"):
            self.gates[node.output[0]] = inputs[0]
        moments = self.output(node, inputs)
        for name in node.output:
            if name not in self.origin:  # a constant-fill node's output is itself a placeholder
                self.found.setdefault(name, moments)

    def of(self, name: str, default: Spread) -> Moments:
        """Return the moments of an operand; an undecided placeholder takes `default`."""
        if name in self.origin:
            return self.spreads.setdefault(self.origin[name], default).moments
        return self.found.get(name, _UNIT.moments)

    def output(self, node: onnx.NodeProto, inputs: list[str]) -> Moments:
        """Return the moments of a node's outputs, and decide its placeholders."""
        kind = node.op_type
        if kind in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
            return self.product(node, inputs)
        if not inputs or not inputs[0]:
            return _UNIT.moments
        if kind in ("Add", "Sub", "Sum", "Concat", "Max", "Min", "Mean"):
            return self.combined(kind, inputs)
        x = self.of(inputs[0], _UNIT if kind == "Gather" else _OTHER)
        if kind == "BatchNormalization":
            return self.batch_norm(x, *inputs[1:5])
        if kind in _NORMS:
            gain = self.of(inputs[1], _GAIN).second if len(inputs) > 1 else 1.0
            return Moments(0.0, gain + sum(self.of(name, _OFFSET).second for name in inputs[2:3] if name))
        if kind in ("LSTM", "GRU", "RNN"):
            for name in inputs[1:3]:
                fan_in = max(self.shapes.get(name, (1,))[-1], 1)
                self.of(name, Spread.around(0.0, fan_in**-0.5))
            self.rest(inputs[3:], _OFFSET)
            return Moments(0.0, 0.3)
        if kind in ("Mul", "Div") and len(inputs) == 2:
            y = self.of(inputs[1], _GAIN)
            if kind == "Mul" and self.gates.get(inputs[1]) == inputs[0]:
                return x.gated()
            if kind == "Mul" and self.gates.get(inputs[0]) == inputs[1]:
                return y.gated()
            if kind == "Mul":
                return Moments.of(x.mean * y.mean, x.second * y.second)
            return Moments.of(x.mean / math.sqrt(y.second), x.second / y.second)
        self.rest(inputs[1:], Spread(0.1, 0.3) if kind == "PRelu" else _OTHER)
        return self.activation(node, inputs, x)

    def rest(self, names: list[str], default: Spread) -> None:
        for name in names:
            if name:
                self.of(name, default)

    def product(self, node: onnx.NodeProto, inputs: list[str]) -> Moments:
        """Return the moments of a sum of products; an operand without data makes its variance 1."""
        open_ = [i for i in (1, 0) if inputs[i] in self.origin and self.origin[inputs[i]] not in self.spreads]
        bias = inputs[2] if len(inputs) > 2 else ""
        offset = self.of(bias, Spread.around(0.0, 0.02)).second if bias else 0.0
        fan_in = self.fan_in(node, inputs)
        if not open_:
            return Moments(
                0.0, fan_in * self.of(inputs[0], _UNIT).second * self.of(inputs[1], _UNIT).second + offset
            )
        # A bias from the file must not dominate the part that depends on the input.
        target = 1.0 + 4.0 * offset if offset > 0.01 else 1.0
        other = self.of(inputs[1 - open_[0]], _UNIT).second
        self.of(inputs[open_[0]], Spread.around(0.0, math.sqrt(target / (fan_in * other))))
        return Moments(0.0, target + offset)

    def fan_in(self, node: onnx.NodeProto, inputs: list[str]) -> int:
        """Return how many products one output element sums."""
        weight = self.shapes.get(inputs[1], ())
        attributes = {a.name: a.i for a in node.attribute if a.name in ("transA", "transB", "group")}
        if node.op_type == "Conv" and len(weight) > 1:
            return max(math.prod(weight[1:]), 1)
        if node.op_type == "ConvTranspose" and len(weight) > 1:
            strides = next((a.ints for a in node.attribute if a.name == "strides"), [1])
            taps = weight[0] * math.prod(weight[2:]) // max(int(attributes.get("group", 1)), 1)
            return max(taps // max(math.prod(strides), 1), 1)
        if node.op_type == "Gemm" and len(weight) == 2:
            return max(weight[1 if attributes.get("transB") else 0], 1)
        if weight:
            return max(weight[-2] if len(weight) > 1 else weight[0], 1)
        first = self.shapes.get(inputs[0], (1,))
        return max(first[-1] if first else 1, 1)

    def batch_norm(self, x: Moments, scale: str, offset: str, mean: str, variance: str) -> Moments:
        gain, shift = self.of(scale, _GAIN), self.of(offset, _OFFSET)
        centre = self.of(mean, _OFFSET)
        inverse = math.log(3.0) if variance in self.origin else 1 / max(self.of(variance, _UNIT).mean, 1e-5)
        self.of(variance, Spread(0.5, 1.5))  # where E[1/variance] is log 3
        second = gain.second * inverse * (x.second + centre.second) + shift.second
        return Moments.of(gain.mean * math.sqrt(inverse) * (x.mean - centre.mean) + shift.mean, second)

    def combined(self, kind: str, inputs: list[str]) -> Moments:
        names = [name for name in inputs if name]
        if kind not in ("Add", "Sub", "Sum"):
            parts = [self.of(name, _OTHER) for name in names]
            return Moments.of(
                sum(p.mean for p in parts) / len(parts), sum(p.second for p in parts) / len(parts)
            )
        parts = [self.of(n, _OFFSET if self.is_vector(n) else Spread.around(0.0, 0.2)) for n in names]
        signs = [1] + [-1 if kind == "Sub" else 1] * (len(parts) - 1)
        mean = sum(sign * p.mean for sign, p in zip(signs, parts, strict=True))
        return Moments(mean, sum(p.variance for p in parts))

    def activation(self, node: onnx.NodeProto, inputs: list[str], x: Moments) -> Moments:
        kind = node.op_type
        if kind in _RECTIFIERS:
            y = x.rectified()
            return Moments.of(min(y.mean, 6.0), min(y.second, 36.0)) if kind == "Clip" else y
        if kind == "Softmax":
            mean = 1.0 / max(*self.shapes.get(inputs[0], ())[-1:], 1, 1)
            return Moments(mean, mean**2)
        if kind in ("Sigmoid", "HardSigmoid"):
            return Moments(0.5, 0.04)
        if kind in ("Tanh", "Softsign", "Erf"):
            return Moments.of(0.0, x.second / (1 + x.second))
        if kind == "MaxPool":
            return Moments(x.mean + _above_the_mean(node) * math.sqrt(x.variance), 0.7 * x.variance)
        if kind in ("AveragePool", "GlobalAveragePool", "ReduceMean"):
            return Moments(x.mean, 0.4 * x.variance)
        if kind == "Sqrt":
            return Moments(x.second**0.25, 0.0)
        if kind == "Pow":
            return Moments(x.second, 2 * x.second**2)
        return x

    def is_vector(self, name: str) -> bool:
        return sum(d > 1 for d in self.shapes.get(name, ())) <= 1


def _above_the_mean(pool: onnx.NodeProto) -> float:
    """Return the distance of the largest of a window above the mean, in standard deviations.

    Up to nine neighbours are much alike; of more it is as the largest of as many normal values (Blom 1958).
    """
    size = math.prod(next((a.ints for a in pool.attribute if a.name == "kernel_shape"), ()))
    return 1.0 if size <= 9 else NormalDist().inv_cdf((size - 0.375) / (size + 0.25))
