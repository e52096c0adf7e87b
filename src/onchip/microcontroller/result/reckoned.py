"""Instructions of a network, reckoned from its layers' shapes: for machines without a cross compiler.

For each kind of layer so many instructions a product, a byte made and a pixel. The numbers are fitted to
counts on the emulated cores by `benchmarks/mcu_fitted.py`, which prints how far they are off.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

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

__all__ = ["ERROR", "FITTED", "features", "kind_of", "reckoned_instructions"]

FITTED: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "cortex-m3": {
        "conv": (0.0, 10.96, 0.0, 0.0, 5.168, 35.53),
        "depthwise": (7.853, 0.0),
        "mean": (3.036, 21.68),
        "fully connected": (2.471, 26.68),
        "softmax": (46.82, 8.802),
        "sum": (50.7,),
        "table": (6.452,),
        "product": (25.95,),
        "extreme": (6.819,),
        "move": (0.9869,),
        "greatest": (5.095, 15.85),
    },
    "cortex-m4": {
        "fully connected": (1.383, 11.56),
        "conv": (1.366, 11.19, 0.0, 1.55, 4.459, 0.0),
        "depthwise": (3.77, 11.79),
        "mean": (1.501, 22.59),
        "softmax": (45.61, 84.18),
        "sum": (43.83,),
        "table": (6.452,),
        "product": (22.8,),
        "extreme": (2.072,),
        "move": (0.9661,),
        "greatest": (1.945, 9.934),
    },
    "cortex-m7": {
        "conv": (0.0, 16.72, 0.0, 3.203, 0.7074, 20.56),
        "depthwise": (5.682, 0.0),
        "mean": (1.534, 21.4),
        "fully connected": (1.359, 20.18),
        "softmax": (52.33, 0.0),
        "sum": (43.78,),
        "table": (6.449,),
        "product": (22.5,),
        "extreme": (2.072,),
        "move": (0.9639,),
        "greatest": (1.945, 9.434),
    },
    "cortex-m55": {
        "fully connected": (0.1424, 6.739),
        "conv": (0.0, 5.829, 0.0, 0.1377, 2.602, 2.157),
        "depthwise": (0.3236, 11.91),
        "mean": (0.5299, 5.446),
        "softmax": (48.58, 77.4),
        "sum": (5.777,),
        "table": (0.4262,),
        "product": (5.632,),
        "extreme": (0.6632,),
        "move": (0.5407,),
        "greatest": (0.4446, 2.591),
    },
    "rv32imc": {
        "conv": (2.742, 38.27, 0.0, 20.9, 0.0, 1.451),
        "depthwise": (10.82, 0.0),
        "mean": (2.79, 15.27),
        "fully connected": (3.412, 35.23),
        "softmax": (49.9, 22.43),
        "sum": (51.98,),
        "table": (7.354,),
        "product": (25.94,),
        "extreme": (5.453,),
        "move": (3.69,),
        "greatest": (3.007, 15.66),
    },
}
"""By core and kind of layer, the instructions of each of its `features`."""

ERROR = 0.05
"""The most by which a network's reckoned instructions were off, as a share of the counted ones."""


def reckoned_instructions(model: Int8Model, core: str) -> int | None:
    """Return the instructions of one inference, layer by layer; None for a core that was never counted."""
    fitted = FITTED.get(core)
    if fitted is None:
        return None
    total = 0.0
    for layer in model.layers:
        each = fitted[kind_of(layer)]
        total += sum(n * times for n, times in zip(each, features(layer), strict=True))
    return round(total)


def kind_of(layer: Layer) -> str:
    """Return the kind by which the layer's instructions are reckoned."""
    match layer:
        case Conv():
            return "conv"
        case Depthwise():
            return "depthwise"
        case FullyConnected():
            return "fully connected"
        case AveragePool() | Mean():
            return "mean"
        case MaxPool():
            return "greatest"
        case Softmax():
            return "softmax"
        case Mul() | PReLU():
            return "product"
        case Extremum():
            return "extreme"
        case Table():
            return "table"
        case Pad() | Concat() | Resize():
            return "move"
    return "sum"


def features(layer: Layer) -> tuple[int, ...]:
    """Return what the instructions of the layer's kind are counted by."""
    _, rows, columns, channels = layer.output_shape
    pixels, made = rows * columns, rows * columns * channels
    match layer:
        case Conv():
            line = layer.kernel[1] * layer.input_shapes[0][3] // layer.groups
            run = layer.kernel[0] * line
            window = pixels * run if layer.kernel != (1, 1) else 0
            short = window if line < 16 else 0  # such lines are gathered, or end in part of a vector
            return macs(layer), made, pixels, window, short, made * -(-run // 16)
        case Depthwise():
            return _taps(layer) * channels, made
        case FullyConnected():
            return macs(layer), made
        case AveragePool() | MaxPool():
            return made * prod(layer.kernel), made
        case Mean():
            return made * layer.count, made
        case Softmax():
            return made, pixels
        case Own():
            return (max(made, *(prod(shape) for shape in layer.input_shapes)),)
    return (made,)


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
