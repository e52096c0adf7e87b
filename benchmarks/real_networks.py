"""Small networks of float32 for the real run; weights are drawn from a fixed seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from tiled_c_networks import Graph

__all__ = ["REAL"]


class Layer(Graph):
    """A graph of a transformer's parts, over [tokens, width]."""

    def gelu(self, x: str) -> str:
        erf = self.add("Erf", [self.add("Mul", [x, self.constant(np.array(0.5**0.5, np.float32))])])
        half = self.add("Mul", [x, self.constant(np.array(0.5, np.float32))])
        return self.add("Mul", [half, self.add("Add", [erf, self.constant(np.array(1.0, np.float32))])])

    def attend(self, x: str, size: int, heads: int, tokens: int) -> str:
        """Attention over all tokens, and the product behind it."""
        made = self.attention(*(self.linear(x, size, size) for _ in range(3)), tokens, heads, size // heads)
        return self.linear(made, size, size)


def mlp(tokens: int = 96, size: int = 128, inner: int = 384) -> onnx.ModelProto:
    g = Graph(1)
    h = g.add("Relu", [g.linear("x", size, inner)])
    h = g.add("Relu", [g.linear(h, inner, size)])
    return g.model([tokens, size], g.linear(h, size, 64))


def gated(tokens: int = 64, size: int = 128, inner: int = 352) -> onnx.ModelProto:
    """The gated product of a Llama's layer."""
    g = Graph(2)
    one, two = (g.add("MatMul", ["x", g.weight(size, inner)]) for _ in range(2))
    h = g.add("Mul", [g.silu(one), two])
    return g.model([tokens, size], g.add("Add", ["x", g.add("MatMul", [h, g.weight(inner, size)])]))


def attention(tokens: int = 96, size: int = 128, heads: int = 2) -> onnx.ModelProto:
    g = Layer(3)
    return g.model([1, tokens, size], g.add("Add", ["x", g.attend("x", size, heads, tokens)]))


def transformer(tokens: int = 64, size: int = 128, heads: int = 2) -> onnx.ModelProto:
    """A layer of a transformer, a norm before each half."""
    g = Layer(4)
    x = g.add("Add", ["x", g.attend(g.norm("x", size), size, heads, tokens)])
    h = g.gelu(g.linear(g.norm(x, size), size, 4 * size))
    return g.model([1, tokens, size], g.add("Add", [x, g.linear(h, 4 * size, size)]))


def mobilenet(side: int = 28, size: int = 48, wide: int = 192) -> onnx.ModelProto:
    """A block of MobileNetV2: wider, depthwise, narrower, and the sum with what came in."""
    g = Graph(5)
    h = g.add("Relu", [g.conv("x", size, wide, 1)])
    h = g.add("Relu", [g.conv(h, wide, wide, 3, groups=wide)])
    return g.model([1, size, side, side], g.add("Add", ["x", g.conv(h, wide, size, 1)]))


def resnet(side: int = 28, size: int = 64) -> onnx.ModelProto:
    """A block of ResNet: two convolutions of 3 x 3, and the sum with what came in."""
    g = Graph(6)
    h = g.add("Relu", [g.conv("x", size, size)])
    return g.model([1, size, side, side], g.add("Relu", [g.add("Add", ["x", g.conv(h, size, size)])]))


def separable(side: int = 32, size: int = 64) -> onnx.ModelProto:
    """Three depthwise convolutions, each with a product behind it, as in MobileNetV1."""
    g, x = Graph(7), "x"
    for _ in range(3):
        x = g.add("Relu", [g.conv(x, size, size, 3, groups=size)])
        x = g.add("Relu", [g.conv(x, size, size, 1)])
    return g.model([1, size, side, side], x)


def unet(side: int = 32, size: int = 32) -> onnx.ModelProto:
    """The end of a U-Net: a map joined with one from before it, two convolutions, and one of 1 x 1."""
    g = Graph(8)
    skip = g.add("Relu", [g.conv("x", size, size)])
    deep = g.add("Relu", [g.conv(skip, size, size)])
    x = g.add("Relu", [g.conv(g.add("Concat", [deep, skip], axis=1), 2 * size, size)])
    return g.model([1, size, side, side], g.conv(x, size, 16, 1))


def decode(size: int = 256, heads: int = 4, inner: int = 704) -> onnx.ModelProto:
    """The products of one token's step through a layer: those of attention's ends, and a gated one."""
    g = Graph(9)
    x = g.add("MatMul", ["x", g.weight(size, size)])
    x = g.add("Add", ["x", g.add("MatMul", [x, g.weight(size, size)])])
    gate = g.silu(g.add("MatMul", [x, g.weight(size, inner)]))
    h = g.add("Mul", [gate, g.add("MatMul", [x, g.weight(size, inner)])])
    return g.model([1, size], g.add("Add", [x, g.add("MatMul", [h, g.weight(inner, size)])]))


def fire(side: int = 32, size: int = 96, squeezed: int = 32) -> onnx.ModelProto:
    """A fire module of SqueezeNet."""
    g = Graph(10)
    x = g.add("Relu", [g.conv("x", size, squeezed, 1)])
    one, two = (g.add("Relu", [g.conv(x, squeezed, 64, kernel)]) for kernel in (1, 3))
    return g.model([1, size, side, side], g.add("Concat", [one, two], axis=1))


REAL: dict[str, tuple[Callable[[], onnx.ModelProto], int]] = {
    "MLP": (mlp, 128),
    "gated product": (gated, 128),
    "attention": (attention, 128),
    "transformer layer": (transformer, 160),
    "MobileNetV2 block": (mobilenet, 128),
    "ResNet block": (resnet, 160),
    "separable convolutions": (separable, 160),
    "end of a U-Net": (unet, 160),
    "step of a decoder": (decode, 128),
    "fire module": (fire, 160),
}
"""The networks by name, and the KiB of scratchpad that each is planned for."""
