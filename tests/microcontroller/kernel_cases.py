"""Random layers for the kernels' tests, how a program runs them line by line, and the distance between an
output and the input that it overwrites, counted from the kernels' contract alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from onchip.microcontroller.int8.model import AveragePool, Conv, Depthwise, Int8, MaxPool
from onchip.microcontroller.int8.shapes import window_count
from onchip.microcontroller.kernel_language import Function, Pointer, Ram, run

Windowed = Conv | Depthwise


def fixed_point(
    rng: np.random.Generator, channels: int, bound: int, shifts: tuple[int, int]
) -> dict[str, object]:
    """Biases, factors and offsets of a layer with weights."""
    low, high = sorted(int(v) for v in rng.integers(-128, 128, 2))
    clamped = rng.random() < 0.3
    return {
        "bias": rng.integers(-bound, bound, channels).astype(np.int32),
        "multiplier": rng.integers(1 << 30, (1 << 31) - 1, channels).astype(np.int32),
        "shift": rng.integers(shifts[0], shifts[1] + 1, channels).astype(np.int32),
        "input_offset": int(rng.integers(-127, 129)),
        "output_offset": int(rng.integers(-128, 128)),
        "low": low if clamped else -128,
        "high": high if clamped else 127,
    }


@st.composite
def windowed(draw: st.DrawFn, depthwise: bool) -> Windowed:
    """A convolution or depthwise convolution of any shape that the models' format can say."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    kernel = draw(st.sampled_from([(1, 1), (3, 3), (3, 3), (2, 1), (1, 4), (5, 3), (4, 2), (5, 5)]))
    stride = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    dilation = draw(st.sampled_from([(1, 1), (1, 1), (1, 1), (2, 1), (1, 2), (2, 2)]))
    reach = [dilation[axis] * (kernel[axis] - 1) + 1 for axis in (0, 1)]
    padding = tuple(draw(st.integers(0, reach[axis % 2] - 1)) for axis in range(4))
    least = [max(1, reach[axis] - padding[axis] - padding[axis + 2]) for axis in (0, 1)]
    rows = draw(st.integers(least[0], max(least[0], 7)))
    columns = draw(st.integers(least[1], max(least[1], 9)))
    many = draw(st.integers(1, 10))
    outputs = draw(st.integers(1, 9))
    groups = 1
    if depthwise:
        many = draw(st.sampled_from([many, many, 8, 12, 16, 20]))
        outputs = many * draw(st.sampled_from([1, 1, 1, 2, 3]))
    elif draw(st.integers(0, 4)) == 0:
        groups = draw(st.integers(2, 3))
        many, outputs = many * groups, outputs * groups
    shape = (1, rows, columns, many)
    made = tuple(
        window_count(shape[1 + a], kernel[a], stride[a], dilation[a], padding[a], padding[a + 2])
        for a in (0, 1)
    )
    shifts = draw(st.sampled_from([(-10, -4), (-6, -1), (-5, 0), (-3, 2)]))
    common = {
        "name": "layer",
        "inputs": (0,),
        "output": 1,
        "input_shapes": (shape,),
        "output_shape": (1, *made, outputs),
        "stride": stride,
        "dilation": dilation,
        "padding": padding,
        **fixed_point(rng, outputs, draw(st.sampled_from([100, 5000, 1 << 30])), shifts),
    }
    if depthwise:
        weights = rng.integers(-127, 128, (*kernel, outputs)).astype(np.int8)
        return Depthwise(weights=weights, depth_multiplier=outputs // many, **common)  # type: ignore[arg-type]
    weights = rng.integers(-127, 128, (outputs, *kernel, many // groups)).astype(np.int8)
    return Conv(weights=weights, groups=groups, **common)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Walk:
    """What a kernel promises: so many pixels a step, so many channels at a time, in which direction."""

    pixels: int
    channels: int
    reverse: bool


def distance(layer: Windowed | AveragePool | MaxPool, walk: Walk) -> int:
    """Bytes that the output must begin below the input (end above it, in reverse) at least, so that no byte
    is written before its last reader is done: by the contract, byte against byte."""
    _, rows, columns, depth = layer.input_shapes[0]
    _, made_rows, made_columns, outputs = layer.output_shape
    dilation = (1, 1) if isinstance(layer, AveragePool | MaxPool) else layer.dilation
    chunks = -(-outputs // walk.channels)
    lines = -(-made_columns // walk.pixels)

    def moment(y: int, x: int) -> int:
        row, column = (made_rows - 1 - y, made_columns - 1 - x) if walk.reverse else (y, x)
        return row * lines + column // walk.pixels

    needed = np.full((rows, columns), -1, np.int64)
    written = np.zeros((made_rows, made_columns, outputs), np.int64)
    for y in range(made_rows):
        for x in range(made_columns):
            step = moment(y, x)
            for i in range(layer.kernel[0]):
                for j in range(layer.kernel[1]):
                    row = y * layer.stride[0] - layer.padding[0] + i * dilation[0]
                    column = x * layer.stride[1] - layer.padding[1] + j * dilation[1]
                    if 0 <= row < rows and 0 <= column < columns:
                        needed[row, column] = max(needed[row, column], (step + 1) * chunks - 1)
            for c in range(outputs):
                chunk = c // walk.channels
                written[y, x, c] = step * chunks + (chunks - 1 - chunk if walk.reverse else chunk)
    reads, writes = np.repeat(needed.ravel(), depth), written.ravel()
    worst = 0
    for at, when in enumerate(writes):
        waiting = np.flatnonzero(reads > when)
        if waiting.size:
            late = (
                writes.size - at - (reads.size - int(waiting[-1])) if walk.reverse else at - int(waiting[0])
            )
            worst = max(worst, late + 1)
    return worst


def drive(
    function: Function,
    layer: Windowed,
    words: Sequence[int],
    ram: Ram,
    source: Pointer,
    target: Pointer,
    *,
    reverse: bool = False,
    columns: bool = False,
    patch: Pointer | None = None,
) -> None:
    """Every line of the layer's output, as a program calls the kernel: rows, or columns of the map."""
    _, rows, width, depth = layer.input_shapes[0]
    _, made_rows, made_columns, outputs = layer.output_shape
    across = 1 if columns else 0
    lines, length = (made_columns, made_rows) if columns else (made_rows, made_columns)
    size, along = (width, rows) if columns else (rows, width)
    in_pitch, out_pitch = (depth, outputs) if columns else (width * depth, made_columns * outputs)
    taps = layer.kernel[across]
    for y in reversed(range(lines)) if reverse else range(lines):
        top = y * layer.stride[across] - layer.padding[across]
        at = [top + i * layer.dilation[across] for i in range(taps)]
        inside = [i for i in range(taps) if 0 <= at[i] < size]
        arguments: dict[str, object] = {
            "lines": [source + row * in_pitch for row in at],
            "out": target + y * out_pitch,
            "x0": 0,
            "x1": length,
            "first": min(inside, default=0),
            "last": max(inside, default=-1) + 1,
            "width": along,
            "patch": patch,
            "weights": words,
        }
        call(function, ram, arguments)


@dataclass(frozen=True)
class Call:
    """A kernel called: what was in RAM, and where its pointers pointed."""

    function: Function
    arguments: Mapping[str, Any]
    ram: Ram
    before: bytes


_recorded: list[Call] | None = None


def call(function: Function, ram: Ram, arguments: Mapping[str, Any]) -> None:
    """Interprets a kernel, and remembers the call where `recording` asks for it."""
    if _recorded is not None:
        _recorded.append(Call(function, dict(arguments), ram, bytes(ram.bytes)))
    run(function, ram, arguments)


@contextmanager
def recording() -> Iterator[list[Call]]:
    """The calls made inside."""
    global _recorded
    outer, _recorded = _recorded, []
    yield _recorded
    _recorded = outer


def random_input(layer: Windowed, seed: int = 0) -> Int8:
    _, rows, columns, depth = layer.input_shapes[0]
    found: Int8 = np.random.default_rng(seed).integers(-128, 128, (1, rows, columns, depth)).astype(np.int8)
    return found
