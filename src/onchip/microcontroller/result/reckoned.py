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
)
from onchip.microcontroller.int8.move import Move
from onchip.microcontroller.int8.reduce import Reduce
from onchip.microcontroller.int8.shapes import macs
from onchip.microcontroller.int8.sixteen.softmax import Softmax16, SoftmaxTo16
from onchip.microcontroller.int8.svdf import SvdfState, SvdfSum
from onchip.microcontroller.int8.transpose_conv import TransposeConv
from onchip.microcontroller.result.reckoned_sixteen import features_of_sixteen, kind_of_sixteen

__all__ = ["FITTED", "UNSEEN", "features", "kind_of", "reckoned_instructions"]

FITTED: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "cortex-m0plus": {
        "bent line of 16": (15.42, 0.0, 208.7),
        "conv": (4.528, 45.46, 59.56, 3.981, 2.755, 0.0, 30.68, 7.321),
        "depthwise": (12.42, 44.86, 291.3),
        "depthwise, multiplied": (21.08, 0.0),
        "extreme": (8.814,),
        "extreme of 16": (8.697,),
        "filter sums": (7.857, 95.06),
        "filters": (4.684, 7.971),
        "fully connected": (4.124, 43.25, 292.0),
        "greatest": (8.755, 49.09),
        "greatest of 16": (10.43, 0.0),
        "line of 16": (16.81, 0.0, 0.0),
        "line of 16 and 8": (29.0, 0.0, 712.5),
        "log softmax": (139.4, 0.0),
        "matrices": (19.33, 0.0),
        "mean": (7.675, 99.66),
        "mean of 16": (27.38, 0.0),
        "move": (1.886,),
        "move apart": (0.7344, 9.782, 87.29),
        "product": (54.0,),
        "product of 16": (41.49,),
        "recurrent": (4.143, 710.0),
        "reduce": (0.0, 77.1),
        "sigmoid of 16": (25.11,),
        "softmax": (69.85, 642.1),
        "softmax of 16": (68.09, 257.6),
        "sum": (118.6,),
        "sum of 16": (33.78, 12.65, 11.04, 0.0),
        "sum of 16 and constants": (47.56, 0.0, 20.26, 0.0),
        "sums of 16": (19.97, 17.18, 10.93, 51.5, 0.0, 402.9),
        "sums of 16, long": (82.9, 0.0),
        "sums of 16, of 32 bits": (0.0, 84.7, 28.21, 0.0, 0.0, 3525.0),
        "table": (8.304,),
        "tanh of 16": (17.47,),
        "transposed": (9.266, 278.2),
        "transposed of 16": (24.11, 0.0, 0.0, 103.8, 0.0, 118.3),
    },
    "cortex-m3": {
        "bent line of 16": (6.971, 0.0, 108.9),
        "conv": (2.061, 7.985, 0.0, 1.113, 0.0, 2.032, 24.09, 3.09),
        "depthwise": (5.354, 13.63, 2208.0),
        "depthwise, multiplied": (10.38, 0.0),
        "extreme": (6.819,),
        "extreme of 16": (3.675,),
        "filter sums": (4.608, 21.25),
        "filters": (2.699, 1.016),
        "fully connected": (2.338, 12.4, 174.5),
        "greatest": (5.073, 15.41),
        "greatest of 16": (0.0, 47.29),
        "line of 16": (6.427, 0.0, 0.0),
        "line of 16 and 8": (16.8, 0.0, 391.8),
        "log softmax": (58.34, 0.0),
        "matrices": (9.312, 0.0),
        "mean": (2.925, 25.14),
        "mean of 16": (7.119, 0.0),
        "move": (1.355,),
        "move apart": (0.5553, 4.007, 41.83),
        "product": (25.58,),
        "product of 16": (7.191,),
        "recurrent": (2.325, 311.9),
        "reduce": (1.372, 33.38),
        "sigmoid of 16": (14.06,),
        "softmax": (29.2, 178.5),
        "softmax of 16": (26.22, 218.7),
        "sum": (51.05,),
        "sum of 16": (6.452, 3.212, 0.0, 73.77),
        "sum of 16 and constants": (10.89, 0.0, 24.16, 0.0),
        "sums of 16": (8.455, 2.54, 1.233, 12.18, 9.139, 3.383),
        "sums of 16, long": (17.19, 0.0),
        "sums of 16, of 32 bits": (0.0, 37.59, 2.983, 0.0, 0.0, 748.9),
        "table": (5.366,),
        "tanh of 16": (12.27,),
        "transposed": (8.231, 0.0),
        "transposed of 16": (9.325, 0.0, 0.0, 27.87, 2.643, 21.7),
    },
    "cortex-m4": {
        "bent line of 16": (6.317, 0.0, 82.92),
        "conv": (1.387, 8.407, 3.4, 0.8765, 0.2244, 0.0, 21.64, 2.309),
        "depthwise": (3.574, 12.2, 1243.0),
        "depthwise, multiplied": (10.38, 0.0),
        "extreme": (2.072,),
        "extreme of 16": (3.675,),
        "filter sums": (2.822, 19.57),
        "filters": (1.731, 1.009),
        "fully connected": (1.396, 8.816, 123.1),
        "greatest": (1.876, 9.635),
        "greatest of 16": (5.254, 0.0),
        "line of 16": (5.476, 0.0, 0.0),
        "line of 16 and 8": (14.83, 0.0, 387.2),
        "log softmax": (58.32, 0.0),
        "matrices": (9.314, 0.0),
        "mean": (1.447, 24.82),
        "mean of 16": (7.099, 0.0),
        "move": (1.323,),
        "move apart": (0.5205, 4.21, 43.32),
        "product": (21.7,),
        "product of 16": (7.188,),
        "recurrent": (1.425, 281.8),
        "reduce": (0.572, 42.44),
        "sigmoid of 16": (14.56,),
        "softmax": (29.2, 178.5),
        "softmax of 16": (26.23, 218.4),
        "sum": (43.77,),
        "sum of 16": (4.927, 2.072, 0.0, 167.4),
        "sum of 16 and constants": (8.706, 0.0, 13.13, 0.0),
        "sums of 16": (4.456, 4.304, 0.2058, 7.154, 11.71, 0.0),
        "sums of 16, long": (16.64, 0.0),
        "sums of 16, of 32 bits": (0.0, 30.07, 0.0, 0.0, 3.696, 352.8),
        "table": (5.366,),
        "tanh of 16": (12.31,),
        "transposed": (8.146, 0.0),
        "transposed of 16": (5.636, 0.0, 0.0, 39.35, 1.817, 21.78),
    },
    "cortex-m7": {
        "bent line of 16": (6.316, 0.0, 83.99),
        "conv": (1.415, 8.783, 5.024, 0.6876, 0.4691, 0.0, 22.63, 2.055),
        "depthwise": (3.69, 11.96, 1124.0),
        "depthwise, multiplied": (10.94, 0.0),
        "extreme": (2.072,),
        "extreme of 16": (3.675,),
        "filter sums": (2.712, 23.24),
        "filters": (1.731, 1.011),
        "fully connected": (1.396, 8.811, 122.6),
        "greatest": (1.876, 9.114),
        "greatest of 16": (5.254, 0.0),
        "line of 16": (5.478, 0.0, 0.0),
        "line of 16 and 8": (14.86, 0.0, 543.3),
        "log softmax": (61.35, 0.0),
        "matrices": (9.444, 0.0),
        "mean": (1.447, 24.82),
        "mean of 16": (7.12, 0.0),
        "move": (1.32,),
        "move apart": (0.5196, 4.202, 43.9),
        "product": (21.66,),
        "product of 16": (7.189,),
        "recurrent": (1.524, 246.1),
        "reduce": (1.024, 37.0),
        "sigmoid of 16": (15.06,),
        "softmax": (32.54, 172.7),
        "softmax of 16": (27.92, 155.0),
        "sum": (43.75,),
        "sum of 16": (4.693, 2.287, 0.0, 211.5),
        "sum of 16 and constants": (8.706, 0.0, 13.13, 0.0),
        "sums of 16": (4.456, 4.311, 0.1982, 7.111, 11.73, 0.0),
        "sums of 16, long": (16.37, 0.0),
        "sums of 16, of 32 bits": (0.0, 30.4, 0.0, 0.0, 1.88, 419.5),
        "table": (5.366,),
        "tanh of 16": (11.9,),
        "transposed": (8.179, 0.0),
        "transposed of 16": (5.536, 0.0, 0.0, 31.85, 6.166, 26.59),
    },
    "cortex-m33": {
        "bent line of 16": (6.317, 0.0, 83.92),
        "conv": (1.386, 8.338, 3.18, 0.8864, 0.2309, 0.0, 21.63, 2.328),
        "depthwise": (3.506, 11.64, 1528.0),
        "depthwise, multiplied": (10.35, 0.0),
        "extreme": (2.072,),
        "extreme of 16": (3.675,),
        "filter sums": (2.847, 18.74),
        "filters": (1.733, 1.012),
        "fully connected": (1.392, 9.31, 114.5),
        "greatest": (1.876, 9.614),
        "greatest of 16": (0.0, 47.29),
        "line of 16": (5.478, 0.0, 0.0),
        "line of 16 and 8": (14.81, 0.0, 389.6),
        "log softmax": (58.34, 0.0),
        "matrices": (9.312, 0.0),
        "mean": (1.447, 24.75),
        "mean of 16": (7.119, 0.0),
        "move": (1.355,),
        "move apart": (0.5553, 4.007, 41.83),
        "product": (21.66,),
        "product of 16": (7.189,),
        "recurrent": (1.428, 281.3),
        "reduce": (1.372, 33.38),
        "sigmoid of 16": (14.06,),
        "softmax": (29.2, 178.5),
        "softmax of 16": (26.22, 218.7),
        "sum": (43.76,),
        "sum of 16": (4.93, 2.069, 0.0, 167.9),
        "sum of 16 and constants": (8.706, 0.0, 13.13, 0.0),
        "sums of 16": (4.458, 4.306, 0.2306, 6.933, 11.69, 0.0),
        "sums of 16, long": (16.59, 0.0),
        "sums of 16, of 32 bits": (0.0, 30.25, 0.0, 0.0, 2.849, 367.6),
        "table": (5.366,),
        "tanh of 16": (12.27,),
        "transposed": (8.231, 0.0),
        "transposed of 16": (5.598, 0.0, 0.0, 44.06, 0.913, 0.0),
    },
    "cortex-m55": {
        "bent line of 16": (6.316, 0.0, 83.04),
        "conv": (0.0, 4.82, 0.7041, 0.1033, 0.729, 2.268, 19.64, 0.6363),
        "depthwise": (1.276, 3.352, 865.3),
        "depthwise, multiplied": (11.06, 0.0),
        "extreme": (0.6632,),
        "extreme of 16": (0.4133,),
        "filter sums": (2.983, 17.96),
        "filters": (0.376, 1.02),
        "fully connected": (0.1519, 4.59, 94.54),
        "greatest": (0.3214, 2.377),
        "greatest of 16": (5.258, 0.0),
        "line of 16": (4.487, 0.0, 0.0),
        "line of 16 and 8": (11.82, 0.0, 396.6),
        "log softmax": (60.53, 0.0),
        "matrices": (9.813, 0.0),
        "mean": (0.4374, 7.811),
        "mean of 16": (7.128, 0.0),
        "move": (0.714,),
        "move apart": (0.2037, 6.369, 23.86),
        "product": (5.076,),
        "product of 16": (1.138,),
        "recurrent": (0.1404, 294.8),
        "reduce": (0.02604, 48.77),
        "sigmoid of 16": (14.05,),
        "softmax": (30.33, 187.2),
        "softmax of 16": (27.23, 231.0),
        "sum": (6.254,),
        "sum of 16": (1.387, 0.441, 0.0, 44.26),
        "sum of 16 and constants": (8.581, 0.0, 15.13, 0.0),
        "sums of 16": (1.03, 1.048, 1.474, 9.126, 9.161, 0.0),
        "sums of 16, long": (15.63, 0.0),
        "sums of 16, of 32 bits": (0.5205, 0.0, 10.72, 0.0, 35.41, 0.0),
        "table": (0.406,),
        "tanh of 16": (12.73,),
        "transposed": (7.107, 19.21),
        "transposed of 16": (0.0, 5.015, 0.0, 2.636, 13.44, 137.7),
    },
    "rv32imc": {
        "bent line of 16": (11.69, 0.0, 133.4),
        "conv": (2.43, 15.55, 18.09, 7.069, 0.0, 13.24, 0.0, 8.165),
        "depthwise": (7.176, 29.64, 0.0),
        "depthwise, multiplied": (11.28, 0.0),
        "extreme": (5.453,),
        "extreme of 16": (8.182,),
        "filter sums": (6.496, 27.23),
        "filters": (3.691, 4.462),
        "fully connected": (3.769, 0.0, 156.6),
        "greatest": (2.945, 14.78),
        "greatest of 16": (5.933, 0.0),
        "line of 16": (12.4, 0.0, 0.0),
        "line of 16 and 8": (19.18, 0.0, 494.4),
        "log softmax": (54.64, 0.0),
        "matrices": (10.22, 0.0),
        "mean": (2.625, 20.21),
        "mean of 16": (7.676, 0.0),
        "move": (1.88,),
        "move apart": (0.6524, 13.66, 62.45),
        "product": (25.04,),
        "product of 16": (15.2,),
        "recurrent": (3.477, 404.3),
        "reduce": (0.0, 37.15),
        "sigmoid of 16": (19.57,),
        "softmax": (29.39, 186.7),
        "softmax of 16": (35.01, 139.4),
        "sum": (52.03,),
        "sum of 16": (11.6, 6.98, 9.584, 421.0),
        "sum of 16 and constants": (18.25, 0.0, 10.38, 0.0),
        "sums of 16": (10.9, 20.71, 2.102, 29.32, 0.1812, 177.7),
        "sums of 16, long": (24.1, 0.0),
        "sums of 16, of 32 bits": (0.0, 67.48, 4.089, 0.0, 0.0, 793.9),
        "table": (5.496,),
        "tanh of 16": (16.38,),
        "transposed": (9.321, 73.1),
        "transposed of 16": (15.89, 0.0, 0.0, 53.88, 0.0, 54.66),
    },
}
"""By core and kind of layer, the instructions of each of its `features`."""

UNSEEN: Mapping[str, float] = {
    "cortex-m0plus": 0.10,
    "cortex-m3": 0.15,
    "cortex-m4": 0.13,
    "cortex-m7": 0.12,
    "cortex-m33": 0.16,
    "cortex-m55": 0.28,
    "rv32imc": 0.23,
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
    Softmax16: "softmax of 16",
}


def kind_of(layer: Layer) -> str:
    """Return the kind by which the layer's instructions are reckoned."""
    if kind := kind_of_sixteen(layer):
        return kind
    if isinstance(layer, Depthwise) and layer.depth_multiplier > 1:
        return "depthwise, multiplied"
    return next((_KINDS[kind] for kind in type(layer).__mro__ if kind in _KINDS), "sum")


def features(layer: Layer) -> tuple[int, ...]:
    """Return what the instructions of the layer's kind are counted by."""
    if kind_of_sixteen(layer):
        return features_of_sixteen(layer)
    _, rows, columns, channels = layer.output_shape
    pixels, made = rows * columns, rows * columns * channels
    match layer:
        case Conv():
            products, made, pixels, window, short, runs = _convolved(layer, pixels)
            lines = layer.kernel[0]
            in_short = pixels * lines if short else 0
            return products, made, pixels, window, short, runs, in_short, made * lines
        case Depthwise():
            taps = _taps(layer) * channels
            return (taps, made) if layer.depth_multiplier > 1 else (taps, made, 1)
        case FullyConnected():
            return macs(layer), made, 1
        case TransposeConv():
            return prod(layer.input_shapes[0][1:3]) * layer.weights.size, made
        case MatMul():
            return layer.batches * layer.rows * layer.inner * layer.columns, made
        case Lstm():
            each = sum(gate.weights.size + gate.recurrent.size for gate in layer.gates)
            return layer.steps * each, layer.steps * layer.units
        case SvdfState() | SvdfSum():
            return layer.weights.size, made
        case AveragePool() | MaxPool():
            return made * prod(layer.kernel), made
        case Mean():
            return made * layer.count, made
        case Reduce():
            return made * len(layer.inner), made
        case Softmax() | SoftmaxTo16() | LogSoftmax() | Softmax16():
            return made, pixels
        case Move():
            return made, pixels, rows
        case Own():
            return (max(made, *(prod(shape) for shape in layer.input_shapes)),)
    return (made,)


def _convolved(layer: Conv, pixels: int) -> tuple[int, int, int, int, int, int]:
    """Return products, outputs, pixels, places of windows, those of short lines, and runs of sixteen."""
    out, rows, columns, depth = layer.weights.shape
    line, made = columns * depth, pixels * out
    run = rows * line
    window = pixels * run * layer.groups if (rows, columns) != (1, 1) else 0
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
