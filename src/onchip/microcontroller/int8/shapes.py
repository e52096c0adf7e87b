"""The shape that a layer makes, its windows, its multiply-accumulates."""

from __future__ import annotations

from onchip.microcontroller.int8.model import (
    AveragePool,
    Concat,
    Conv,
    Depthwise,
    FullyConnected,
    Layer,
    MaxPool,
    Mean,
    Own,
    Pad,
    Pair,
    Quad,
    Resize,
    Shape,
)

__all__ = ["macs", "made_shape", "window_count"]


def window_count(size: int, kernel: int, stride: int, dilation: int, before: int, after: int) -> int:
    """Return how many windows fit along one axis of `size` places with padding; 0 when none does."""
    room = size + before + after - (dilation * (kernel - 1) + 1)
    return room // stride + 1 if room >= 0 else 0


def made_shape(layer: Layer) -> Shape:
    """Return the output shape that the layer's parameters give; a valid layer has it as `output_shape`."""
    first = layer.input_shapes[0]
    match layer:
        case Conv() | Depthwise():
            rows, columns = _windows(first, layer.kernel, layer.stride, layer.dilation, layer.padding)
            return 1, rows, columns, layer.bias.size
        case AveragePool() | MaxPool():
            rows, columns = _windows(first, layer.kernel, layer.stride, (1, 1), layer.padding)
            return 1, rows, columns, first[3]
        case FullyConnected():
            return (*first[:3], layer.weights.shape[0])
        case Mean():
            _, rows, columns, channels = (
                1 if axis in layer.axes else size for axis, size in enumerate(first)
            )
            return 1, rows, columns, channels
        case Pad():
            top, left, bottom, right = layer.padding
            return 1, first[1] + top + bottom, first[2] + left + right, first[3] + sum(layer.channels)
        case Concat():
            along = sum(shape[layer.axis] for shape in layer.input_shapes)
            _, rows, columns, channels = (
                along if axis == layer.axis else size for axis, size in enumerate(first)
            )
            return 1, rows, columns, channels
        case Resize():
            return 1, layer.output_shape[1], layer.output_shape[2], first[3]
        case Own():
            return layer.output_shape
    return first


def _windows(shape: Shape, kernel: Pair, stride: Pair, dilation: Pair, padding: Quad) -> Pair:
    top, left, bottom, right = padding
    return (
        window_count(shape[1], kernel[0], stride[0], dilation[0], top, bottom),
        window_count(shape[2], kernel[1], stride[1], dilation[1], left, right),
    )


def macs(layer: Layer) -> int:
    """Return the multiply-accumulates with weights, padding counted as computed; 0 for other layers."""
    pixels = layer.output_shape[1] * layer.output_shape[2]
    match layer:
        case Conv() | Depthwise() | FullyConnected():
            return pixels * layer.weights.size
    return 0
