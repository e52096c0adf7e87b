"""Small networks for the C of tiled plans: blocks of transformers, a U-Net, a detector, a quantised one.

Weights are drawn from a fixed seed. The quantised network has scales that are powers of two, so that every
sum in it is exact, in whichever order it is added up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

__all__ = ["NETWORKS"]

Array = np.ndarray[Any, Any]


class Graph:
    """Nodes and weights so far; every method adds a node and returns its result."""

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def add(self, op: str, inputs: Sequence[str], **settings: Any) -> str:
        made = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [made], name=made, **settings))
        return made

    def constant(self, value: Array) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def weight(self, *shape: int) -> str:
        fan = int(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
        return self.constant((self.draw.standard_normal(shape) / np.sqrt(fan)).astype(np.float32))

    def vector(self, size: int, around: float = 0.0) -> str:
        return self.constant((around + 0.1 * self.draw.standard_normal(size)).astype(np.float32))

    def shape(self, *sizes: int) -> str:
        return self.constant(np.array(sizes, np.int64))

    def conv(
        self, x: str, inside: int, outside: int, kernel: int = 3, stride: int = 1, groups: int = 1
    ) -> str:
        w = self.weight(outside, inside // groups, kernel, kernel)
        pads = [kernel // 2] * 4
        return self.add(
            "Conv", [x, w, self.vector(outside)], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads,
            group=groups,
        )  # fmt: skip

    def silu(self, x: str) -> str:
        return self.add("Mul", [x, self.add("Sigmoid", [x])])

    def linear(self, x: str, inside: int, outside: int) -> str:
        return self.add("Add", [self.add("MatMul", [x, self.weight(inside, outside)]), self.vector(outside)])

    def norm(self, x: str, size: int) -> str:
        return self.add("LayerNormalization", [x, self.vector(size, 1.0), self.vector(size)], axis=-1)

    def attention(self, q: str, k: str, v: str, rows: int, heads: int, size: int, mask: str = "") -> str:
        """Attention in parts over [1, rows, heads * size]."""

        def split(x: str, order: Sequence[int]) -> str:
            apart = self.add("Reshape", [x, self.shape(1, rows, heads, size)])
            return self.add("Transpose", [apart], perm=list(order))

        scores = self.add("MatMul", [split(q, (0, 2, 1, 3)), split(k, (0, 2, 3, 1))])
        scores = self.add("Mul", [scores, self.constant(np.array(size**-0.5, np.float32))])
        if mask:
            scores = self.add("Add", [scores, mask])
        weighed = self.add("MatMul", [self.add("Softmax", [scores], axis=-1), split(v, (0, 2, 1, 3))])
        return self.add(
            "Reshape",
            [self.add("Transpose", [weighed], perm=[0, 2, 1, 3]), self.shape(1, rows, heads * size)],
        )

    def model(self, shape: Sequence[int], result: str, opset: int = 17) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "made",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)],
            self.weights,
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
        return shape_inference.infer_shapes(made, strict_mode=True)


def transformer(rows: int = 64, size: int = 64, heads: int = 4) -> onnx.ModelProto:
    """A ViT's or BERT's block: attention and two products with an erf between, a norm before each."""
    g = Graph(1)
    h = g.norm("x", size)
    made = g.attention(*(g.linear(h, size, size) for _ in range(3)), rows, heads, size // heads)
    x = g.add("Add", ["x", g.linear(made, size, size)])
    h = g.linear(g.norm(x, size), size, 4 * size)
    erf = g.add("Erf", [g.add("Mul", [h, g.constant(np.array(0.5**0.5, np.float32))])])
    half = g.add("Mul", [h, g.constant(np.array(0.5, np.float32))])
    h = g.add("Mul", [half, g.add("Add", [erf, g.constant(np.array(1.0, np.float32))])])
    return g.model([1, rows, size], g.add("Add", [x, g.linear(h, 4 * size, size)]))


def llama(rows: int = 48, size: int = 64, heads: int = 4) -> onnx.ModelProto:
    """A Llama's block: root-mean-square norms, turned pairs, a causal mask, a gated product."""
    g = Graph(2)
    each = size // heads
    angle = np.outer(np.arange(rows), 10000.0 ** (-np.arange(0, each, 2) / each))
    cos = g.constant(np.tile(np.cos(angle), (1, 2 * heads)).astype(np.float32)[None])
    sin = g.constant(np.tile(np.sin(angle), (1, 2 * heads)).astype(np.float32)[None])
    mask = g.constant(np.triu(np.full((rows, rows), -1e9, np.float32), 1)[None, None])

    def norm(x: str) -> str:
        mean = g.add("ReduceMean", [g.add("Mul", [x, x])], axes=[-1], keepdims=1)
        root = g.add("Sqrt", [g.add("Add", [mean, g.constant(np.array(1e-5, np.float32))])])
        return g.add("Mul", [g.add("Div", [x, root]), g.vector(size, 1.0)])

    def turned(x: str) -> str:
        apart = g.add("Reshape", [x, g.shape(1, rows, heads, 2, each // 2)])
        first = g.add("Slice", [apart, g.shape(0), g.shape(1), g.shape(3)])
        second = g.add("Slice", [apart, g.shape(1), g.shape(2), g.shape(3)])
        swapped = g.add("Concat", [g.add("Neg", [second]), first], axis=3)
        swapped = g.add("Reshape", [swapped, g.shape(1, rows, size)])
        return g.add("Add", [g.add("Mul", [x, cos]), g.add("Mul", [swapped, sin])])

    h = norm("x")
    q, k, v = (g.add("MatMul", [h, g.weight(size, size)]) for _ in range(3))
    made = g.attention(turned(q), turned(k), v, rows, heads, each, mask)
    x = g.add("Add", ["x", g.add("MatMul", [made, g.weight(size, size)])])
    h = norm(x)
    gate = g.silu(g.add("MatMul", [h, g.weight(size, 3 * size)]))
    h = g.add("Mul", [gate, g.add("MatMul", [h, g.weight(size, 3 * size)])])
    return g.model([1, rows, size], g.add("Add", [x, g.add("MatMul", [h, g.weight(3 * size, size)])]))


def unet(side: int = 48) -> onnx.ModelProto:
    """Three scales down and up again, with the maps of the way down beside those of the way up."""
    g = Graph(3)
    x, kept, inside = "x", [], 3
    for size in (8, 16):
        x = g.add("Relu", [g.conv(x, inside, size)])
        x = g.add("Relu", [g.conv(x, size, size)])
        kept.append((x, size))
        x, inside = g.add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2]), size
    x = g.add("Relu", [g.conv(x, inside, 32)])
    inside = 32
    for skip, size in reversed(kept):
        w, bias = g.weight(inside, size, 2, 2), g.vector(size)
        up = g.add("ConvTranspose", [x, w, bias], kernel_shape=[2, 2], strides=[2, 2])
        x = g.add("Concat", [up, skip], axis=1)
        x = g.add("Relu", [g.conv(x, 2 * size, size)])
        inside = size
    return g.model([1, 3, side, side], g.conv(x, inside, 4, 1))


def yolo(side: int = 64) -> onnx.ModelProto:
    """A detector: halves beside each other, pools of several sizes, a map made larger, two heads."""
    g = Graph(4)

    def step(x: str, inside: int, outside: int, kernel: int = 3, stride: int = 1) -> str:
        return g.silu(g.conv(x, inside, outside, kernel, stride))

    def halves(x: str, size: int) -> str:
        x = step(x, size, size, 1)
        first = g.add("Slice", [x, g.shape(0), g.shape(size // 2), g.shape(1)])
        second = g.add("Slice", [x, g.shape(size // 2), g.shape(size), g.shape(1)])
        deep = g.add("Add", [second, step(step(second, size // 2, size // 2), size // 2, size // 2)])
        return step(g.add("Concat", [first, second, deep], axis=1), size + size // 2, size, 1)

    x = step("x", 3, 8, 3, 2)
    x = halves(step(x, 8, 16, 3, 2), 16)
    fine = halves(step(x, 16, 32, 3, 2), 32)
    x = halves(step(fine, 32, 64, 3, 2), 64)
    x = step(x, 64, 32, 1)
    pools = [x]
    for _ in range(3):
        pools.append(g.add("MaxPool", [pools[-1]], kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4))
    x = step(g.add("Concat", pools, axis=1), 128, 64, 1)
    up = g.add("Resize", [x, "", g.constant(np.array([1, 1, 2, 2], np.float32))], mode="nearest",
               coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    near = step(g.add("Concat", [up, fine], axis=1), 96, 32, 1)
    heads = []
    for map_, size, rows in ((near, 32, side // 8), (x, 64, side // 16)):
        made = g.conv(step(map_, size, size), size, 12, 1)
        heads.append(g.add("Reshape", [made, g.shape(1, 12, rows * rows)]))
    return g.model([1, 3, side, side], g.add("Concat", heads, axis=2))


def quantised(side: int = 48) -> onnx.ModelProto:
    """A MobileNet of int8 between `QuantizeLinear` and `DequantizeLinear`, every scale a power of two."""
    g = Graph(5)
    zero = g.constant(np.array(0, np.int8))

    def to_int8(x: str, power: int) -> str:
        scale = g.constant(np.array(2.0**power, np.float32))
        return g.add("DequantizeLinear", [g.add("QuantizeLinear", [x, scale, zero]), scale, zero])

    def conv(x: str, inside: int, outside: int, kernel: int, stride: int = 1, groups: int = 1) -> str:
        fan = inside // groups * kernel**2
        weights = g.draw.integers(-127, 128, (outside, inside // groups, kernel, kernel)).astype(np.int8)
        power = int(np.round(np.log2(1.5 / (73 * np.sqrt(fan)))))
        w = g.add(
            "DequantizeLinear", [g.constant(weights), g.constant(np.array(2.0**power, np.float32)), zero]
        )
        bias = g.draw.integers(-500, 500, outside).astype(np.int32)
        scale = g.constant(np.array(2.0 ** (power - 5), np.float32))
        b = g.add("DequantizeLinear", [g.constant(bias), scale])
        return g.add("Conv", [x, w, b], kernel_shape=[kernel] * 2, strides=[stride] * 2,
                     pads=[kernel // 2] * 4, group=groups)  # fmt: skip

    def relu(x: str) -> str:
        return to_int8(g.add("Relu", [x]), -5)

    x = relu(conv(to_int8("x", -5), 3, 16, 3, 2))
    inside = 16
    for outside, stride in ((16, 1), (24, 2), (24, 1), (32, 2), (32, 1)):
        wide = relu(conv(x, inside, 4 * inside, 1))
        deep = relu(conv(wide, 4 * inside, 4 * inside, 3, stride, 4 * inside))
        made = to_int8(conv(deep, 4 * inside, outside, 1), -5)
        if stride == 1 and inside == outside:
            made = to_int8(g.add("Add", [x, made]), -5)
        x, inside = made, outside
    x = relu(conv(x, inside, 64, 1))
    x = to_int8(g.add("GlobalAveragePool", [x]), -5)
    x = g.add("Flatten", [x])
    weights = g.constant(g.draw.integers(-127, 128, (64, 1000)).astype(np.int8))
    w = g.add("DequantizeLinear", [weights, g.constant(np.array(2.0**-9, np.float32)), zero])
    return g.model([1, 3, side, side], to_int8(g.add("MatMul", [x, w]), -4))


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "transformer block": transformer,
    "Llama block": llama,
    "U-Net": unet,
    "detector": yolo,
    "quantised MobileNet": quantised,
}
"""The networks of this page by name."""
