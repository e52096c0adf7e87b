"""Small quantised ONNX files: floats between conversions (QDQ), or operators on integers."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]


class Net:
    """A file under construction; every value has a scale and bytes of the type of `unsigned`."""

    def __init__(self, seed: int = 0, *, unsigned: bool = False, integers: bool = False) -> None:
        self.random = np.random.default_rng(seed)
        self.unsigned, self.integers = unsigned, integers
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.steps: dict[str, tuple[str, str, float]] = {}
        """Of each value its scale, its zero point, and the scale as a number."""
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def constant(self, values: Any) -> str:
        name = self.name()
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def conversion(self, scale: float, zero: int) -> tuple[str, str, float]:
        zero_point = np.uint8(zero + 128) if self.unsigned else np.int8(zero)
        return self.constant(np.float32(scale)), self.constant(zero_point), float(np.float32(scale))

    def op(self, kind: str, inputs: list[str], domain: str = "", **attributes: Any) -> str:
        out = self.name()
        self.nodes.append(helper.make_node(kind, inputs, [out], domain=domain, **attributes))
        return out

    def quantised(self, value: str, scale: float, zero: int = 0) -> str:
        """Quantise floats and return them dequantised; `steps` knows their scale."""
        steps = self.conversion(scale, zero)
        stored = self.op("QuantizeLinear", [value, *steps[:2]])
        made = self.op("DequantizeLinear", [stored, *steps[:2]])
        self.steps[made] = steps
        return made

    def held(self, values: Array, scales: Any, axis: int = 0) -> list[str]:
        """A constant of integers: its bytes, scales and zero points."""
        single = np.ndim(scales) == 0
        zeros = np.zeros((() if single else len(scales)), values.dtype)
        return [self.constant(values), self.constant(np.asarray(scales, np.float32)), self.constant(zeros)]

    def summed(
        self,
        kind: str,
        x: str,
        weights: Array,
        out: float,
        zero: int,
        *,
        relu: bool = False,
        **attributes: Any,
    ) -> str:
        """An operator with weights: a scale for each channel, biases on the scale of the sums."""
        channels = weights.shape[0]
        scales = self.random.uniform(0.005, 0.01, channels).astype(np.float32)
        bias = self.random.integers(-900, 900, channels).astype(np.int32)
        kernel = self.held(weights, scales)
        of_sums = (scales * np.float32(self.steps[x][2])).astype(np.float32)
        if self.integers and kind == "Conv" and not relu:
            steps = self.conversion(out, zero)
            stored = self.op("QuantizeLinear", [x, *self.steps[x][:2]])
            inputs = [stored, *self.steps[x][:2], *kernel, *steps[:2], self.constant(bias)]
            made = self.op("DequantizeLinear", [self.op("QLinearConv", inputs, **attributes), *steps[:2]])
            self.steps[made] = steps
            return made
        w = self.op("DequantizeLinear", kernel, axis=0)
        b = self.op("DequantizeLinear", self.held(bias, of_sums), axis=0)
        y = self.op(kind, [x, w, b], **attributes)
        return self.quantised(self.op("Relu", [y]) if relu else y, out, zero)

    def kernel(self, *shape: int) -> Array:
        return self.random.integers(-127, 128, shape).astype(np.int8)

    def conv(
        self, x: str, inputs: int, outputs: int, size: int = 1, *, groups: int = 1, **attributes: Any
    ) -> str:
        weights = self.kernel(outputs, inputs // groups, size, size)
        taps = prod(weights.shape[1:])
        scale = self.steps[x][2] * 0.0075 * 73 * 74 * np.sqrt(taps) / 40
        pads = [size // 2] * 4
        return self.summed("Conv", x, weights, scale, 3, group=groups, pads=pads, **attributes)

    def file(self, output: str, shape: tuple[int, ...]) -> bytes:
        out = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        given = helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "net", [given], [out], self.weights)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        content: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
        return content


SHAPE = (1, 3, 9, 8)


def network(net: Net) -> bytes:
    """Convolutions, pools, sums, joins, a resize and a classifier, on maps with channels first."""
    x = net.quantised("image", 1 / 128, -3)
    x = net.conv(x, 3, 6, 3, strides=[2, 2], relu=True)
    y = net.conv(net.conv(x, 6, 6, 3, groups=6), 6, 6)
    total = net.quantised(net.op("Add", [x, y]), net.steps[x][2] + net.steps[y][2], 5)
    most = net.quantised(
        net.op("MaxPool", [total], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), net.steps[total][2], 5
    )
    mean = net.op("AveragePool", [most], kernel_shape=[2, 2], strides=[1, 1])
    mean = net.quantised(mean, net.steps[most][2], 5)
    share = net.quantised(net.op("Sigmoid", [net.conv(mean, 6, 6, 1)]), 1 / 256, -128)
    scaled = net.quantised(net.op("Mul", [mean, share]), net.steps[mean][2], 0)
    both = net.quantised(net.op("Concat", [scaled, mean], axis=1), net.steps[mean][2] * 1.2, 0)
    sizes = net.constant(np.array([1, 12, 8, 6], np.int64))
    how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    large = net.op("Resize", [both, "", "", sizes], **how)
    large = net.quantised(large, net.steps[both][2], 0)
    flat = net.op("Flatten", [net.op("GlobalAveragePool", [large])])
    flat = net.quantised(flat, net.steps[large][2] / 2, 0)
    scale = net.steps[flat][2] * 0.0075 * 73 * 40 * np.sqrt(12) / 40
    logits = net.summed("Gemm", flat, net.kernel(5, 12), scale, 0, transB=1)
    return net.file(logits, SHAPE)
