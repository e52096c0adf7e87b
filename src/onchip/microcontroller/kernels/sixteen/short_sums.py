"""Sums of products of 16-bit numbers that fit 32 bits: four or six channels at a time over runs of a row.

Biases and sums have 64 bits in the files, but weights tell how far a sum can go. Where none leaves 32 bits,
products are added as they are on every core, and a sum is scaled by one high product: with 16 bits more, the
multiplier of 15 bits has 31, and what lies below the result is dropped by the instruction,

    (sum * (multiplier << 16) / 2**32, rounded down, + half) >> right,   half = 2**(right - 1)

for shifts of 17 bits and more, as factors below 1/4 have. A run is what lies in one piece: a row of the
window, or a tap where places are left out. Weights lie in the order of their use: four numbers of each of the
channels of a chunk (with packed halves as 0, 2, 1, 3, so that two widened words hold 0, 1 and 2, 3), or eight
with vectors and byte by byte, filled up with zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import Int8, Pair
from onchip.microcontroller.int8.sixteen.sums import Sums16, TransposeConv16
from onchip.microcontroller.int8.sixteen.values import HIGHEST, LOWEST, reduced
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.builder import Value
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Const, Expr, Type, Var, as_expr
from onchip.microcontroller.kernels.numbers import number_at, put_number

__all__ = ["ShortShape", "is_short", "shape_of", "short_sums", "short_words"]

HEAD = 2
"""Words in front of the chunks."""
CHUNK, SIX, QUAD, EIGHT = 4, 6, 4, 8
LEAST_RIGHT = 17
BEFORE = 2
"""Words that a pointer to vectors of weights lies before them: GCC copies pointers to load at no offset."""
Layer = Sums16 | TransposeConv16
Way = Literal["packed", "bytes", "few", "vector"]
"""Halves in pairs, byte by byte, the same with few registers, or eight numbers at a time."""
TURNS: dict[Way, int] = {"packed": 2, "bytes": 0, "few": 0, "vector": 1}
"""Turns of a loop over a run that the compiler is asked to make in one."""


@dataclass(frozen=True, kw_only=True)
class ShortShape:
    """The parameters that a kernel is specialised on; `size` are rows and columns of the input."""

    channels: int
    outputs: int
    size: Pair
    kernel: Pair
    stride: Pair
    before: Pair
    dilation: Pair = (1, 1)
    groups: int = 1
    padded: tuple[bool, bool] = (False, False)
    """True if windows hang over the map: rows, columns."""
    turned: bool = False
    """True for a transposed convolution."""
    narrow: bool = False
    clamped: bool = False
    way: Way = "packed"

    @property
    def deep(self) -> int:
        """Channels that an output reads."""
        return self.channels // self.groups

    @property
    def joined(self) -> bool:
        """True if the taps of a row lie in one piece, and a row that is cut begins with a whole word."""
        return (
            not self.turned
            and self.groups == 1
            and self.dilation[1] == 1
            and (not self.padded[1] or self.deep % self.step == 0)
        )

    @property
    def step(self) -> int:
        return EIGHT if self.way in ("vector", "bytes") else QUAD

    @property
    def chunk(self) -> int:
        """Channels that are made at a time."""
        return SIX if self.way in ("bytes", "few") and self.groups == 1 else CHUNK

    @property
    def run(self) -> int:
        """Numbers of a run."""
        return self.deep * (self.kernel[1] if self.joined else 1)

    def run_words(self, count: int) -> int:
        """Return the words of a run's weights, for so many channels."""
        return -(-self.run // self.step) * self.step // 4 * count


def is_short(layer: Layer) -> bool:
    """Return whether no sum leaves 32 bits, factors are small, and chunks stay within their groups."""
    groups = layer.groups if isinstance(layer, Sums16) else 1
    if groups > 1 and layer.weights.shape[0] // groups % CHUNK:
        return False
    if layer.narrow:
        return True
    weights = np.abs(layer.weights.astype(np.int64)).reshape(len(layer.weights), -1).sum(axis=1)
    bound = (weights << 15) + np.abs(layer.bias)
    return bool((bound < 1 << 31).all() and (15 - layer.shift >= LEAST_RIGHT).all())


def shape_of(layer: Layer, forms: Forms) -> ShortShape:
    """Return the shape of the kernel that a layer needs."""
    outputs, down, across, _ = layer.weights.shape
    _, rows, columns, seen = layer.input_shapes[0]
    ways: dict[Forms, Way] = {"packed": "packed", "vector": "vector", "plain": "bytes", "narrow": "few"}
    common = ShortShape(
        channels=seen // 2,
        outputs=outputs,
        size=(rows, columns),
        kernel=(down, across),
        stride=layer.stride,
        before=layer.before if isinstance(layer, TransposeConv16) else layer.padding[:2],
        turned=isinstance(layer, TransposeConv16),
        narrow=layer.narrow,
        clamped=(layer.low, layer.high) != (LOWEST, HIGHEST),
        way=ways[forms],
    )
    if isinstance(layer, TransposeConv16):
        return common
    top, left, bottom, right = layer.padding
    return replace(
        common,
        dilation=layer.dilation,
        groups=layer.groups,
        padded=(top > 0 or bottom > 0, left > 0 or right > 0),
    )


def short_words(layer: Layer, shape: ShortShape) -> list[int]:
    """Return the constants: bounds, then of each chunk biases, weights and factors."""
    words, runs = [layer.low, layer.high], shape.kernel[0] * (1 if shape.joined else shape.kernel[1])
    rows = layer.weights.reshape(shape.outputs, runs, shape.run)
    for first in range(0, shape.outputs, shape.chunk):
        chunk = slice(first, first + shape.chunk)
        words += [int(bias) for bias in layer.bias[chunk]]
        words += _weights(rows[chunk], shape)
        for multiplier, shift in zip(layer.multiplier[chunk], layer.shift[chunk], strict=True):
            if shape.narrow:
                words += [int(multiplier), int(shift)]
            else:
                right = 15 - int(shift) - 16
                words += [reduced(int(multiplier)) << 16, right, 1 << (right - 1)]
    return words


def _weights(rows: Int8, shape: ShortShape) -> list[int]:
    """Return the words of a chunk's weights [channels, runs, run]."""
    step = shape.step
    count, runs, run = rows.shape
    filled = np.pad(rows, ((0, 0), (0, 0), (0, -run % step))).reshape(count, runs, -1, step)
    if shape.way == "packed":
        filled = filled[..., [0, 2, 1, 3]]
    return [int(w) for w in np.ascontiguousarray(filled.transpose(1, 2, 0, 3)).view("<i4").ravel()]


def short_sums(name: str, shape: ShortShape) -> Function:
    """Return the kernel: output pixels [x0, x1) of row y."""
    what = "Transposed convolution" if shape.turned else "Sums of products"
    k = Kernel(
        name, f"{what} of 16-bit numbers to {shape.outputs} channels, in 32 bits: pixels [x0, x1) of a row."
    )
    lines, out, x0, x1, y = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1"), k.number("y")
    weights = k.flash("weights")
    emit = _Chunks(k, shape, weights)
    source = k.let("map", k.line(lines, 0))
    down = _taps(k, shape, 0, y)
    whole = shape.outputs // shape.chunk * shape.chunk
    for x in k.loop(x0, x1, name="x"):
        across = _taps(k, shape, 1, x)
        o = k.let("o", out + x * (2 * shape.outputs))
        w = k.RegAlloc("w", weights + HEAD)
        for c in k.loop(0, whole, shape.chunk, name="c"):
            emit.chunk(shape.chunk, c, w, source, (down, across), o)
        if shape.outputs - whole:
            emit.chunk(shape.outputs - whole, as_expr(whole), w, source, (down, across), o)
    return k.finish()


@dataclass(frozen=True)
class _Taps:
    """The taps of a window in one direction: tap i of [first, last) is `tap(i)`, at place `at(i)`."""

    first: Expr
    last: Expr
    tap: Callable[[Expr], Expr]
    at: Callable[[Expr], Expr]


def _taps(k: Kernel, shape: ShortShape, axis: Literal[0, 1], place: Var | Expr) -> _Taps:
    """Return those of a row (axis 0) or a column of the output."""
    size, many, stride = shape.size[axis], shape.kernel[axis], shape.stride[axis]
    before, dilation, name = shape.before[axis], shape.dilation[axis], ("down", "across")[axis]
    if shape.turned:
        moved = k.let(f"{name}_moved", place + before)
        begin, last = k.let(f"{name}_first_tap", moved % stride), k.let(f"{name}_last", moved // stride)
        first = k.let(f"{name}_from", k.most(last - (size - 1), 0))
        fitting = (as_expr(many - 1 + stride) - begin) // stride
        end = k.let(f"{name}_to", k.least(last + 1, fitting))
        return _Taps(first, end, lambda i: begin + i * stride, lambda i: last - i)
    start = k.let(f"{name}_start", place * stride - before)
    if not shape.padded[axis]:
        return _Taps(as_expr(0), as_expr(many), lambda i: i, lambda i: start + i * dilation)
    first = k.let(f"{name}_from", k.most((as_expr(dilation - 1) - start) // dilation, 0))
    end = k.let(f"{name}_to", k.least((as_expr(size + dilation - 1) - start) // dilation, many))
    return _Taps(first, end, lambda i: i, lambda i: start + i * dilation)


class _Chunks:
    """Emits chunks of up to four channels of a pixel."""

    def __init__(self, k: Kernel, shape: ShortShape, weights: Var) -> None:
        self.k, self.shape = k, shape
        if shape.clamped:
            self.bounds = [k.constant(weights, i, name) for i, name in enumerate(("low", "high"))]

    def chunk(self, count: int, c: Expr, w: Var, source: Expr, taps: tuple[_Taps, _Taps], out: Expr) -> None:
        k, shape = self.k, self.shape
        biases = k.FlashLoad(w, *(f"bias{i}" for i in range(count)))
        sums = [k.RegAlloc(f"sum{i}", bias) for i, bias in enumerate(biases)]
        for at, weights, length in self._runs(count, c, w, source, taps):
            self._run(sums, at, weights, length)
        k.set(w, w + shape.kernel[0] * (1 if shape.joined else shape.kernel[1]) * shape.run_words(count))
        for i, total in enumerate(sums):
            if shape.narrow:
                multiplier, shift = k.FlashLoad(w, "multiplier", "shift")
                made = k.let("made", call("scaled", total, multiplier, shift))
            else:
                multiplier, right, half = k.FlashLoad(w, "multiplier", "right", "half")
                made = k.let("made", call("half_floor_plus", total, multiplier, half) >> right)
            clamped = k.least(k.most(made, self.bounds[0]), self.bounds[1]) if shape.clamped else None
            put_number(k, out, c + i, clamped or call("saturate16", made))

    def _runs(
        self, count: int, c: Expr, w: Var, source: Expr, taps: tuple[_Taps, _Taps]
    ) -> Iterator[tuple[Var, Var, Value]]:
        """Yield, inside loops, each run: where it begins, its weights, and its length in numbers."""
        k, shape, (down, across) = self.k, self.shape, taps
        columns, channels, words = shape.size[1], shape.channels, shape.run_words(count)
        before = BEFORE if shape.way == "vector" else 0
        first: Value = 0
        if shape.groups > 1:
            first = k.let("group", c // (shape.outputs // shape.groups) * shape.deep)
        for ky in k.loop(down.first, down.last, name="ky", unroll=1):
            row = k.let("row", down.at(ky) * columns)
            tap = down.tap(ky)
            if shape.joined:
                place = (row + across.at(across.first)) * channels
                cut = across.first * (shape.deep // shape.step * (shape.step // 4) * count)
                length: Value = shape.run
                if shape.padded[1]:
                    length = k.let("length", (across.last - across.first) * shape.deep)
                yield (
                    k.RegAlloc("at", source + place * 2),
                    k.RegAlloc("taps", w + (tap * words + cut - before)),
                    length,
                )
                continue
            for kx in k.loop(across.first, across.last, name="kx", unroll=1):
                place = (row + across.at(kx)) * channels + first
                weights = k.RegAlloc("taps", w + ((tap * shape.kernel[1] + across.tap(kx)) * words - before))
                yield k.RegAlloc("at", source + place * 2), weights, shape.run

    def _run(self, sums: Sequence[Var], at: Var, w: Var, length: Value) -> None:
        k, step = self.k, self.shape.step
        numbers = as_expr(length)
        for _ in k.loop(0, numbers // step, name="word", unroll=TURNS[self.shape.way]):
            self._step(sums, at, w, step)
            k.set(at, at + 2 * step)
        if isinstance(numbers, Const) and numbers.value % step:
            self._step(sums, at, w, numbers.value % step)

    def _step(self, sums: Sequence[Var], at: Var, w: Var, numbers: int) -> None:
        """Emit the products of some numbers, and move past their weights."""
        k, way, step = self.k, self.shape.way, self.shape.step
        if way == "vector":
            x = k.RAMLoad(at, 0, Kind.VECTOR, name="x", count=None if numbers == EIGHT else 2 * numbers)
            for i, total in enumerate(sums):
                k.set(total, call("dot8", x, k.flash8(w, 2 * i + BEFORE, "weights8"), total))
            k.set(w, w + 2 * len(sums))
        elif way == "packed":
            pairs = [k.RAMLoad(at, 4 * i, Kind.PAIR, name="x") for i in range(numbers // 2)]
            last = number_at(k, at, numbers - 1, name="x") if numbers % 2 else None
            for begin in range(0, len(sums), 2):
                some = sums[begin : begin + 2]
                loaded = k.FlashLoad(w, *(f"word{i}" for i in range(len(some))), type=Type.WORD)
                for total, word in zip(some, loaded, strict=True):
                    for pair, widen in zip(pairs, ("widen_even", "widen_odd"), strict=False):
                        k.set(total, call("dot2", pair, call(widen, word), total))
                    if last is not None:
                        k.set(total, call("mla", last, call(f"byte{numbers // 2}", word), total))
        else:
            for i in range(numbers):
                x = number_at(k, at, i, name="x")
                for c, total in enumerate(sums):
                    k.set(total, call("mla_in_turn", x, k.constant_byte(w, step * c + i), total))
            k.set(w, w + len(sums) * (step // 4))
