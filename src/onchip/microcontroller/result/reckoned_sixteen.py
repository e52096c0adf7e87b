"""By what the instructions of layers of 16-bit numbers are reckoned: as their kernels walk.

Sums that fit 32 bits are made of four products at a time over runs of a row, with some work for each run and
each output; longer ones one product at a time. Bytes count where numbers only pass.
"""

from __future__ import annotations

from math import prod

from onchip.microcontroller.int8.model import Layer
from onchip.microcontroller.int8.sixteen.elements import Curve16, Linear16, Pair16
from onchip.microcontroller.int8.sixteen.pools import Pool16
from onchip.microcontroller.int8.sixteen.sums import Sums16, TransposeConv16
from onchip.microcontroller.kernels.sixteen.short_sums import CHUNK, is_short

__all__ = ["features_of_sixteen", "kind_of_sixteen"]

NUMBER = 2
"""Bytes of a number."""
HALVED = (1 << 30, 0)
"""The factor of an operand of a sum that takes no product."""
Sums = Sums16 | TransposeConv16


def kind_of_sixteen(layer: Layer) -> str:
    """Return the kind of a layer whose kernel has a way of its own; else an empty string."""
    match layer:
        case Sums16() | TransposeConv16():
            kind = "sums of 16" if isinstance(layer, Sums16) else "transposed of 16"
            if not is_short(layer):
                return f"{kind}, long"
            return f"{kind}, of 32 bits" if layer.narrow else kind
        case Pair16(does="mul"):
            return "product of 16"
        case Pair16(does="least" | "most"):
            return "extreme of 16"
        case Pair16():
            return "sum of 16" if layer.constant is None else "sum of 16 and constants"
        case Linear16() if (layer.read, layer.made) != (NUMBER, NUMBER):
            return "line of 16 and 8"
        case Linear16():
            return "line of 16" if layer.above == layer.below and not layer.turned else "bent line of 16"
        case Curve16():
            return f"{layer.does} of 16"
        case Pool16():
            return "greatest of 16" if layer.greatest else "mean of 16"
    return ""


def features_of_sixteen(layer: Layer) -> tuple[int, ...]:
    """Return what the instructions of such a layer are counted by."""
    _, rows, columns, channels = layer.output_shape
    pixels, made = rows * columns, rows * columns * channels
    match layer:
        case Sums16() | TransposeConv16():
            products, left, runs = _walked(layer)
            channels = len(layer.weights)
            outputs, chunks = pixels * channels, -(-channels // CHUNK)
            if not is_short(layer):
                return products + left, outputs
            loads = products // CHUNK * chunks // channels
            return products // CHUNK, loads, left, runs * chunks // channels, outputs, pixels
        case Pair16(does="add" | "sub" | "sub_turned"):
            one = prod(layer.input_shapes[1]) if layer.constant is None else layer.constant.size
            scaled = sum(factor != HALVED for factor in (layer.first, layer.second))
            return made, made * scaled, pixels if one < made else 0, rows
        case Linear16():
            return made, made * sum(shift >= 0 for _, shift in (layer.above, layer.below)), rows
        case Pool16():
            return made * prod(layer.kernel), made
    return (made,)


def _walked(layer: Sums) -> tuple[int, int, int]:
    """Return the products in whole fours of a run, those left over, and the runs that are loops."""
    out, *_, deep = layer.weights.shape
    lines, taps = (_inside(layer, axis) for axis in (0, 1))
    joined = isinstance(layer, Sums16) and layer.groups == 1 and layer.dilation[1] == 1
    columns = layer.output_shape[2]
    runs, products = lines * (columns if joined else taps) * out, lines * taps * deep * out
    run = layer.weights.shape[2] * deep if joined else deep
    left = min(runs * (run % CHUNK), products)
    return products - left, left, runs if layer.weights[0, ..., 0].size > 1 else 0


def _inside(layer: Sums, axis: int) -> int:
    """Return the taps of one direction that lie in the map, of all places of the output."""
    size, made = layer.input_shapes[0][1 + axis], layer.output_shape[1 + axis]
    many, stride = layer.weights.shape[1 + axis], layer.stride[axis]
    if isinstance(layer, TransposeConv16):
        places = (i * stride + tap - layer.before[axis] for i in range(size) for tap in range(many))
        return sum(0 <= place < made for place in places)
    first, apart = layer.padding[axis], layer.dilation[axis]
    return sum(0 <= o * stride - first + tap * apart < size for o in range(made) for tap in range(many))
