"""One row of an operator, by the reference arithmetic, from the rows that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onchip.microcontroller.int8.arithmetic import clamped, scaled, wrapped
from onchip.microcontroller.int8.model import (
    AveragePool,
    Concat,
    Conv,
    Depthwise,
    Int8,
    Layer,
    MaxPool,
    Mean,
    Pad,
    Resize,
)
from onchip.microcontroller.int8.reference import bilinear_places, layer_output
from onchip.microcontroller.rows.makers import Maker

__all__ = ["row_of", "sums_of"]


def row_of(maker: Maker, step: int, maps: Sequence[Int8]) -> Int8:
    """Return the row of a step from the rows of its windows, each operand [1, rows, columns, channels]."""
    layer = maker.layers[0]
    if maker.phase == "whole":
        made = layer_output(layer, maps)
    else:
        made = _row(layer, step, [s.windows[step] for s in maker.sources], maps)
    for after in maker.layers[1:]:
        shape = made.shape
        made = layer_output(replace(after, input_shapes=(shape,), output_shape=shape), [made])
    return made


def sums_of(maker: Maker, row: Int8, before: NDArray[np.int32] | None) -> NDArray[np.int32]:
    """Return the sums of a mean after another row."""
    layer = maker.layers[0]
    over = (1,) if isinstance(layer, Mean) and 2 not in layer.axes else (1, 2)
    found = row.astype(np.int64).sum(axis=over).reshape(-1)
    return wrapped(found if before is None else found + before).astype(np.int32)


def end_of(maker: Maker, sums: NDArray[np.int32], count: int) -> Int8:
    """Return the mean of `count` places from its sums."""
    layer = maker.layers[0]
    total = sums.astype(np.int64).reshape(layer.output_shape)
    if isinstance(layer, AveragePool):
        mean = np.sign(total) * ((np.abs(total) + count // 2) // count)
        made = clamped(mean, layer.low, layer.high)
    else:
        assert isinstance(layer, Mean)
        moved = wrapped(total + layer.input_offset * layer.count)
        made = clamped(scaled(moved, layer.multiplier, layer.shift) + layer.output_offset)
    for after in maker.layers[1:]:
        made = layer_output(replace(after, input_shapes=(made.shape,), output_shape=made.shape), [made])
    return made


def _row(layer: Layer, step: int, windows: Sequence[tuple[int, int]], maps: Sequence[Int8]) -> Int8:
    shape = (1, 1, *layer.output_shape[2:])
    seen = tuple(
        (1, last - first, *s[2:]) for (first, last), s in zip(windows, layer.input_shapes, strict=True)
    )
    changed: dict[str, Any] = {"input_shapes": seen, "output_shape": shape}
    match layer:
        case Conv() | Depthwise() | AveragePool() | MaxPool():
            dilation = layer.dilation[0] if isinstance(layer, Conv | Depthwise) else 1
            top, left, _, right = layer.padding
            first = step * layer.stride[0] - top
            last = first + (layer.kernel[0] - 1) * dilation + 1
            (low, high) = windows[0]
            if low == high:
                low = high = first
            changed["padding"] = (low - first, left, last - high, right)
        case Pad():
            (low, high), top = windows[0], layer.padding[0]
            inside = low < high
            changed["padding"] = (0 if inside else 1, layer.padding[1], 0, layer.padding[3])
            assert not inside or low == step - top
        case Concat() if layer.axis == 1:
            [there] = [m for m in maps if m.shape[1]]
            return there
        case Resize():
            return _resized(layer, step, windows[0][0], maps[0])
    return layer_output(replace(layer, **changed), maps)


def _resized(layer: Resize, step: int, first: int, rows: Int8) -> Int8:
    """Return a row of a resized map: the whole of it, from the rows that it reads at their places."""
    height = layer.input_shapes[0][1]
    there = np.zeros((1, height, *rows.shape[2:]), np.int8)
    there[:, first : first + rows.shape[1]] = rows
    if layer.mode == "bilinear":
        low, high, _ = bilinear_places(layer, height, layer.output_shape[1])
        assert first <= low[step] <= high[step] < first + rows.shape[1]
    return layer_output(layer, [there])[:, step : step + 1]
