"""Int8 networks from a seed: random weights, with scales that keep every layer alive.

A builder carries a few sample images along. The reference runs each layer on them, and the results decide its
scales: each output channel gets about the same spread around its own mean, as batch normalisation does, and
the output's scale covers the values that occur. A network's output therefore depends on its input however
deep it is, and neither saturates nor vanishes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

import numpy as np

from onchip.microcontroller.int8.factors import Scale
from onchip.microcontroller.int8.model import Conv, Depthwise, FullyConnected, Int8, Pair
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import run, sums
from onchip.microcontroller.made.flatbuffer import FileOperator, FileTensor, write

__all__ = [
    "Activation",
    "Builder",
    "Map",
    "Padding",
    "Reals",
    "covering",
    "int8_tensor",
    "whole_tensor",
]

Activation = Literal["NONE", "RELU", "RELU_N1_TO_1", "RELU6"]
Padding = Literal["SAME", "VALID"]
Reals = np.ndarray[Any, np.dtype[np.float64]]

_ACTIVATION = {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}
_RANGE = {"NONE": (-np.inf, np.inf), "RELU": (0.0, np.inf), "RELU_N1_TO_1": (-1.0, 1.0), "RELU6": (0.0, 6.0)}
_PADDING = {"SAME": 0, "VALID": 1}
_SHARES = Scale(1 / 256, -128)
_FEW = 8
"""The fewest values of a channel that give its spread."""


@dataclass(frozen=True)
class Map:
    """A tensor while its network is built: its index in the file, its scale, its values for the samples."""

    index: int
    shape: tuple[int, ...]
    scale: Scale
    samples: tuple[Int8, ...]

    def reals(self) -> list[Reals]:
        return [(x.astype(np.float64) - self.scale.zero_point) * self.scale.scale for x in self.samples]


class Builder:
    """A network under construction. Equal calls on equal seeds give equal bytes."""

    def __init__(self, seed: int = 0, samples: int = 2) -> None:
        # This generator's stream never changes, unlike that of numpy's newer ones.
        self.random = np.random.RandomState(seed)
        self.samples = samples
        self.tensors: list[FileTensor] = []
        self.operators: list[FileOperator] = []
        self.inputs: list[int] = []

    # -- ends ------------------------------------------------------------------------------------------------

    def input(
        self, shape: tuple[int, ...], scale: float = 1 / 128, zero_point: int = 0, *, floats: bool = False
    ) -> Map:
        """Add an input of bytes, or of floats that are quantised at once."""
        on = Scale(_single(scale), zero_point)
        name = f"input{len(self.inputs)}" if self.inputs else "input"
        if floats:
            outside = self._add(FileTensor(name, shape, "FLOAT32"))
            inside = self._add(int8_tensor(f"{name}_bytes", shape, on))
            self.operators.append(FileOperator("QUANTIZE", (outside,), (inside,), "QuantizeOptions"))
            self.inputs.append(outside)
        else:
            inside = self._add(int8_tensor(name, shape, on))
            self.inputs.append(inside)
        return Map(inside, shape, on, tuple(self._bytes(shape) for _ in range(self.samples)))

    def constant(self, shape: tuple[int, ...], scale: float = 1 / 64) -> Map:
        """Add random bytes as a second operand of `add` and `mul`."""
        data, on = self._bytes(shape), Scale(_single(scale), int(self.random.randint(-20, 21)))
        index = self._add(replace(int8_tensor(f"constant{len(self.tensors)}", shape, on), data=data))
        return Map(index, shape, on, (data,) * self.samples)

    def file(self, *outputs: Map, floats: bool = False) -> bytes:
        """Return the file with these outputs, converted back to floats if `floats`."""
        ends = [output.index for output in outputs]
        if floats:
            ends = [self._add(FileTensor(f"output{i}", o.shape, "FLOAT32")) for i, o in enumerate(outputs)]
            for output, end in zip(outputs, ends, strict=True):
                self.operators.append(
                    FileOperator("DEQUANTIZE", (output.index,), (end,), "DequantizeOptions")
                )
        return write(self.tensors, self.operators, self.inputs, ends)

    # -- sums of products ------------------------------------------------------------------------------------

    def conv(
        self,
        x: Map,
        channels: int,
        kernel: int | Pair = 1,
        stride: int | Pair = 1,
        *,
        padding: Padding = "SAME",
        activation: Activation = "NONE",
        dilation: int | Pair = 1,
        groups: int = 1,
        per_tensor: bool = False,
        negative: float = 0.0,
    ) -> Map:
        """Add a convolution; a share `negative` of the channels has a negative scale of weights."""
        weights = self._bytes((channels, *_two(kernel), x.shape[3] // groups), low=-127)
        options = _window(padding, stride, activation, dilation)
        shape = _slid(x.shape, channels, kernel, stride, dilation, padding)
        operator = FileOperator("CONV_2D", (), (), "Conv2DOptions", options)
        return self._weighted(operator, x, weights, 0, shape, activation, per_tensor, negative)

    def depthwise(
        self,
        x: Map,
        kernel: int | Pair = 3,
        stride: int | Pair = 1,
        *,
        padding: Padding = "SAME",
        activation: Activation = "NONE",
        dilation: int | Pair = 1,
        multiplier: int = 1,
        per_tensor: bool = False,
        negative: float = 0.0,
    ) -> Map:
        """Add a depthwise convolution with `multiplier` output channels for each of the input."""
        channels = x.shape[3] * multiplier
        weights = self._bytes((1, *_two(kernel), channels), low=-127)
        options = {**_window(padding, stride, activation, dilation), "DepthMultiplier": multiplier}
        shape = _slid(x.shape, channels, kernel, stride, dilation, padding)
        operator = FileOperator("DEPTHWISE_CONV_2D", (), (), "DepthwiseConv2DOptions", options)
        return self._weighted(operator, x, weights, 3, shape, activation, per_tensor, negative)

    def fully_connected(
        self, x: Map, channels: int, *, activation: Activation = "NONE", per_tensor: bool = True
    ) -> Map:
        """Add a product with a matrix, of a vector or of every row of vectors."""
        deep = x.shape[-1] if len(x.shape) == 2 else prod(x.shape)
        weights = self._bytes((channels, deep), low=-127)
        options: dict[str, int | float] = {"FusedActivationFunction": _ACTIVATION[activation]}
        operator = FileOperator("FULLY_CONNECTED", (), (), "FullyConnectedOptions", options)
        shape = (prod(x.shape) // deep, channels)
        return self._weighted(operator, x, weights, 0, shape, activation, per_tensor, 0.0)

    def _weighted(
        self,
        operator: FileOperator,
        x: Map,
        weights: Int8,
        axis: int,
        shape: tuple[int, ...],
        activation: Activation,
        per_tensor: bool,
        negative: float,
    ) -> Map:
        """Add the operator with scales and biases fitted to its sums for the samples."""
        channels = weights.shape[axis]

        def rows(scales: tuple[float, ...], bias: np.ndarray[Any, Any]) -> list[FileTensor]:
            zeros = (0,) * len(scales)
            of_sums = tuple(_single(x.scale.scale * scale) for scale in scales)
            held = FileTensor("weights", weights.shape, "INT8", weights, scales, zeros, axis)
            return [held, FileTensor("bias", bias.shape, "INT32", bias, of_sums, zeros)]

        draft = rows((1.0,), np.zeros(channels, np.int32))
        found = self._sums(operator, x, draft, int8_tensor("draft", shape, Scale(x.scale.scale, 0)))
        scales, bias = self._fitted(found, x.scale.scale, channels, per_tensor, negative)
        reals = [(acc + bias) * (x.scale.scale * np.asarray(scales)) for acc in found]
        return self._made(operator, [x], shape, covering(reals, activation), rows(scales, bias))

    def _sums(self, operator: FileOperator, x: Map, rows: list[FileTensor], out: FileTensor) -> list[Reals]:
        """Return the operator's sums of products for each sample, without biases."""
        inner = self.tensors[x.index]
        node = replace(operator, inputs=(0, 1, 2), outputs=(3,))
        content = write([replace(inner, data=None), *rows, out], [node], [0], [3])
        [layer] = model_of(content, name="draft", where="draft").layers
        assert isinstance(layer, Conv | Depthwise | FullyConnected)
        return [sums(layer, sample) for sample in x.samples]

    def _fitted(
        self, found: Sequence[Reals], inner: float, channels: int, per_tensor: bool, negative: float
    ) -> tuple[tuple[float, ...], np.ndarray[Any, Any]]:
        """Return (scales of weights, biases) for a spread of about 1 and a mean of about 0 per channel."""
        flat = np.concatenate([acc.reshape(-1, channels) for acc in found]).astype(np.int64)
        few = flat.shape[0] < _FEW or per_tensor
        seen = flat.reshape(-1, 1) if few else flat
        count = seen.shape[0]
        mean = np.sum(seen, axis=0) / count
        square = np.sum(seen * seen, axis=0) / count  # sums of integers: the same in any order
        spread = np.maximum(np.sqrt(np.maximum(square - mean * mean, 0.0)), 1.0)
        wanted = 0.7 + 0.6 * self.random.random_sample(1 if per_tensor else channels)
        signs = np.where(self.random.random_sample(wanted.size) < negative, -1.0, 1.0)
        scales = tuple(_single(s) for s in np.broadcast_to(wanted * signs / (spread * inner), wanted.shape))
        moved = (self.random.random_sample(channels) - 0.5) * spread
        return scales, np.round(moved if few else moved - mean).astype(np.int32)

    # -- two maps --------------------------------------------------------------------------------------------

    def add(self, x: Map, y: Map, *, activation: Activation = "NONE") -> Map:
        reals = [a + b for a, b in zip(x.reals(), y.reals(), strict=True)]
        return self._pair("ADD", "AddOptions", x, y, reals, activation)

    def mul(self, x: Map, y: Map, *, activation: Activation = "NONE") -> Map:
        reals = [a * b for a, b in zip(x.reals(), y.reals(), strict=True)]
        return self._pair("MUL", "MulOptions", x, y, reals, activation)

    def _pair(
        self, kind: str, table: str, x: Map, y: Map, reals: Sequence[Reals], activation: Activation
    ) -> Map:
        operator = FileOperator(kind, (), (), table, {"FusedActivationFunction": _ACTIVATION[activation]})
        return self._made(operator, [x, y], reals[0].shape, covering(reals, activation))

    def concat(self, *maps: Map, axis: int = 3) -> Map:
        """Concatenate maps, all on the coarsest of their scales."""
        on = max((x.scale for x in maps), key=lambda s: s.scale)
        moved = [x if x.scale == on else self.quantize(x, on) for x in maps]
        shape = np.concatenate([x.samples[0] for x in maps], axis=axis).shape
        operator = FileOperator("CONCATENATION", (), (), "ConcatenationOptions", {"Axis": axis})
        return self._made(operator, moved, shape, on)

    # -- windows and maps ------------------------------------------------------------------------------------

    def average_pool(
        self, x: Map, kernel: int | Pair, stride: int | Pair | None = None, *, padding: Padding = "VALID"
    ) -> Map:
        return self._pool("AVERAGE_POOL_2D", x, kernel, stride, padding)

    def max_pool(
        self, x: Map, kernel: int | Pair, stride: int | Pair | None = None, *, padding: Padding = "VALID"
    ) -> Map:
        return self._pool("MAX_POOL_2D", x, kernel, stride, padding)

    def _pool(
        self, kind: str, x: Map, kernel: int | Pair, stride: int | Pair | None, padding: Padding
    ) -> Map:
        size, step = _two(kernel), _two(kernel if stride is None else stride)
        options = _window(padding, step, "NONE", None)
        options |= {"FilterHeight": size[0], "FilterWidth": size[1]}
        shape = _slid(x.shape, x.shape[3], size, step, 1, padding)
        return self._made(FileOperator(kind, (), (), "Pool2DOptions", options), [x], shape, x.scale)

    def mean(
        self, x: Map, axes: tuple[int, ...] = (1, 2), *, keep: bool = True, scale: Scale | None = None
    ) -> Map:
        """Add the mean over some axes, on the input's scale unless another is given."""
        shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape) if keep or i not in axes)
        operator = FileOperator("MEAN", (), (), "ReducerOptions", {"KeepDims": int(keep)})
        return self._made(operator, [x], shape, scale or x.scale, [whole_tensor("axes", axes)])

    def mean_channels_first(self, x: Map) -> Map:
        """Add a mean as converted from another layout: a transpose, a mean over columns, one over rows."""
        order = (0, 3, 1, 2)
        shape = tuple(x.shape[axis] for axis in order)
        first = len(self.operators)
        turned = self._append(
            FileOperator("TRANSPOSE", (), (), "TransposeOptions"),
            [x],
            shape,
            x.scale,
            [whole_tensor("order", order)],
        )
        for axis in (3, 2):
            shape = shape[:axis]
            operator = FileOperator("MEAN", (), (), "ReducerOptions", {"KeepDims": 0})
            turned = self._append(
                operator, [replace(x, index=turned)], shape, x.scale, [whole_tensor("axis", (axis,))]
            )
        return Map(turned, shape, x.scale, self._run(self.operators[first:], [x], turned))

    def pad(self, x: Map, padding: tuple[int, int, int, int], channels: Pair = (0, 0)) -> Map:
        """Add padding; `padding` is (top, left, bottom, right)."""
        top, left, bottom, right = padding
        amounts = ((0, 0), (top, bottom), (left, right), channels)
        shape = tuple(n + sum(pair) for n, pair in zip(x.shape, amounts, strict=True))
        return self._made(
            FileOperator("PAD", (), (), "PadOptions"),
            [x],
            shape,
            x.scale,
            [whole_tensor("paddings", amounts)],
        )

    def resize(
        self,
        x: Map,
        size: Pair,
        mode: Literal["nearest", "bilinear"] = "nearest",
        *,
        align_corners: bool = False,
        half_pixel_centers: bool = False,
    ) -> Map:
        kind, table = {
            "nearest": ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
            "bilinear": ("RESIZE_BILINEAR", "ResizeBilinearOptions"),
        }[mode]
        flags = {"AlignCorners": int(align_corners), "HalfPixelCenters": int(half_pixel_centers)}
        operator = FileOperator(kind, (), (), table, {**flags})
        return self._made(operator, [x], (1, *size, x.shape[3]), x.scale, [whole_tensor("size", size)])

    def reshape(self, x: Map, shape: tuple[int, ...]) -> Map:
        index = self._append(
            FileOperator("RESHAPE", (), (), "ReshapeOptions"),
            [x],
            shape,
            x.scale,
            [whole_tensor("shape", shape)],
        )
        return Map(index, shape, x.scale, tuple(sample.reshape(shape) for sample in x.samples))

    # -- element by element ----------------------------------------------------------------------------------

    def quantize(self, x: Map, on: Scale) -> Map:
        on = Scale(_single(on.scale), on.zero_point)
        return self._made(FileOperator("QUANTIZE", (), (), "QuantizeOptions"), [x], x.shape, on)

    def softmax(self, x: Map, beta: float = 1.0) -> Map:
        operator = FileOperator("SOFTMAX", (), (), "SoftmaxOptions", {"Beta": beta})
        return self._made(operator, [x], x.shape, _SHARES)

    def logistic(self, x: Map) -> Map:
        return self._made(FileOperator("LOGISTIC", (), ()), [x], x.shape, _SHARES)

    def hard_swish(self, x: Map) -> Map:
        reals = [v * np.clip(v + 3, 0, 6) / 6 for v in x.reals()]
        on = covering(reals, "NONE")
        on = Scale(_single(max(on.scale, x.scale.scale / 100)), on.zero_point)
        return self._made(FileOperator("HARD_SWISH", (), (), "HardSwishOptions"), [x], x.shape, on)

    def prelu(self, x: Map) -> Map:
        """Add a PReLU with a slope for each channel."""
        alpha, on = self._bytes((1, 1, x.shape[3])), Scale(_single(1 / 256), 10)
        slopes = replace(int8_tensor("slopes", alpha.shape, on), data=alpha)
        times = (alpha.astype(np.float64) - on.zero_point) * on.scale
        reals = [np.where(v >= 0, v, v * times) for v in x.reals()]
        return self._made(FileOperator("PRELU", (), ()), [x], x.shape, covering(reals, "NONE"), [slopes])

    # -- pieces ----------------------------------------------------------------------------------------------

    def _bytes(self, shape: tuple[int, ...], low: int = -128) -> Int8:
        values: Int8 = self.random.randint(low, 128, shape).astype(np.int8)
        return values

    def _add(self, tensor: FileTensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def _append(
        self,
        operator: FileOperator,
        maps: Sequence[Map],
        shape: tuple[int, ...],
        on: Scale,
        constants: Sequence[FileTensor] = (),
    ) -> int:
        """Append the operator, its constants behind its operands; return the tensor that it makes."""
        held = [self._add(replace(row, name=f"{row.name}{len(self.tensors)}")) for row in constants]
        made = self._add(int8_tensor(f"map{len(self.tensors)}", shape, on))
        inputs = (*(x.index for x in maps), *held)
        self.operators.append(replace(operator, inputs=inputs, outputs=(made,)))
        return made

    def _made(
        self,
        operator: FileOperator,
        maps: Sequence[Map],
        shape: tuple[int, ...],
        on: Scale,
        constants: Sequence[FileTensor] = (),
    ) -> Map:
        """Append the operator, and return its output with the values for the samples."""
        made = self._append(operator, maps, shape, on, constants)
        return Map(made, shape, on, self._run(self.operators[-1:], maps, made))

    def _run(self, operators: Sequence[FileOperator], maps: Sequence[Map], made: int) -> tuple[Int8, ...]:
        """Run some of the file's operators on the samples of the maps, as a network of their own."""
        used = dict.fromkeys(t for op in operators for t in (*op.inputs, *op.outputs))
        used.pop(-1, None)  # an operand that is left out
        place = {-1: -1} | {t: i for i, t in enumerate(used)}
        fed = {x.index: x for x in maps if self.tensors[x.index].data is None}
        out = self.tensors[made]
        if self._names_only(operators, maps[0], out):
            return tuple(sample.reshape(out.shape) for sample in maps[0].samples)
        content = write(
            [self.tensors[t] for t in used],
            [
                replace(
                    op, inputs=tuple(place[t] for t in op.inputs), outputs=tuple(place[t] for t in op.outputs)
                )
                for op in operators
            ],
            [place[t] for t in fed],
            [place[made]],
        )
        model = model_of(content, name="part", where="part")
        return tuple(
            run(model, [x.samples[i] for x in fed.values()])[0].reshape(out.shape)
            for i in range(self.samples)
        )

    @staticmethod
    def _names_only(operators: Sequence[FileOperator], x: Map, out: FileTensor) -> bool:
        """Return whether the operators return the bytes unchanged: they are then no network of their own."""
        moving = all(op.type in ("MEAN", "PAD", "QUANTIZE", "TRANSPOSE") for op in operators)
        same = ((x.scale.scale,), (x.scale.zero_point,)) == (out.scales, out.zero_points)
        return moving and same and prod(x.shape) == prod(out.shape)


def _single(value: float) -> float:
    """Return the nearest 32-bit float."""
    return float(np.float32(value))


def int8_tensor(name: str, shape: tuple[int, ...], on: Scale) -> FileTensor:
    return FileTensor(name, shape, "INT8", None, (on.scale,), (on.zero_point,))


def whole_tensor(name: str, values: Any) -> FileTensor:
    """Return a constant of 32-bit integers."""
    data = np.asarray(values, np.int32)
    return FileTensor(name, data.shape, "INT32", data)


def _two(size: int | Pair) -> Pair:
    return (size, size) if isinstance(size, int) else size


def _window(
    padding: Padding, stride: int | Pair, activation: Activation, dilation: int | Pair | None
) -> dict[str, int | float]:
    (down, across) = _two(stride)
    found: dict[str, int | float] = {
        "Padding": _PADDING[padding],
        "StrideH": down,
        "StrideW": across,
        "FusedActivationFunction": _ACTIVATION[activation],
    }
    if dilation is not None:
        rows, columns = _two(dilation)
        found |= {"DilationHFactor": rows, "DilationWFactor": columns}
    return found


def _slid(
    shape: tuple[int, ...],
    channels: int,
    kernel: int | Pair,
    stride: int | Pair,
    dilation: int | Pair,
    padding: Padding,
) -> tuple[int, ...]:
    """Return the shape that a window makes of a map."""
    sizes = []
    for size, k, s, d in zip(shape[1:3], _two(kernel), _two(stride), _two(dilation), strict=True):
        span = d * (k - 1) + 1 if padding == "VALID" else 1
        sizes.append((size - span) // s + 1)
    return (1, *sizes, channels)


def covering(reals: Sequence[Reals], activation: Activation = "NONE") -> Scale:
    """Return the scale on which the values behind an activation, zero included, fill the bytes."""
    low, high = _RANGE[activation]
    room = 1 + 4 / math.sqrt(sum(v.size for v in reals))  # a small sample misses the extremes
    least = float(np.clip(room * min(v.min() for v in reals), low, 0.0))
    most = float(np.clip(room * max(v.max() for v in reals), 0.0, high))
    scale = _single(max(most - least, 1e-3) / 255)
    return Scale(scale, int(np.clip(round(-128 - least / scale), -128, 127)))
