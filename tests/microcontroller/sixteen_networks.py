"""Small networks of 16-bit numbers with 8-bit weights (16x8), their scales such that no layer saturates."""

from __future__ import annotations

from collections.abc import Callable
from math import prod, sqrt
from typing import Any

import numpy as np

from onchip.microcontroller.made.flatbuffer import FileOperator, FileTensor, write

SPREAD = 12_000
"""About how far the numbers of a map lie from 0."""


class Net:
    """A file under construction: tensors by number."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.tensors: list[FileTensor] = []
        self.operators: list[FileOperator] = []
        self.inputs: list[int] = []

    def tensor(
        self,
        shape: tuple[int, ...],
        scale: float = 0.0,
        element: str = "INT16",
        zero: int = 0,
        data: Any = None,
    ) -> int:
        scales = (float(np.float32(scale)),) if scale else ()
        name = f"t{len(self.tensors)}"
        self.tensors.append(FileTensor(name, shape, element, data, scales, (zero,) if scale else ()))
        return len(self.tensors) - 1

    def input(
        self, shape: tuple[int, ...], scale: float = 1e-4, element: str = "INT16", zero: int = 0
    ) -> int:
        self.inputs.append(self.tensor(shape, scale, element, zero))
        return self.inputs[-1]

    def whole(self, values: Any) -> int:
        data = np.asarray(values, np.int32)
        return self.tensor(data.shape, element="INT32", data=data)

    def scale(self, t: int) -> float:
        return self.tensors[t].scales[0]

    def shape(self, t: int) -> tuple[int, ...]:
        return self.tensors[t].shape

    def op(
        self,
        kind: str,
        inputs: tuple[int, ...],
        shape: tuple[int, ...],
        scale: float,
        table: str = "",
        **options: Any,
    ) -> int:
        out = self.tensor(shape, scale)
        self.operators.append(FileOperator(kind, inputs, (out,), table, options))
        return out

    def weights(self, shape: tuple[int, ...], axis: int, x: int, bias: str) -> tuple[tuple[int, int], float]:
        """Add weights and biases; return them, and a scale that the sums spread on."""
        channels, taps = shape[axis], prod(shape) // shape[axis]
        scales = [float(np.float32(s)) for s in self.random.uniform(0.005, 0.02, channels)]
        data = self.random.integers(-127, 128, shape).astype(np.int8)
        zeros = (0,) * channels
        self.tensors.append(
            FileTensor(f"t{len(self.tensors)}", shape, "INT8", data, tuple(scales), zeros, axis)
        )
        moved = self.random.integers(-(1 << 20), 1 << 20, channels).astype(
            np.int64 if bias == "INT64" else np.int32
        )
        of_sums = tuple(float(np.float32(s * self.scale(x))) for s in scales)
        self.tensors.append(FileTensor(f"t{len(self.tensors)}", (channels,), bias, moved, of_sums, zeros))
        out = self.scale(x) * 0.02 * 19_000 * 73 * sqrt(taps) / SPREAD
        return (len(self.tensors) - 2, len(self.tensors) - 1), out

    def window(self, kernel: int, stride: int, same: bool, activation: int) -> dict[str, int]:
        one = {"Padding": 0 if same else 1, "StrideH": stride, "StrideW": stride}
        return {**one, "FusedActivationFunction": activation}

    def slid(self, x: int, kernel: int, stride: int, same: bool) -> tuple[int, int]:
        _, rows, columns, _ = self.shape(x)
        fit = [-(-n // stride) if same else (n - kernel) // stride + 1 for n in (rows, columns)]
        return fit[0], fit[1]

    def conv(
        self,
        x: int,
        channels: int,
        kernel: int = 1,
        stride: int = 1,
        *,
        same: bool = True,
        activation: int = 0,
        bias: str = "INT64",
        groups: int = 1,
    ) -> int:
        held, scale = self.weights((channels, kernel, kernel, self.shape(x)[3] // groups), 0, x, bias)
        shape = (1, *self.slid(x, kernel, stride, same), channels)
        options = {
            **self.window(kernel, stride, same, activation),
            "DilationHFactor": 1,
            "DilationWFactor": 1,
        }
        return self.op("CONV_2D", (x, *held), shape, scale, "Conv2DOptions", **options)

    def depthwise(self, x: int, kernel: int = 3, stride: int = 1, *, times: int = 1) -> int:
        channels = self.shape(x)[3] * times
        held, scale = self.weights((1, kernel, kernel, channels), 3, x, "INT64")
        options = {**self.window(kernel, stride, True, 0), "DilationHFactor": 1, "DilationWFactor": 1}
        options["DepthMultiplier"] = times
        shape = (1, *self.slid(x, kernel, stride, True), channels)
        return self.op("DEPTHWISE_CONV_2D", (x, *held), shape, scale, "DepthwiseConv2DOptions", **options)

    def fully_connected(self, x: int, outputs: int, bias: str = "INT64") -> int:
        inputs = prod(self.shape(x))
        data = self.random.integers(-127, 128, (outputs, inputs)).astype(np.int8)
        w = self.tensor((outputs, inputs), 0.01, "INT8", data=data)
        moved = self.random.integers(-9999, 9999, outputs).astype(np.int64 if bias == "INT64" else np.int32)
        b = self.tensor((outputs,), self.scale(w) * self.scale(x), bias, data=moved)
        scale = self.scale(x) * self.scale(w) * 19_000 * 73 * sqrt(inputs) / SPREAD
        options = {"FusedActivationFunction": 0}
        return self.op("FULLY_CONNECTED", (x, w, b), (1, outputs), scale, "FullyConnectedOptions", **options)

    def transpose_conv(self, x: int, channels: int, kernel: int, stride: int) -> int:
        held, scale = self.weights((channels, kernel, kernel, self.shape(x)[3]), 0, x, "INT64")
        _, rows, columns, _ = self.shape(x)
        shape = (1, rows * stride, columns * stride, channels)
        options = self.window(kernel, stride, True, 0)
        inputs = (self.whole(shape), held[0], x, held[1])
        return self.op("TRANSPOSE_CONV", inputs, shape, scale, "TransposeConvOptions", **options)

    def pool(self, kind: str, x: int, kernel: int, stride: int, *, same: bool = False) -> int:
        options = {**self.window(kernel, stride, same, 0), "FilterHeight": kernel, "FilterWidth": kernel}
        shape = (1, *self.slid(x, kernel, stride, same), self.shape(x)[3])
        return self.op(kind, (x,), shape, self.scale(x), "Pool2DOptions", **options)

    def pair(self, kind: str, x: int, y: int) -> int:
        table = "MaximumMinimumOptions" if kind in ("MAXIMUM", "MINIMUM") else f"{kind.capitalize()}Options"
        a, b = self.scale(x), self.scale(y)
        scale = {"MUL": a * b * SPREAD, "ADD": (a + b) * 0.8, "SUB": (a + b) * 0.7}.get(kind, a)
        options = {} if kind in ("MAXIMUM", "MINIMUM") else {"FusedActivationFunction": 0}
        return self.op(kind, (x, y), max(self.shape(x), self.shape(y), key=prod), scale, table, **options)

    def constant(self, shape: tuple[int, ...], scale: float) -> int:
        data = self.random.integers(-(1 << 15), 1 << 15, shape).astype(np.int16)
        return self.tensor(shape, scale, data=data)

    def single(self, kind: str, x: int, scale: float, table: str = "", **options: Any) -> int:
        return self.op(kind, (x,), self.shape(x), scale, table, **options)

    def to(self, x: int, element: str, scale: float, zero: int = 0) -> int:
        out = self.tensor(self.shape(x), scale, element, zero)
        self.operators.append(FileOperator("QUANTIZE", (x,), (out,), "QuantizeOptions"))
        return out

    def moved(
        self, kind: str, x: int, shape: tuple[int, ...], *settings: Any, table: str = "", **options: Any
    ) -> int:
        held = tuple(self.whole(values) for values in settings)
        return self.op(kind, (x, *held), shape, self.scale(x), table, **options)

    def file(self, *outputs: int) -> bytes:
        return write(self.tensors, self.operators, self.inputs, outputs)


def everything(n: Net) -> list[int]:
    """All of the networks below in one file, so that one program is built for all."""
    return [end for make in SIXTEEN.values() for end in make(n)]


def classifier(n: Net) -> list[int]:
    x = n.conv(n.input((1, 9, 8, 3)), 6, 3, 2, activation=1)
    x = n.conv(n.depthwise(x, times=2), 8, activation=3)
    x = n.depthwise(n.conv(x, 8, 3, same=False), 3)
    x = n.pool("AVERAGE_POOL_2D", x, 2, 1, same=True)
    x = n.fully_connected(x, 7)
    beta = 1 / (SPREAD * n.scale(x))
    return [n.single("SOFTMAX", x, 1 / 32768, "SoftmaxOptions", Beta=beta)]


def sums_of_32_bits(n: Net) -> list[int]:
    x = n.conv(n.input((1, 5, 6, 4)), 6, 3, bias="INT32")
    return [n.fully_connected(n.conv(x, 4, groups=2, bias="INT32"), 5, "INT32")]


def pairs(n: Net) -> list[int]:
    x, y = n.input((1, 4, 5, 6)), n.input((1, 4, 5, 6), 7e-5)
    total = n.pair("ADD", x, y)
    apart = n.pair("SUB", total, n.constant((1, 1, 1, 6), 2e-4))
    times = n.pair("MUL", apart, n.constant((1, 4, 5, 6), 1e-4))
    mean = n.moved("MEAN", times, (1, 1, 1, 6), (1, 2), table="ReducerOptions", KeepDims=1)
    share = n.pair("SUB", n.constant((1, 1, 1, 1), 1e-4), n.pair("MUL", times, mean))
    z = n.to(y, "INT16", 1e-4)
    return [n.pair("MINIMUM", n.pair("MAXIMUM", x, z), n.constant((1, 1, 1, 6), 1e-4)), share]


def curves(n: Net) -> list[int]:
    x = n.input((1, 6, 7, 4), 3e-4)
    ends = [n.single("LOGISTIC", x, 1 / 32768), n.single("TANH", x, 1 / 32768)]
    y = n.to(x, "INT16", 2.0**-12)
    ends += [n.single("LOGISTIC", y, 1 / 32768), n.single("TANH", y, 1 / 32768)]
    ends += [n.single("LEAKY_RELU", x, 2.5e-4, "LeakyReluOptions", Alpha=0.3)]
    ends += [n.single("RELU", x, 3.1e-4), n.single("RELU6", x, n.scale(x))]
    return ends


def in_and_out_of_bytes(n: Net) -> list[int]:
    x = n.to(n.input((1, 3, 4, 6), 0.03, "INT8", -5), "INT16", 2e-4)
    y = n.to(n.conv(x, 5), "INT8", 0.5, 7)
    out = n.tensor((1, 3, 4, 5), 2.0**-16, zero=-32768)
    n.operators.append(FileOperator("SOFTMAX", (y,), (out,), "SoftmaxOptions", {"Beta": 0.1}))
    return [n.to(out, "INT8", 1 / 256, -128), y]


def moves(n: Net) -> list[int]:
    x = n.conv(n.input((1, 5, 6, 3)), 4)
    wide = n.moved("PAD", x, (1, 7, 9, 5), ((0, 0), (1, 1), (2, 1), (0, 1)), table="PadOptions")
    cut = n.moved("STRIDED_SLICE", wide, (1, 3, 8, 4), (0, 0, 1, 0), (1, 6, 9, 4), (1, 2, 1, 1),
                  table="StridedSliceOptions")  # fmt: skip
    turned = n.moved("TRANSPOSE", cut, (1, 8, 3, 4), (0, 2, 1, 3), table="TransposeOptions")
    flat = n.moved("RESHAPE", turned, (1, 6, 4, 4), (1, 6, 4, 4), table="ReshapeOptions")
    large, other = (
        n.moved("RESIZE_NEAREST_NEIGHBOR", m, (1, 6, 8, 4), (6, 8), table="ResizeNearestNeighborOptions")
        for m in (flat, x)
    )
    pair = (large, n.to(other, "INT16", n.scale(large)))
    both = n.op("CONCATENATION", pair, (1, 6, 8, 8), n.scale(large), "ConcatenationOptions", Axis=3)
    up = n.transpose_conv(n.pool("MAX_POOL_2D", both, 2, 2), 3, 3, 2)
    total = n.op("SUM", (up, n.whole((1, 3))), (1, 1, 8, 1), n.scale(up) * 9, "ReducerOptions", KeepDims=1)
    return [up, total]


SIXTEEN: dict[str, Callable[[Net], list[int]]] = {
    "classifier": classifier,
    "sums of 32 bits": sums_of_32_bits,
    "pairs": pairs,
    "curves": curves,
    "in and out of bytes": in_and_out_of_bytes,
    "moves": moves,
}
