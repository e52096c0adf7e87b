"""The rows that each row of a layer's output reads of its inputs, and over which of them it may lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onchip.microcontroller.int8.model import (
    AveragePool,
    Concat,
    Conv,
    Depthwise,
    FullyConnected,
    Layer,
    MaxPool,
    Pad,
    Pairwise,
    PReLU,
    Resize,
    Shape,
    Softmax,
    Table,
)
from onchip.microcontroller.rows.graph import Rows
from onchip.microcontroller.rows.places import along, places_of, side_of
from onchip.microcontroller.rows.windows import all_rows, beside, by_element, by_pixel, clipped, same_rows

__all__ = ["Reads", "has_columns", "reads_of"]

Order = Literal["pixel", "element", "beside"]


@dataclass(frozen=True, slots=True)
class Reads:
    """The windows of an operand, those of its columns, and the order in which a row reads them.

    `made` are channels of the output, `multiplier` those of each channel read.
    """

    windows: tuple[Rows, ...]
    columns: tuple[Rows, ...]
    made: int
    order: Order
    multiplier: int = 1

    def distance(self, channels: int | None) -> int:
        """Return how far below a row of so many channels the output's row may start."""
        if self.order == "beside" or channels is None:
            return beside(len(self.columns) * self.made)
        if self.order == "pixel":
            return by_pixel(self.columns, self.made, channels)
        return by_element(self.columns, self.made, channels, self.multiplier)


def reads_of(layer: Layer, *, by_side: bool = False) -> tuple[Reads, ...] | None:
    """Return how a layer reads each of its inputs; None for one that no window describes.

    With `by_side` a resizing reads the rows of `places.side_of`, which may be one more than it needs.
    """
    first, made = layer.input_shapes[0], layer.output_shape
    match layer:
        case Conv() | Depthwise():
            axes = _windows(first, made, layer.kernel, layer.stride, layer.padding[:2], layer.dilation)
            if isinstance(layer, Depthwise):
                return (Reads(*axes, made[3], "element", layer.depth_multiplier),)
            return (Reads(*axes, made[3], "pixel"),)
        case AveragePool() | MaxPool():
            axes = _windows(first, made, layer.kernel, layer.stride, layer.padding[:2], (1, 1))
            return (Reads(*axes, made[3], "element"),)
        case FullyConnected():
            if made[1:3] != first[1:3]:
                return None
            return (Reads(same_rows(made[1]), same_rows(made[2]), made[3], "pixel"),)
        case Softmax():
            return (Reads(same_rows(made[1]), same_rows(made[2]), made[3], "pixel"),)
        case Pairwise():
            return tuple(_of_pair(shape, made) for shape in layer.input_shapes)
        case Table() | PReLU():
            return (_of_pair(first, made),)
        case Resize():
            rows, columns = (places_of(layer, first[a], made[a]) for a in (1, 2))
            if by_side:
                rows, columns = (along(side_of(layer, a), made[a]) for a in (1, 2))
            return (Reads(rows, columns, made[3], "element"),)
        case Pad():
            top, left = layer.padding[:2]
            rows, columns = _windows(first, made, (1, 1), (1, 1), (top, left), (1, 1))
            return (Reads(rows, columns, made[3], "beside"),)
        case Concat() if layer.axis == 1:
            found, at = [], 0
            for shape in layer.input_shapes:
                rows, _ = _windows(shape, made, (1, 1), (1, 1), (at, 0), (1, 1))
                found.append(Reads(rows, same_rows(made[2]), made[3], "beside"))
                at += shape[1]
            return tuple(found)
        case Concat():
            rows = same_rows(made[1])
            return tuple(Reads(rows, same_rows(made[2]), made[3], "beside") for _ in layer.inputs)
    return None


def has_columns(layer: Layer) -> bool:
    """Return whether `reads_of` tells which columns each column of a row is made of."""
    match layer:
        case Conv() | Depthwise() | AveragePool() | MaxPool() | FullyConnected() | Resize():
            return True
        case Table() | PReLU() | Pairwise():
            return all(shape[2] == layer.output_shape[2] for shape in layer.input_shapes)
        case Concat():
            return layer.axis == 3
    return False


def _windows(
    read: Shape,
    made: Shape,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    before: tuple[int, ...],
    dilation: tuple[int, ...],
) -> tuple[tuple[Rows, ...], tuple[Rows, ...]]:
    rows, columns = (
        clipped(read[a + 1], made[a + 1], kernel[a], stride[a], before[a], dilation[a]) for a in (0, 1)
    )
    return rows, columns


def _of_pair(shape: Shape, made: Shape) -> Reads:
    """Return how an element-wise layer reads an operand, which may be one pixel or one element for all."""
    if shape == made:
        return Reads(same_rows(made[1]), same_rows(made[2]), made[3], "element")
    rows = same_rows(made[1]) if shape[1] == made[1] else all_rows(shape[1], made[1])
    return Reads(rows, same_rows(made[2]), made[3], "beside")
