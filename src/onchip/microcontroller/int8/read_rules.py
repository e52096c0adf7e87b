"""Rules that make a network smaller without changing a byte of its results.

Each takes the layers in order and returns them; `living` removes the layers that a rule leaves unread.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from onchip.microcontroller.int8.model import (
    Conv,
    Depthwise,
    Layer,
    Lookup,
    MaxPool,
    Mean,
    Pad,
    Quad,
    Quantize,
)
from onchip.microcontroller.int8.reference import layer_output

__all__ = ["keeps_bytes", "living", "merged_pads"]


def merged_pads(layers: Sequence[Layer], outputs: Collection[int]) -> list[Layer]:
    """Return the layers with padding merged into its readers, where every one of them can take it.

    A convolution can when the padding's value is its input's zero point, which it assumes outside its map; a
    maximum can when the value is the smallest byte. An average counts only places inside its map, so it never
    can.
    """
    readers: dict[int, list[Layer]] = {}
    for layer in layers:
        for t in layer.inputs:
            readers.setdefault(t, []).append(layer)
    pads = {
        layer.output: layer
        for layer in layers
        if isinstance(layer, Pad)
        and layer.output not in outputs
        and all(_takes(reader, layer) for reader in readers.get(layer.output, ()))
    }
    found = []
    for layer in layers:
        if isinstance(layer, Conv | Depthwise | MaxPool) and layer.inputs[0] in pads:
            layer = _padded(layer, pads[layer.inputs[0]])
        found.append(layer)
    return found


def _takes(reader: Layer, pad: Pad) -> bool:
    if any(pad.channels) or not isinstance(reader, Conv | Depthwise | MaxPool):
        return False
    lowest = -128 if isinstance(reader, MaxPool) else -reader.input_offset
    return pad.value == lowest and reader.input_shapes[0] == pad.output_shape


def _padded(layer: Conv | Depthwise | MaxPool, pad: Pad) -> Layer:
    padding = tuple(mine + theirs for mine, theirs in zip(layer.padding, pad.padding, strict=True))
    shape = pad.input_shapes[0]
    return replace(
        layer,
        inputs=pad.inputs,
        input_shapes=pad.input_shapes,
        padding=_needed(layer, shape[1:3], (padding[0], padding[1], padding[2], padding[3])),
    )


def _needed(layer: Conv | Depthwise | MaxPool, size: Sequence[int], padding: Quad) -> Quad:
    """Return the padding without the rows below and columns to the right that no window reads."""
    dilation = (1, 1) if isinstance(layer, MaxPool) else layer.dilation
    ends = []
    for axis in (0, 1):
        last = (layer.output_shape[1 + axis] - 1) * layer.stride[axis]
        end = last + dilation[axis] * (layer.kernel[axis] - 1) + 1 - padding[axis] - size[axis]
        ends.append(max(0, min(end, padding[2 + axis])))
    return padding[0], padding[1], ends[0], ends[1]


def keeps_bytes(layer: Layer) -> bool:
    """Return whether the layer returns each byte unchanged, and so is another name for its input."""
    match layer:
        case Pad():
            return not any((*layer.padding, *layer.channels))
        case Mean() if layer.count == 1:
            every = np.arange(-128, 128, dtype=np.int8)
            line = replace(layer, input_shapes=((1, 1, 1, 256),), output_shape=(1, 1, 1, 256))
            return bool(np.array_equal(layer_output(line, [every]).reshape(-1), every))
        case Quantize() | Lookup():
            return bool(np.array_equal(layer.table, np.arange(-128, 128)))
    return False


def living(layers: Sequence[Layer], outputs: Collection[int]) -> list[Layer]:
    """Return the layers that an output depends on."""
    needed, found = set(outputs), []
    for layer in reversed(layers):
        if layer.output in needed:
            needed.update(layer.inputs)
            found.append(layer)
    return found[::-1]
