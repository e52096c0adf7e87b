"""The reads of a layer for each row and column of its output: windows over its operands, for the C."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from onchip.microcontroller.int8.model import (
    AveragePool,
    Conv,
    Depthwise,
    Int8Model,
    Layer,
    MaxPool,
    Mean,
    Pad,
    Pair,
    Quad,
    Shape,
)
from onchip.network.windows import Window

__all__ = ["Operand", "operands"]


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a layer reads, in the shape in which the layer sees it, and the windows over it.

    `flattened` are the rows of a map that the layer sees as one pixel; else 0.
    """

    tensor: int
    shape: Shape
    rows: Window
    columns: Window
    flattened: int = 0

    @property
    def pixel(self) -> int:
        """The bytes of a pixel."""
        return self.shape[3]

    @property
    def pitch(self) -> int:
        """The bytes of a row."""
        return self.shape[2] * self.shape[3]


def operands(layer: Layer, model: Int8Model) -> tuple[Operand, ...]:
    """Return the layer's operands, in its order."""
    kernel, stride, dilation, padding = _window(layer)
    found = []
    for tensor, shape in zip(layer.inputs, layer.input_shapes, strict=True):
        rows, columns = (
            _axis(shape[1 + axis], layer.output_shape[1 + axis], axis, kernel, stride, dilation, padding)
            for axis in (0, 1)
        )
        made = model.tensors[tensor].shape
        flattened = made[1] if shape[1:3] == (1, 1) != made[1:3] else 0
        found.append(Operand(tensor, shape, rows, columns, flattened))
    assert all(prod(o.shape) == model.tensors[o.tensor].bytes for o in found)
    return tuple(found)


def _window(layer: Layer) -> tuple[Pair, Pair, Pair, Quad]:
    match layer:
        case Conv() | Depthwise():
            return layer.kernel, layer.stride, layer.dilation, layer.padding
        case AveragePool() | MaxPool():
            return layer.kernel, layer.stride, (1, 1), layer.padding
        case Mean():
            _, rows, columns, _ = layer.input_shapes[0]
            kernel = (rows if 1 in layer.axes else 1, columns if 2 in layer.axes else 1)
            return kernel, kernel, (1, 1), (0, 0, 0, 0)
        case Pad():
            return (1, 1), (1, 1), (1, 1), layer.padding
    return (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)


def _axis(
    size: int, made: int, axis: int, kernel: Pair, stride: Pair, dilation: Pair, padding: Quad
) -> Window:
    if size == 1 and made > 1 and kernel[axis] == 1 and not any(padding):
        return Window(1, made, stride=0)  # one line for all
    span = (kernel[axis] - 1) * dilation[axis] + 1
    return Window(size, made, stride[axis], padding[axis], span, dilation[axis])
