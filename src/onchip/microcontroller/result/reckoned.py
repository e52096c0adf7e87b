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
    "cortex-m4": {
        "conv": (1.365, 11.5, 6.893, 3.802),
        "depthwise": (3.06, 14.4),
        "fully connected": (1.382, 11.46),
        "pool": (6.7,),
        "softmax": (48.4,),
        "elements": (21.9,),
    },
    "cortex-m7": {
        "conv": (1.402, 11.85, 4.658, 3.669),
        "depthwise": (3.2, 14.0),
        "fully connected": (1.382, 11.46),
        "pool": (6.7,),
        "softmax": (50.5,),
        "elements": (21.9,),
    },
}
"""By core and kind of layer, the instructions of each of its `features`."""

ERROR = 0.08
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
            run = prod(layer.kernel) * layer.input_shapes[0][3] // layer.groups
            gathered = pixels * run if layer.kernel != (1, 1) else 0
            return macs(layer), made, pixels, gathered, made * -(-run // 16)
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
