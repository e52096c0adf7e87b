"""Instructions of a network, reckoned from its layers' shapes: for machines without a cross compiler.

For each kind of layer so many instructions a product, a byte made and a pixel. The numbers are fitted to
counts on the emulated cores by `benchmarks/mcu_fitted.py`, which prints how far they are off.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from onchip.microcontroller.int8.log_softmax import LogSoftmax
from onchip.microcontroller.int8.lookup_two import LookupTwo
from onchip.microcontroller.int8.lstm import Lstm
from onchip.microcontroller.int8.matmul import MatMul
from onchip.microcontroller.int8.model import (
    AveragePool,
    Concat,
    Conv,
    Depthwise,
    Extremum,
    FullyConnected,
    Int8Model,
    Layer,
    MaxPool,
    Mean,
    Mul,
    Own,
    Pad,
    PReLU,
    Resize,
    Softmax,
    Table,
    macs,
)
from onchip.microcontroller.int8.move import Move
from onchip.microcontroller.int8.reduce import Reduce
from onchip.microcontroller.int8.sixteen.elements import Curve16, Linear16, Pair16
from onchip.microcontroller.int8.sixteen.pools import Pool16
from onchip.microcontroller.int8.sixteen.softmax import Softmax16, SoftmaxTo16
from onchip.microcontroller.int8.sixteen.sums import Sums16, TransposeConv16
from onchip.microcontroller.int8.svdf import SvdfState, SvdfSum
from onchip.microcontroller.int8.transpose_conv import TransposeConv

__all__ = ["FITTED", "UNSEEN", "features", "kind_of", "reckoned_instructions"]

FITTED: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "cortex-m0plus": {
        "conv": (4.415, 54.96, 0.0, 3.48, 32.1, 4.15, 63.88),
        "curve of 16": (20.71,),
        "depthwise": (12.42, 44.86, 291.3),
        "depthwise, multiplied": (6.534, 60.58),
        "extreme": (8.814,),
        "filter sums": (7.857, 95.06),
        "filters": (5.179, 7.499),
        "fully connected": (4.656, 50.75, 186.6),
        "greatest": (8.755, 49.09),
        "line of 16": (16.55,),
        "log softmax": (139.4, 0.0),
        "matrices": (19.33, 0.0),
        "mean": (7.675, 99.66),
        "move": (1.886,),
        "move apart": (1.278, 5.54),
        "pool of 16": (0.0, 96.61),
        "product": (54.0,),
        "product of 16": (41.48,),
        "recurrent": (6.219, 414.1),
        "reduce": (0.0, 77.09),
        "softmax": (75.14, 631.5),
        "softmax of 16": (72.96, 0.0),
        "sum": (118.6,),
        "sum of 16": (14.85,),
        "sums of 16": (4.984, 78.23, 0.0, 28.63),
        "table": (8.304,),
        "transposed": (9.266, 278.2),
        "transposed of 16": (6.211, 20.34),
    },
    "cortex-m3": {
        "conv": (1.913, 9.612, 0.0, 0.6366, 0.0, 5.233, 64.51),
        "curve of 16": (13.12,),
        "depthwise": (5.354, 13.63, 2208.0),
        "depthwise, multiplied": (7.087, 23.01),
        "extreme": (6.819,),
        "filter sums": (4.608, 21.25),
        "filters": (3.032, 1.03),
        "fully connected": (2.524, 12.17, 141.2),
        "greatest": (5.073, 15.41),
        "line of 16": (6.973,),
        "log softmax": (58.34, 0.0),
        "matrices": (9.312, 0.0),
        "mean": (2.925, 25.14),
        "move": (1.355,),
        "move apart": (1.068, 1.285),
        "pool of 16": (3.762, 13.52),
        "product": (25.58,),
        "product of 16": (7.185,),
        "recurrent": (2.607, 283.9),
        "reduce": (1.372, 33.38),
        "softmax": (30.94, 175.0),
        "softmax of 16": (30.95, 0.0),
        "sum": (51.05,),
        "sum of 16": (5.444,),
        "sums of 16": (2.042, 17.73, 0.0, 4.463),
        "table": (5.366,),
        "transposed": (8.231, 0.0),
        "transposed of 16": (2.283, 10.97),
    },
    "cortex-m4": {
        "conv": (1.394, 10.75, 0.0, 1.123, 0.0, 0.0, 49.46),
        "curve of 16": (13.37,),
        "depthwise": (3.574, 12.2, 1243.0),
        "depthwise, multiplied": (3.46, 28.47),
        "extreme": (2.072,),
        "filter sums": (2.822, 19.57),
        "filters": (1.731, 1.009),
        "fully connected": (1.396, 8.816, 123.1),
        "greatest": (1.876, 9.635),
        "line of 16": (6.045,),
        "log softmax": (58.32, 0.0),
        "matrices": (9.314, 0.0),
        "mean": (1.447, 24.82),
        "move": (1.323,),
        "move apart": (1.072, 1.331),
        "pool of 16": (3.78, 13.36),
        "product": (21.7,),
        "product of 16": (7.184,),
        "recurrent": (1.425, 281.8),
        "reduce": (0.572, 42.44),
        "softmax": (30.94, 175.0),
        "softmax of 16": (30.95, 0.0),
        "sum": (43.77,),
        "sum of 16": (4.975,),
        "sums of 16": (1.179, 19.68, 0.0, 3.06),
        "table": (5.366,),
        "transposed": (8.146, 0.0),
        "transposed of 16": (1.342, 13.6),
    },
    "cortex-m7": {
        "conv": (1.422, 10.92, 0.0, 0.9203, 0.0, 0.0, 50.73),
        "curve of 16": (13.33,),
        "depthwise": (3.69, 11.96, 1124.0),
        "depthwise, multiplied": (3.45, 28.97),
        "extreme": (2.072,),
        "filter sums": (2.712, 23.24),
        "filters": (1.731, 1.011),
        "fully connected": (1.396, 8.811, 122.6),
        "greatest": (1.876, 9.114),
        "line of 16": (6.091,),
        "log softmax": (61.35, 0.0),
        "matrices": (9.444, 0.0),
        "mean": (1.447, 24.82),
        "move": (1.32,),
        "move apart": (1.073, 1.3),
        "pool of 16": (3.762, 13.53),
        "product": (21.66,),
        "product of 16": (7.184,),
        "recurrent": (1.524, 246.1),
        "reduce": (1.024, 37.0),
        "softmax": (34.47, 168.8),
        "softmax of 16": (31.13, 0.0),
        "sum": (43.75,),
        "sum of 16": (4.975,),
        "sums of 16": (1.181, 19.6, 0.0, 3.014),
        "table": (5.366,),
        "transposed": (8.179, 0.0),
        "transposed of 16": (1.346, 13.06),
    },
    "cortex-m33": {
        "conv": (1.393, 10.69, 0.0, 1.135, 0.0, 0.0, 49.8),
        "curve of 16": (13.12,),
        "depthwise": (3.506, 11.64, 1528.0),
        "depthwise, multiplied": (3.46, 28.44),
        "extreme": (2.072,),
        "filter sums": (2.847, 18.74),
        "filters": (1.733, 1.012),
        "fully connected": (1.392, 9.31, 114.5),
        "greatest": (1.876, 9.614),
        "line of 16": (6.045,),
        "log softmax": (58.34, 0.0),
        "matrices": (9.312, 0.0),
        "mean": (1.447, 24.75),
        "move": (1.355,),
        "move apart": (1.068, 1.285),
        "pool of 16": (3.762, 13.52),
        "product": (21.66,),
        "product of 16": (7.184,),
        "recurrent": (1.428, 281.3),
        "reduce": (1.372, 33.38),
        "softmax": (30.94, 175.0),
        "softmax of 16": (30.95, 0.0),
        "sum": (43.76,),
        "sum of 16": (4.975,),
        "sums of 16": (1.18, 19.65, 0.0, 3.044),
        "table": (5.366,),
        "transposed": (8.231, 0.0),
        "transposed of 16": (1.365, 12.31),
    },
    "cortex-m55": {
        "conv": (0.0, 5.533, 0.1098, 0.1989, 1.96, 2.264, 9.682),
        "curve of 16": (13.37,),
        "depthwise": (1.276, 3.352, 865.3),
        "depthwise, multiplied": (3.585, 31.12),
        "extreme": (0.6632,),
        "filter sums": (2.983, 17.96),
        "filters": (0.376, 1.02),
        "fully connected": (0.1519, 4.59, 94.54),
        "greatest": (0.3214, 2.377),
        "line of 16": (5.134,),
        "log softmax": (60.53, 0.0),
        "matrices": (9.813, 0.0),
        "mean": (0.443, 7.667),
        "move": (0.7389,),
        "move apart": (0.2559, 8.335),
        "pool of 16": (3.763, 13.55),
        "product": (5.076,),
        "product of 16": (1.13,),
        "recurrent": (0.1404, 294.8),
        "reduce": (0.02604, 48.77),
        "softmax": (32.93, 181.9),
        "softmax of 16": (32.22, 0.0),
        "sum": (6.254,),
        "sum of 16": (0.6821,),
        "sums of 16": (0.185, 12.51, 0.0, 4.556),
        "table": (0.406,),
        "transposed": (7.107, 19.21),
        "transposed of 16": (0.2616, 12.59),
    },
    "rv32imc": {
        "conv": (2.375, 24.29, 0.0, 9.903, 0.0, 14.24, 49.75),
        "curve of 16": (17.86,),
        "depthwise": (7.176, 29.64, 0.0),
        "depthwise, multiplied": (4.11, 32.89),
        "extreme": (5.453,),
        "filter sums": (6.496, 27.23),
        "filters": (3.669, 4.465),
        "fully connected": (3.769, 0.0, 157.9),
        "greatest": (2.945, 14.78),
        "line of 16": (12.05,),
        "log softmax": (54.64, 0.0),
        "matrices": (10.22, 0.0),
        "mean": (2.625, 20.21),
        "move": (3.435,),
        "move apart": (1.286, 0.0),
        "pool of 16": (4.54, 12.56),
        "product": (25.04,),
        "product of 16": (15.19,),
        "recurrent": (3.467, 410.7),
        "reduce": (0.0, 37.15),
        "softmax": (31.3, 182.8),
        "softmax of 16": (37.88, 0.0),
        "sum": (52.03,),
        "sum of 16": (11.47,),
        "sums of 16": (3.709, 31.97, 0.0, 7.258),
        "table": (5.496,),
        "transposed": (9.321, 73.1),
        "transposed of 16": (3.965, 15.59),
    },
}
"""By core and kind of layer, the instructions of each of its `features`."""

UNSEEN: Mapping[str, float] = {
    "cortex-m0plus": 0.21,
    "cortex-m3": 0.11,
    "cortex-m4": 0.11,
    "cortex-m7": 0.10,
    "cortex-m33": 0.14,
    "cortex-m55": 0.34,
    "rv32imc": 0.25,
}
"""By core, the share of the counted instructions within which nine in ten networks were reckoned, each by
numbers fitted to all the others."""


def reckoned_instructions(model: Int8Model, core: str) -> int | None:
    """Return the instructions of one inference, layer by layer.

    None for a core, or a kind of layer on it, that was never counted.
    """
    fitted = FITTED.get(core, {})
    total = 0.0
    for layer in model.layers:
        each = fitted.get(kind_of(layer))
        if each is None:
            return None
        total += sum(n * times for n, times in zip(each, features(layer), strict=True))
    return round(total)


_KINDS: Mapping[type[Layer], str] = {
    Conv: "conv",
    Depthwise: "depthwise",
    FullyConnected: "fully connected",
    AveragePool: "mean",
    Mean: "mean",
    MaxPool: "greatest",
    Softmax: "softmax",
    SoftmaxTo16: "softmax",
    Mul: "product",
    PReLU: "product",
    Extremum: "extreme",
    Table: "table",
    LookupTwo: "table of two",
    Pad: "move",
    Concat: "move",
    Resize: "move",
    Move: "move apart",
    Reduce: "reduce",
    LogSoftmax: "log softmax",
    TransposeConv: "transposed",
    MatMul: "matrices",
    Lstm: "recurrent",
    SvdfState: "filters",
    SvdfSum: "filter sums",
    Sums16: "sums of 16",
    TransposeConv16: "transposed of 16",
    Linear16: "line of 16",
    Curve16: "curve of 16",
    Softmax16: "softmax of 16",
    Pool16: "pool of 16",
}


def kind_of(layer: Layer) -> str:
    """Return the kind by which the layer's instructions are reckoned."""
    if isinstance(layer, Pair16):
        return "product of 16" if layer.does == "mul" else "sum of 16"
    if isinstance(layer, Depthwise) and layer.depth_multiplier > 1:
        return "depthwise, multiplied"
    return next((_KINDS[kind] for kind in type(layer).__mro__ if kind in _KINDS), "sum")


def features(layer: Layer) -> tuple[int, ...]:
    """Return what the instructions of the layer's kind are counted by."""
    _, rows, columns, channels = layer.output_shape
    pixels, made = rows * columns, rows * columns * channels
    match layer:
        case Conv():
            products, made, pixels, window, short, runs = _convolved(layer, layer.groups, pixels)
            return products, made, pixels, window, short, runs, pixels * layer.kernel[0] if short else 0
        case Sums16():
            return _convolved(layer, layer.groups, pixels)[:4]
        case Depthwise():
            taps = _taps(layer) * channels
            return (taps, made) if layer.depth_multiplier > 1 else (taps, made, 1)
        case FullyConnected():
            return macs(layer), made, 1
        case TransposeConv() | TransposeConv16():
            return prod(layer.input_shapes[0][1:3]) * layer.weights.size, made
        case MatMul():
            return layer.batches * layer.rows * layer.inner * layer.columns, made
        case Lstm():
            each = sum(gate.weights.size + gate.recurrent.size for gate in layer.gates)
            return layer.steps * each, layer.steps * layer.units
        case SvdfState() | SvdfSum():
            return layer.weights.size, made
        case AveragePool() | MaxPool() | Pool16():
            return made * prod(layer.kernel), made
        case Mean():
            return made * layer.count, made
        case Reduce():
            return made * len(layer.inner), made
        case Softmax() | SoftmaxTo16() | LogSoftmax() | Softmax16():
            return made, pixels
        case Move():
            return made, pixels
        case Own():
            return (max(made, *(prod(shape) for shape in layer.input_shapes)),)
    return (made,)


def _convolved(layer: Conv | Sums16, groups: int, pixels: int) -> tuple[int, int, int, int, int, int]:
    """Return products, outputs, pixels, places of windows, those of short lines, and runs of sixteen."""
    out, rows, columns, depth = layer.weights.shape
    line, made = columns * depth, pixels * out
    run = rows * line
    window = pixels * run * groups if (rows, columns) != (1, 1) else 0
    short = window if line < 16 else 0  # such lines are gathered, or end in part of a vector
    return pixels * layer.weights.size, made, pixels, window, short, made * -(-run // 16)


def _taps(layer: Depthwise) -> int:
    """Return the taps inside the map, of all pixels together: its kernel skips the others."""
    _, height, width, _ = layer.input_shapes[0]
    _, rows, columns, _ = layer.output_shape
    top, left, _, _ = layer.padding

    def inside(size: int, made: int, axis: int, before: int) -> int:
        kernel, stride, apart = layer.kernel[axis], layer.stride[axis], layer.dilation[axis]
        return sum(
            0 <= o * stride - before + tap * apart < size for o in range(made) for tap in range(kernel)
        )

    return inside(height, rows, 0, top) * inside(width, columns, 1, left)
