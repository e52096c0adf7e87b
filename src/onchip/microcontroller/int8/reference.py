"""An int8 network in numpy, bit for bit what the public interpreters compute (docs/mcu-reference.md).

Products are summed as 64-bit floats, which hold every sum of products of bytes exactly, and then wrapped to
32 bits: one matrix product for each place of a kernel, so that a network takes at most a few seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onchip.microcontroller.int8.arithmetic import Whole, clamped, scaled, wrapped
from onchip.microcontroller.int8.model import (
    Add,
    AveragePool,
    Concat,
    Conv,
    Depthwise,
    Dequantize,
    Extremum,
    FullyConnected,
    Int8,
    Int8Model,
    Layer,
    MaxPool,
    Mean,
    Mul,
    Own,
    Pad,
    Pair,
    Pairwise,
    PReLU,
    Resize,
    Softmax,
    SquaredDifference,
    Sub,
    Table,
)
from onchip.microcontroller.int8.softmax import softmax

__all__ = ["Session", "activations", "bilinear_places", "layer_output", "nearest_places", "run", "sums"]


def run(model: Int8Model, inputs: Sequence[Int8]) -> tuple[Int8, ...]:
    """Return the network's outputs in the model's order; inputs may have any shape of the right size.

    What it keeps between inferences begins anew.
    """
    return Session(model).run(inputs)


class Session:
    """Inferences one behind the other, each with what the one before has kept."""

    def __init__(self, model: Int8Model) -> None:
        self.model = model
        self.kept = {state.old: np.frombuffer(state.initial, np.int8) for state in model.states}

    def run(self, inputs: Sequence[Int8]) -> tuple[Int8, ...]:
        """Return the outputs of the next inference."""
        values = activations(self.model, inputs, self.kept)
        self.kept = {state.old: values[state.new] for state in self.model.states}
        return tuple(values[t] for t in self.model.outputs)

    def bytes_of(self, model: Int8Model, inputs: Int8) -> bytes:
        """Return the bytes of all outputs for those of all inputs, one behind the other."""
        parts, at, flat = [], 0, inputs.reshape(-1)
        for t in model.inputs:
            parts.append(flat[at : at + model.tensors[t].bytes])
            at += model.tensors[t].bytes
        made = dict(zip(model.outputs, self.run(parts), strict=True))
        return b"".join(made[t].tobytes() for t in dict.fromkeys(model.outputs))


def activations(
    model: Int8Model, inputs: Sequence[Int8], kept: Mapping[int, Int8] | None = None
) -> Mapping[int, Int8]:
    """Return every tensor of the network by its id; raises `ValueError` for inputs that do not fit.

    `kept` are the bytes of states by their tensor `old`; without it, those that they begin with.
    """
    if len(inputs) != len(model.inputs):
        raise ValueError(f"{len(inputs)} inputs for a network of {len(model.inputs)}")
    given = {state.old: np.frombuffer(state.initial, np.int8) for state in model.states} | dict(kept or {})
    given |= dict(zip(model.inputs, inputs, strict=True))
    values = {t: np.asarray(x, np.int8).reshape(model.tensors[t].shape) for t, x in given.items()}
    for layer in model.layers:
        values[layer.output] = layer_output(layer, [values[t] for t in layer.inputs])
    return values


def layer_output(layer: Layer, inputs: Sequence[Int8]) -> Int8:
    """Return the output of one layer for its inputs, in the layer's shape."""
    seen = [x.reshape(shape) for x, shape in zip(inputs, layer.input_shapes, strict=True)]
    return np.ascontiguousarray(_compute(layer, seen)).reshape(layer.output_shape)


def _compute(layer: Layer, seen: Sequence[Int8]) -> Int8:
    x = seen[0]
    match layer:
        case Conv() | Depthwise() | FullyConnected():
            acc = wrapped(_products(layer, x).astype(np.int64) + layer.bias)
            made = scaled(acc, layer.multiplier, layer.shift) + layer.output_offset
            return clamped(made, layer.low, layer.high)
        case Add():
            return _add(layer, *_operands(seen, layer.constant))
        case Extremum():
            first, second = _operands(seen, layer.constant)
            return clamped(np.maximum(first, second) if layer.greatest else np.minimum(first, second))
        case Mul():
            return _mul(layer, *_operands(seen, layer.constant))
        case AveragePool():
            return _average(layer, x)
        case MaxPool():
            return _greatest(layer, x)
        case Mean():
            return _mean(layer, x)
        case Pad():
            top, left, bottom, right = layer.padding
            around = ((0, 0), (top, bottom), (left, right), layer.channels)
            return np.pad(x, around, constant_values=layer.value)
        case Softmax():
            return softmax(x, layer.multiplier, layer.shift, layer.diff_min)
        case Table():
            return layer.table[x.astype(np.int64) + 128]
        case PReLU():
            return _prelu(layer, x)
        case Resize():
            return _resize(layer, x)
        case Concat():
            return np.concatenate(seen, axis=layer.axis)
        case Own():
            return layer.compute(seen)
        case Dequantize() | Pairwise():
            raise ValueError(f"{layer.name} has no bytes to compute")


# -- sums of products ----------------------------------------------------------------------------------------


def _moved(x: Int8, offset: int) -> NDArray[np.float64]:
    return x.astype(np.float64) + offset


def sums(layer: Conv | Depthwise | FullyConnected, x: Int8) -> NDArray[np.float64]:
    """Return the layer's exact sums of products for an input, without biases and before they wrap."""
    return _products(layer, x.reshape(layer.input_shapes[0]))


def _products(layer: Conv | Depthwise | FullyConnected, x: Int8) -> NDArray[np.float64]:
    match layer:
        case Conv():
            return _conv_sums(layer, x)
        case Depthwise():
            return _depthwise_sums(layer, x)
        case FullyConnected():
            return _moved(x, layer.input_offset) @ layer.weights.T.astype(np.float64)


def _places(
    x: NDArray[Any], kernel: Pair, stride: Pair, dilation: Pair, out: Pair
) -> Iterator[tuple[Pair, NDArray[Any]]]:
    """Yield each place of a kernel with the part of a padded map that its windows have there."""
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            top, left = row * dilation[0], column * dilation[1]
            yield (
                (row, column),
                x[
                    :,
                    top : top + (out[0] - 1) * stride[0] + 1 : stride[0],
                    left : left + (out[1] - 1) * stride[1] + 1 : stride[1],
                ],
            )


def _padded(layer: Conv | Depthwise | AveragePool | MaxPool, x: NDArray[Any], value: int) -> NDArray[Any]:
    top, left, bottom, right = layer.padding
    return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)


def _conv_sums(layer: Conv, x: Int8) -> NDArray[np.float64]:
    _, rows, columns, channels = layer.output_shape
    padded = _padded(layer, _moved(x, layer.input_offset), 0)
    weights = layer.weights.astype(np.float64)
    wide, deep = channels // layer.groups, weights.shape[3]
    total = np.zeros((1, rows, columns, channels))
    for (ky, kx), part in _places(padded, layer.kernel, layer.stride, layer.dilation, (rows, columns)):
        for g in range(layer.groups):
            made, read = slice(g * wide, (g + 1) * wide), slice(g * deep, (g + 1) * deep)
            total[..., made] += part[..., read] @ weights[made, ky, kx].T
    return total


def _depthwise_sums(layer: Depthwise, x: Int8) -> NDArray[np.float64]:
    _, rows, columns, channels = layer.output_shape
    padded = _padded(layer, _moved(x, layer.input_offset), 0)
    if layer.depth_multiplier > 1:
        padded = np.repeat(padded, layer.depth_multiplier, axis=3)
    total = np.zeros((1, rows, columns, channels))
    for (ky, kx), part in _places(padded, layer.kernel, layer.stride, layer.dilation, (rows, columns)):
        total += part * layer.weights[ky, kx].astype(np.float64)
    return total


# -- element by element --------------------------------------------------------------------------------------


def _operands(seen: Sequence[Int8], constant: Int8 | None) -> tuple[Whole, Whole]:
    second = seen[1] if constant is None else constant
    return seen[0].astype(np.int64), second.astype(np.int64)


def _add(layer: Add, first: Whole, second: Whole) -> Int8:
    one, other = (
        scaled((values + offset) << layer.left_shift, multiplier, shift)
        for values, offset, multiplier, shift in zip(
            (first, second), layer.input_offsets, layer.multipliers, layer.shifts, strict=True
        )
    )
    match layer:
        case Sub():
            total = other - one if layer.turned else one - other
        case SquaredDifference():
            total = (one - other) ** 2
        case _:
            total = one + other
    return clamped(scaled(total, layer.multiplier, layer.shift) + layer.output_offset, layer.low, layer.high)


def _mul(layer: Mul, first: Whole, second: Whole) -> Int8:
    product = (first + layer.input_offsets[0]) * (second + layer.input_offsets[1])
    made = scaled(product, layer.multiplier, layer.shift) + layer.output_offset
    return clamped(made, layer.low, layer.high)


def _prelu(layer: PReLU, x: Int8) -> Int8:
    value = x.astype(np.int64) + layer.input_offset
    above = scaled(value, layer.multiplier, layer.shift)
    product = value * (layer.alpha.astype(np.int64) + layer.alpha_offset)
    below = scaled(product, layer.multiplier_below, layer.shift_below)
    return clamped(np.where(value >= 0, above, below) + layer.output_offset)


# -- over windows and maps -----------------------------------------------------------------------------------


def _average(layer: AveragePool, x: Int8) -> Int8:
    out = layer.output_shape[1:3]
    total = np.zeros(layer.output_shape, np.int64)
    counts = np.zeros((1, *out, 1), np.int64)
    inside = np.ones((*x.shape[:3], 1), np.int64)
    for values, found in ((x.astype(np.int64), total), (inside, counts)):
        for _, part in _places(_padded(layer, values, 0), layer.kernel, layer.stride, (1, 1), out):
            found += part
    mean = np.sign(total) * ((np.abs(total) + counts // 2) // counts)
    return clamped(mean, layer.low, layer.high)


def _greatest(layer: MaxPool, x: Int8) -> Int8:
    out = layer.output_shape[1:3]
    found = np.full(layer.output_shape, -128, np.int8)
    for _, part in _places(_padded(layer, x, -128), layer.kernel, layer.stride, (1, 1), out):
        np.maximum(found, part, out=found)
    return clamped(found, layer.low, layer.high)


def _mean(layer: Mean, x: Int8) -> Int8:
    total = np.sum(x, axis=layer.axes, keepdims=True, dtype=np.int64) + layer.input_offset * layer.count
    return clamped(scaled(wrapped(total), layer.multiplier, layer.shift) + layer.output_offset)


def _resize(layer: Resize, x: Int8) -> Int8:
    sizes = list(zip(x.shape[1:3], layer.output_shape[1:3], strict=True))
    if layer.mode == "nearest":
        rows, columns = (nearest_places(layer, *size) for size in sizes)
        return x[:, rows][:, :, columns]
    (y0, y1, fy), (x0, x1, fx) = (bilinear_places(layer, *size) for size in sizes)
    fx = fx[:, None]
    top, bottom = x[:, y0].astype(np.int64), x[:, y1].astype(np.int64)
    fine = 1 << 10
    above = top[:, :, x0] * (fine - fx) + top[:, :, x1] * fx
    below = bottom[:, :, x0] * (fine - fx) + bottom[:, :, x1] * fx
    fy = fy[:, None, None]
    total = above * (fine - fy) + below * fy
    mixed: Int8 = (np.sign(total) * ((np.abs(total) + (1 << 19)) >> 20)).astype(np.int8)
    return mixed


def nearest_places(layer: Resize, size: int, made: int) -> Whole:
    """Return, for each place of the output along one axis, the input's place that it copies."""
    corners = layer.align_corners and made > 1
    single = np.float32
    scale = single(size - 1) / single(made - 1) if corners else single(size) / single(made)
    at = (np.arange(made, dtype=single) + single(0.5 if layer.half_pixel_centers else 0.0)) * scale
    places = np.floor(at + single(0.5) if layer.align_corners else at).astype(np.int64)
    found: Whole = np.minimum(places, size - 1)
    return found


def bilinear_places(layer: Resize, size: int, made: int) -> tuple[Whole, Whole, Whole]:
    """Return, for each output place along one axis, two input places and the second's weight of 1024."""
    if layer.align_corners and made > 1:
        scale = ((size - 1) * 1024 + (made - 1) // 2) // (made - 1)
    else:
        scale = (size * 1024 + made // 2) // made
    at = np.arange(made, dtype=np.int64) * scale
    if layer.half_pixel_centers:
        at += scale // 2 - 512
    low = np.maximum(at, 0) // 1024
    high = np.minimum((at + 1023) // 1024, size - 1)
    return low, high, at - 1024 * low
