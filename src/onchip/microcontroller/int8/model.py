"""An int8 network as frozen layers of integers: input of arithmetic, kernels and code, in no file format.

Tensors are NHWC of rank four, one image, int8. Every layer holds its weights and its fixed-point parameters
as the interpreters derive them from the scales, so that all computation with a layer uses integers only: a
real factor is `multiplier * 2**(shift - 31)`, negative in some files, applied by
`onchip.microcontroller.int8.arithmetic`. An operator that only renames or reshapes its bytes (reshape,
squeeze) is no layer: each layer states the shapes in which it sees its inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Add",
    "AveragePool",
    "ByteTensor",
    "Concat",
    "Conv",
    "Depthwise",
    "Dequantize",
    "Extremum",
    "FullyConnected",
    "HardSwish",
    "Head",
    "Int8",
    "Int8Model",
    "Int32",
    "Layer",
    "Logistic",
    "Lookup",
    "MaxPool",
    "Mean",
    "Mul",
    "Original",
    "Own",
    "PReLU",
    "Pad",
    "Pair",
    "Pairwise",
    "Quad",
    "Quantize",
    "Resize",
    "Shape",
    "Softmax",
    "SquaredDifference",
    "State",
    "Sub",
    "Table",
    "frozen_array",
    "kind",
]

Int8: TypeAlias = NDArray[np.int8]
Int32: TypeAlias = NDArray[np.int32]
Pair: TypeAlias = tuple[int, int]
"""Values for rows and for columns."""
Quad: TypeAlias = tuple[int, int, int, int]
"""Padding: top, left, bottom, right."""
Shape: TypeAlias = tuple[int, int, int, int]
"""Image (always 1), rows, columns, channels."""


@dataclass(frozen=True, slots=True)
class ByteTensor:
    """An activation in the shape in which it is made, in bytes; real = `scale` * (number - `zero_point`).

    A number of `int16` is two neighbouring channels, the lower byte first.
    """

    id: int
    name: str
    shape: Shape
    element: Literal["int8", "int16"]
    scale: float
    zero_point: int

    @property
    def bytes(self) -> int:
        return prod(self.shape)

    @property
    def width(self) -> int:
        """The bytes of a number."""
        return 2 if self.element == "int16" else 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Head:
    """The fields that all layers have: a name, tensors read and made, and the shapes the layer sees.

    An `input_shapes[i]` has as many elements as the tensor `inputs[i]`, but may be another shape (the file
    reshapes it in between); constants are no inputs.
    """

    name: str
    inputs: tuple[int, ...]
    output: int
    input_shapes: tuple[Shape, ...]
    output_shape: Shape


@dataclass(frozen=True, kw_only=True, eq=False)
class _Weighted(Head):
    """Sums of products: acc = bias + sum (x + input_offset) * w; then scaled, moved and clamped, per channel.

    y = clamp(output_offset + scaled(acc, multiplier[c], shift[c]), low, high).
    """

    weights: Int8
    bias: Int32
    multiplier: Int32
    shift: Int32
    input_offset: int
    output_offset: int
    low: int
    high: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Conv(_Weighted):
    """A convolution; `weights` is [out, kernel rows, kernel columns, in / groups].

    Places outside the map count as the input's zero point: they add nothing.
    """

    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Quad = (0, 0, 0, 0)
    groups: int = 1

    @property
    def kernel(self) -> Pair:
        return self.weights.shape[1], self.weights.shape[2]


@dataclass(frozen=True, kw_only=True, eq=False)
class Depthwise(_Weighted):
    """A depthwise convolution; `weights` is [kernel rows, kernel columns, out].

    Output channel c reads input channel c // depth_multiplier.
    """

    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Quad = (0, 0, 0, 0)
    depth_multiplier: int = 1

    @property
    def kernel(self) -> Pair:
        return self.weights.shape[0], self.weights.shape[1]


@dataclass(frozen=True, kw_only=True, eq=False)
class FullyConnected(_Weighted):
    """A matrix product of every pixel; `weights` is [out, in].

    It sees a vector as one pixel of all its elements; `multiplier` and `shift` are per output as elsewhere,
    mostly all the same.
    """


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairwise(Head):
    """A function of two maps, element by element.

    The second operand may be `constant` (then there is one input), and may be one pixel or one element for
    all: [1, 1, 1, channels] or [1, 1, 1, 1].
    """

    constant: Int8 | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Add(Pairwise):
    """A sum of two maps of different scales.

    Each operand is moved by its offset, shifted left by `left_shift`, scaled; the sum is scaled, moved,
    clamped.
    """

    input_offsets: Pair
    multipliers: Pair
    shifts: Pair
    left_shift: int
    multiplier: int
    shift: int
    output_offset: int
    low: int
    high: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Sub(Add):
    """A difference, computed as in `Add`: the second operand from the first, or (`turned`) the other way."""

    turned: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class SquaredDifference(Add):
    """The square of a difference, computed as in `Add`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Extremum(Pairwise):
    """The smaller or (`greatest`) the greater byte of two."""

    greatest: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Mul(Pairwise):
    """A product of two maps: (a + offset) * (b + offset), scaled, moved, clamped."""

    input_offsets: Pair
    multiplier: int
    shift: int
    output_offset: int
    low: int
    high: int


@dataclass(frozen=True, kw_only=True, eq=False)
class _Pool(Head):
    kernel: Pair
    stride: Pair
    padding: Quad
    low: int
    high: int


@dataclass(frozen=True, kw_only=True, eq=False)
class AveragePool(_Pool):
    """The mean of those places of a window that lie in the map, halves away from zero, clamped."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MaxPool(_Pool):
    """The greatest of those places of a window that lie in the map, clamped."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Mean(Head):
    """The mean over `axes`: (1, 2) a whole map, (1,) its rows, (2,) its columns.

    y = clamp(scaled(sum, multiplier, shift) + output_offset), where sum is of x + input_offset over `count`
    places and the factor includes 1 / count.
    """

    axes: tuple[int, ...]
    input_offset: int
    multiplier: int
    shift: int
    output_offset: int

    @property
    def count(self) -> int:
        """The number of places in one mean."""
        return prod(self.input_shapes[0][axis] for axis in self.axes)


@dataclass(frozen=True, kw_only=True, eq=False)
class Pad(Head):
    """The map with `value` around it, and `channels` before and behind its channels."""

    padding: Quad
    channels: Pair = (0, 0)
    value: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Softmax(Head):
    """A softmax over each pixel's channels.

    Differences to the greatest channel are scaled; those below `diff_min` are dropped. The output's scale is
    1/256, its zero point -128.
    """

    multiplier: int
    shift: int
    diff_min: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Table(Head):
    """y = table[x + 128]."""

    table: Int8


@dataclass(frozen=True, kw_only=True, eq=False)
class Logistic(Table):
    """1 / (1 + exp(-x)), element by element: a table of 256."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HardSwish(Table):
    """x * min(max(x + 3, 0), 6) / 6, element by element: a table of 256."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Quantize(Table):
    """The same values on another scale, element by element: a table of 256."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lookup(Table):
    """Any other function of one byte; the layer's name states the operator."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Own(Head):
    """A layer that holds its own arithmetic; it reads all of its operands for every row of its output.

    Each is in a file of its own in `int8`, with its kernel in a file of the same name in `kernels`.
    """

    def compute(self, seen: Sequence[Int8]) -> Int8:
        """Return the output for operands in their `input_shapes`."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, eq=False)
class Dequantize(Head):
    """int8 to float; it stands only at a network's end, where the reader drops it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PReLU(Head):
    """x where it is positive, `alpha` * x elsewhere; `alpha` is [channels] or one value for all.

    With v = x + input_offset: v >= 0 is scaled by (multiplier, shift), else v * (alpha + alpha_offset) by
    (multiplier_below, shift_below); then moved and clamped to int8.
    """

    alpha: Int8
    input_offset: int
    alpha_offset: int
    multiplier: int
    shift: int
    multiplier_below: int
    shift_below: int
    output_offset: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Resize(Head):
    """The map resized to another number of rows and columns, as TensorFlow's two flags specify."""

    mode: Literal["nearest", "bilinear"]
    align_corners: bool
    half_pixel_centers: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Concat(Head):
    """Maps of one scale behind each other along `axis`: 1 rows, 2 columns, 3 channels."""

    axis: int


Layer: TypeAlias = (
    Conv
    | Depthwise
    | FullyConnected
    | Pairwise
    | AveragePool
    | MaxPool
    | Mean
    | Pad
    | Softmax
    | Table
    | Dequantize
    | PReLU
    | Resize
    | Concat
    | Own
)


@dataclass(frozen=True, slots=True)
class Original:
    """The type that the file gives an input or an output which is int8 here: a name of the schema.

    A `UINT8` is the same byte with its highest bit turned over. Other types are converted by the tensor's
    scale; or, where `through` names operators on floats, these are what leads there, and left to the caller.
    """

    element: str
    through: tuple[str, ...] = ()
    channels_first: bool = False
    """True if the file has the channels of this map in front of its rows."""


@dataclass(frozen=True, slots=True)
class State:
    """Bytes that one inference hands to the next: tensor `old` holds them before, tensor `new` after it.

    They begin as `initial`. Neither tensor is an input or an output.
    """

    name: str
    old: int
    new: int
    initial: bytes


@dataclass(frozen=True, eq=False)
class Int8Model:
    """A network of int8: layers in an order in which they can run, tensors with dense ids.

    `sha256` is the file's. Inputs and outputs are tensors, in the file's order; a program with real numbers
    converts them by their scales, and `originals` states the types of those that are not int8 in the file.
    `states` are what it keeps between inferences. `source` is where the file was read: a path, or
    `made:NAME`.
    """

    name: str
    sha256: str
    tensors: tuple[ByteTensor, ...]
    layers: tuple[Layer, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    source: str = ""
    originals: Mapping[int, Original] = field(default_factory=dict)
    states: tuple[State, ...] = ()

    @cached_property
    def producer(self) -> Mapping[int, Layer]:
        """The layer that makes each tensor; inputs have none."""
        return {layer.output: layer for layer in self.layers}

    @cached_property
    def readers(self) -> Mapping[int, tuple[Layer, ...]]:
        """The layers that read each tensor, in order."""
        found: dict[int, list[Layer]] = {t.id: [] for t in self.tensors}
        for layer in self.layers:
            for t in dict.fromkeys(layer.inputs):
                found[t].append(layer)
        return {t: tuple(layers) for t, layers in found.items()}

    @cached_property
    def layer(self) -> Mapping[str, Layer]:
        """The layers by name."""
        return {layer.name: layer for layer in self.layers}


def kind(layer: Layer) -> str:
    """Return the layer's kind as networks and tables print it: the name of its class."""
    return type(layer).__name__


def frozen_array(values: Any, dtype: type[np.generic]) -> Any:
    """Return a contiguous read-only copy for a layer to hold."""
    array = np.array(values, dtype=dtype, order="C")
    array.setflags(write=False)
    return array
