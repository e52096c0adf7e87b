"""One operator of a file while it is read: its operands as layers see them, its scales, its refusals.

It refuses every invalid statement of a file about an operator in one line that names file and operator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onchip.base.errors import ModelError
from onchip.microcontroller.int8.factors import ACTIVATIONS, Factor, Scale, activation_bounds
from onchip.microcontroller.int8.model import Shape
from onchip.readers.tflite_graph import Node, TensorRow, TfliteGraph

__all__ = ["MAX_TENSOR_BYTES", "Site", "Value", "four"]

MAX_TENSOR_BYTES = 1 << 30
"""The limit of an activation's size: no microcontroller addresses more, and numpy would allocate it."""

INT8, INT16, INT32, INT64 = 3, 5, 6, 7  # ONNX's element types


@dataclass(frozen=True, slots=True)
class Value:
    """The location of a tensor of the file: tensor `tensor` of the model, whose bytes are `stored` in order.

    `lies` names for each axis of the file's `shape` the axis of `stored` that it is: a transpose changes
    only this, a reshape everything but the tensor.
    """

    tensor: int
    shape: tuple[int, ...]
    stored: tuple[int, ...]
    lies: tuple[int, ...]

    @property
    def plain(self) -> bool:
        """True if the bytes are in the order of the file's shape."""
        axes = [axis for axis in self.lies if self.stored[axis] > 1]
        return axes == sorted(axes)


def four(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape in four axes, ones in front; longer where more axes have more than one index."""
    while len(shape) > 4 and shape[0] == 1:
        shape = shape[1:]
    return (1,) * (4 - len(shape)) + shape


@dataclass(frozen=True)
class Site:
    """An operator, the values made before it, and the id of the tensor that it will make."""

    graph: TfliteGraph
    node: Node
    values: Mapping[int, Value]
    output: int

    def refuse(self, reason: str) -> ModelError:
        """Return the error that names file and operator."""
        return self.graph.refuse(reason, self.node.label)

    # -- operands --------------------------------------------------------------------------------------------

    def operand(self, position: int) -> int:
        """Return the file's tensor at an input position; refuse an operator without it."""
        if position >= len(self.node.inputs) or self.node.inputs[position] < 0:
            raise self.refuse(f"lacks its input {position}")
        return self.node.inputs[position]

    def row(self, position: int) -> TensorRow:
        return self.graph.tensors[self.operand(position)]

    @property
    def out(self) -> TensorRow:
        """The file's tensor that the operator makes."""
        return self.graph.tensors[self.node.outputs[0]]

    def value(self, position: int) -> Value:
        """Return the computed operand at an input position."""
        value = self.values.get(self.operand(position))
        if value is None:
            row = self.row(position)
            reason = "a constant" if row.data is not None else f"{row.stated}, or made by a later operator"
            raise self.refuse(f"reads {row.name}, which is {reason}; only computed int8 can stand here")
        return value

    def seen(self, position: int) -> Shape:
        """Return the shape in which the layer sees an operand: four axes, the first of one index."""
        value = self.value(position)
        if not value.plain:
            raise self.refuse(f"reads {self.row(position).name} transposed, which no kernel does")
        return self.shape(value.shape, self.row(position).name)

    def shape(self, shape: tuple[int, ...], name: str) -> Shape:
        """Return a file's shape in four axes; refuse one with a batch, or with more than four axes."""
        found = four(shape)
        if len(found) > 4:
            raise self.refuse(f"has {name} of shape {list(shape)}: more than four axes")
        if found[0] != 1:
            raise self.refuse(f"has {name} of shape {list(shape)}: a batch of {found[0]}, not of 1")
        return found[0], found[1], found[2], found[3]

    def made(self) -> Shape:
        """Return the output's shape in four axes."""
        return self.shape(self.out.shape, self.out.name)

    def head(self, *positions: int, output_shape: Shape | None = None) -> dict[str, Any]:
        """Return the fields of `Head`, for the computed operands at these positions."""
        return {
            "name": self.node.label,
            "inputs": tuple(self.value(p).tensor for p in positions),
            "output": self.output,
            "input_shapes": tuple(self.seen(p) for p in positions),
            "output_shape": output_shape or self.made(),
        }

    def has(self, position: int) -> bool:
        """Return whether the operator has this optional operand."""
        return position < len(self.node.inputs) and self.node.inputs[position] >= 0

    def constant(self, position: int, element: int, what: str) -> np.ndarray[Any, Any]:
        """Return a constant operand of an element type (ONNX's number), in its shape."""
        row = self.row(position)
        values = self.graph.constant(row.index)
        if values is None or row.element != element:
            kind = "computed" if row.data is None else row.stated
            raise self.refuse(f"has {what} {row.name} that are no plain constant of integers, but {kind}")
        return values

    def numbers(self, position: int, count: int, what: str) -> list[int]:
        """Return a small constant of integers: axes, sizes, paddings."""
        found = self.graph.numbers(self.operand(position))
        if found is None or (count and len(found) != count):
            raise self.refuse(f"has {what} that are not {count or 'some'} constant integers")
        return found

    def option(self, key: str, default: int | None = None) -> int:
        found = self.node.options.get(key, default)
        if found is None:
            raise self.refuse(f"has no option {key}")
        return found

    # -- scales ----------------------------------------------------------------------------------------------

    def scale(self, position: int) -> Scale:
        """Return the scale of an operand, which must have exactly one."""
        return self.scale_of(self.row(position))

    def out_scale(self) -> Scale:
        return self.scale_of(self.out)

    def scale_of(self, row: TensorRow) -> Scale:
        """Return the only scale of a tensor of int8, or of int16 around 0."""
        found = self.row_scale(row)
        if row.element == INT16 and found.zero_point:
            raise self.refuse(f"has {row.name} of INT16 with zero point {found.zero_point}: only 0 is read")
        return found

    def row_scale(self, row: TensorRow) -> Scale:
        """Return the only scale of a tensor of int8 or int16."""
        found = row.quantisation
        if row.element not in (INT8, INT16):
            raise self.refuse(f"has {row.name} of {row.stated}: only INT8 and INT16 are read")
        if found is None:
            raise self.refuse(f"has {row.name} without a scale: the network is not quantised")
        if len(found.scales) != 1 or len(found.zero_points) != 1:
            raise self.refuse(f"has {row.name} with {len(found.scales)} scales, where one for all is needed")
        scale, zero = found.scales[0], found.zero_points[0]
        if not math.isfinite(scale) or not (scale > 0 or (scale == 0 and self._zeros(row))):
            raise self.refuse(f"has {row.name} with scale {scale}, which is no positive number")
        least = -(1 << (15 if row.element == INT16 else 7))
        if not least <= zero < -least:
            raise self.refuse(f"has {row.name} with zero point {zero}, which is no {row.stated}")
        return Scale(scale, zero)

    def _zeros(self, row: TensorRow) -> bool:
        """Return whether a tensor is a constant of zeros: it needs no scale, and some have scale 0."""
        values = self.graph.constant(row.index)
        return values is not None and not values.any()

    def _sound(self, scale: float, name: str) -> None:
        if not math.isfinite(scale) or scale < np.finfo(np.float32).tiny:
            raise self.refuse(f"has {name} with scale {scale}, which is no positive number of 32 bits")

    def weight_scales(self, position: int, axis: int, channels: int) -> tuple[float, ...]:
        """Return the scales of symmetric weights: one for all, or one for each channel along `axis`."""
        row = self.row(position)
        found = row.quantisation
        if found is None:
            raise self.refuse(f"has weights {row.name} without a scale")
        if len(found.scales) != 1 and (len(found.scales) != channels or found.axis != axis):
            raise self.refuse(
                f"has weights {row.name} with {len(found.scales)} scales along axis {found.axis}: one for all"
                f" or {channels} along axis {axis} can be read"
            )
        if any(found.zero_points):
            raise self.refuse(f"has weights {row.name} with a zero point: weights must be symmetric")
        for scale in set(found.scales):
            self._sound(abs(scale), row.name)  # some files fold a negative gain into the scale
        return found.scales

    def same_scale(self, *positions: int) -> Scale:
        """Return the output's scale; refuse operands with another."""
        out = self.out_scale()
        for position in positions:
            inner = self.scale(position)
            if abs(inner.scale - out.scale) > 1e-6 or inner.zero_point != out.zero_point:
                raise self.refuse(
                    f"changes scale from {inner.scale:g} at {inner.zero_point} to {out.scale:g} at"
                    f" {out.zero_point}, which this operator cannot"
                )
        return out

    def factor(self, found: Factor) -> Factor:
        """Return the factor; refuse one that the arithmetic cannot apply."""
        if found[1] > 30:
            raise self.refuse(f"scales by {found[0] * 2.0 ** (found[1] - 31):g}: its scales do not fit")
        return found

    def bounds(self) -> tuple[int, int]:
        """Return (low, high) of the fused activation on the output's scale."""
        number = self.option("FusedActivationFunction", 0)
        if not 0 <= number < len(ACTIVATIONS):
            raise self.refuse(f"has fused activation {number}, which no kernel has")
        ends = (-(1 << 15), (1 << 15) - 1) if self.out.element == INT16 else (-128, 127)
        try:
            return activation_bounds(ACTIVATIONS[number], self.out_scale(), *ends)
        except (ValueError, OverflowError) as problem:
            raise self.refuse(str(problem)) from None
