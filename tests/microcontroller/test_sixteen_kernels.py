"""Kernels of 16-bit numbers, interpreted in the forms of every core, against the layer's own arithmetic."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.factors import add_factors, mul_factor
from onchip.microcontroller.int8.model import Int8, Own
from onchip.microcontroller.int8.shapes import window_count
from onchip.microcontroller.int8.sixteen.elements import UP, Does16, Linear16, Pair16
from onchip.microcontroller.int8.sixteen.sums import Sums16, TransposeConv16
from onchip.microcontroller.int8.sixteen.values import HIGHEST, LOWEST, to_bytes
from onchip.microcontroller.kernel_language import Pointer, Ram, run
from onchip.microcontroller.kernels.own import OWN
from onchip.microcontroller.kernels.sixteen.short_sums import is_short

FORMS: tuple[Forms, ...] = get_args(Forms)


def made_by_kernel(layer: Own, inputs: list[Int8], forms: Forms) -> Int8:
    """What the kernel makes, row by row; each row in two calls, which begin and end within it."""
    use = OWN[type(layer)](layer)
    use = use.by_forms(forms) if use.by_forms else use
    function = use.make("kernel", use.shape)
    _, rows, columns, wide = layer.output_shape
    starts = np.cumsum([0, *(x.size for x in inputs)])
    ram = Ram(int(starts[-1]) + rows * columns * wide)
    lines = [Pointer(f"in{i}", int(at)) for i, at in enumerate(starts[:-1])]
    for pointer, x in zip(lines, inputs, strict=True):
        ram.put(pointer, x.tobytes())
    out = Pointer("out", int(starts[-1]))
    for y in range(rows):
        for x0, x1 in ((0, columns // 2), (columns // 2, columns)):
            given = {"lines": lines, "out": out + y * columns * wide, "x0": x0, "x1": x1, "y": y}
            run(function, ram, {**given, "weights": use.words})
    made: Int8 = np.frombuffer(ram.get(out, rows * columns * wide), np.int8)
    return made.reshape(layer.output_shape)


def some_numbers(rng: np.random.Generator, *shape: int) -> Int8:
    """Numbers of 16 bits as bytes, the extremes often among them."""
    found = rng.integers(LOWEST, HIGHEST + 1, shape)
    return to_bytes(np.where(rng.random(shape) < 0.1, rng.choice([LOWEST, HIGHEST, 0, -1], shape), found))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Pair16, list[Int8]]:
    """A function of two maps, with its inputs; scales are those that a file could have."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    does: Does16 = draw(st.sampled_from(get_args(Does16)))
    rows, columns, channels = draw(st.integers(1, 2)), draw(st.integers(1, 5)), draw(st.integers(1, 11))
    spread = draw(st.sampled_from([(rows, columns, channels), (1, 1, channels), (1, 1, 1)]))
    a, b, made = (float(np.float32(2.0**power)) for power in rng.uniform(-14, -8, 3))
    factors: dict[str, Any] = {}
    if does == "mul":
        factors = {"factor": mul_factor(a, b, made)}
    elif does not in ("least", "most"):
        equal = rng.random() < 0.3
        sums = add_factors(a, a if equal else b, max(made, max(a, b) * 2.0**-13), UP)
        factors = {"first": sums.inputs[0], "second": sums.inputs[1], "factor": sums.output}
    if does not in ("least", "most") and rng.random() < 0.3:
        low, high = sorted(int(v) for v in rng.integers(LOWEST, HIGHEST + 1, 2))
        factors |= {"low": low, "high": high}
    other = some_numbers(rng, 1, *spread)
    shape = (1, rows, columns, 2 * channels)
    held = draw(st.booleans())
    shapes = (shape,) if held else (shape, other.shape)
    layer = Pair16(
        name="layer",
        inputs=tuple(range(len(shapes))),
        output=9,
        input_shapes=shapes,
        output_shape=shape,
        does=does,
        constant=other if held else None,
        **factors,
    )
    return layer, [some_numbers(rng, 1, rows, columns, channels), *([] if held else [other])]


@pytest.mark.parametrize("forms", FORMS)
@given(case=pairs())
@settings(max_examples=60, deadline=None)
def test_functions_of_two_maps(forms: Forms, case: tuple[Pair16, list[Int8]]) -> None:
    layer, inputs = case
    assert made_by_kernel(layer, inputs, forms).tobytes() == layer.compute(inputs).tobytes()


@st.composite
def scalings(draw: st.DrawFn) -> tuple[Linear16, list[Int8]]:
    """A change of scale, or a bent one, between numbers of one and two bytes."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    read, made = draw(st.sampled_from([(2, 2), (2, 2), (2, 1), (1, 2)]))
    columns, channels = draw(st.integers(1, 5)), draw(st.integers(1, 7))
    above = (int(rng.integers(1 << 30, 1 << 31)), int(rng.integers(-9, 4)))
    below = draw(st.sampled_from([above, (int(rng.integers(1 << 30, 1 << 31)), int(rng.integers(-9, 4)))]))
    low, high = (LOWEST, HIGHEST) if made == 2 else (-128, 127)
    clamped = sorted(int(v) for v in rng.integers(low, high + 1, 2))
    zeros = draw(st.sampled_from([(0, 0), (0, 5), (-77, 0)]))
    layer = Linear16(
        name="layer",
        inputs=(0,),
        output=1,
        input_shapes=((1, 1, columns, read * channels),),
        output_shape=(1, 1, columns, made * channels),
        read=read,
        made=made,
        zero=zeros[0],
        above=above,
        below=below,
        turned=draw(st.booleans()),
        output_zero=zeros[1],
        low=draw(st.sampled_from([low, clamped[0]])),
        high=draw(st.sampled_from([high, clamped[1]])),
    )
    x = some_numbers(rng, 1, 1, columns, channels)
    return layer, [x if read == 2 else x.view("<i2").astype(np.int8)]


@pytest.mark.parametrize("forms", FORMS)
@given(case=scalings())
@settings(max_examples=60, deadline=None)
def test_changes_of_scale(forms: Forms, case: tuple[Linear16, list[Int8]]) -> None:
    layer, inputs = case
    assert made_by_kernel(layer, inputs, forms).tobytes() == layer.compute(inputs).tobytes()


def weighted(rng: np.random.Generator, shape: tuple[int, ...], large: bool, narrow: bool) -> dict[str, Any]:
    """Weights, biases and factors; `large` ones take sums of more than 32 bits."""
    channels, most = shape[0], 127 if large else 20
    clamped = rng.random() < 0.3
    low, high = sorted(int(v) for v in rng.integers(LOWEST, HIGHEST + 1, 2)) if clamped else (LOWEST, HIGHEST)
    return {
        "weights": rng.integers(-most, most + 1, shape).astype(np.int8),
        "bias": rng.integers(-(1 << 40), 1 << 40, channels)
        if large
        else rng.integers(-99999, 99999, channels),
        "multiplier": rng.integers(1 << 30, (1 << 31) - 1, channels).astype(np.int32),
        "shift": rng.integers(-12, 1 if narrow or large else -2, channels).astype(np.int32),
        "low": low,
        "high": high,
        "narrow": narrow,
    }


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[Sums16, list[Int8]]:
    """A convolution of any shape that a file can say, in groups or not."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    kernel = draw(st.sampled_from([(1, 1), (3, 3), (2, 4), (1, 5), (3, 1)]))
    stride, dilation = (draw(st.integers(1, 2)), draw(st.integers(1, 2))), draw(st.integers(1, 2))
    reach = [dilation * (size - 1) + 1 for size in kernel]
    padding = tuple(draw(st.sampled_from([0, 0, reach[axis % 2] - 1])) for axis in range(4))
    rows, columns = (draw(st.integers(r, r + 3)) for r in reach)
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    deep, wide = draw(st.sampled_from([1, 2, 3, 4, 7, 8, 16, 17])), draw(st.sampled_from([1, 2, 4, 5, 8]))
    narrow = draw(st.sampled_from([False, False, True]))
    made = (
        window_count(size, kernel[axis], stride[axis], dilation, padding[axis], padding[axis + 2])
        for axis, size in enumerate((rows, columns))
    )
    layer = Sums16(
        name="layer",
        inputs=(0,),
        output=1,
        input_shapes=((1, rows, columns, 2 * deep * groups),),
        output_shape=(1, *made, 2 * wide * groups),  # type: ignore[arg-type]
        stride=stride,
        dilation=(dilation, dilation),
        padding=padding,  # type: ignore[arg-type]
        groups=groups,
        **weighted(rng, (wide * groups, *kernel, deep), draw(st.integers(0, 4)) == 0, narrow),
    )
    return layer, [some_numbers(rng, 1, rows, columns, deep * groups)]


@pytest.mark.parametrize("forms", FORMS)
@given(case=convolutions())
@settings(max_examples=40, deadline=None)
def test_convolutions(forms: Forms, case: tuple[Sums16, list[Int8]]) -> None:
    layer, inputs = case
    assert made_by_kernel(layer, inputs, forms).tobytes() == layer.compute(inputs).tobytes()


@st.composite
def transposed(draw: st.DrawFn) -> tuple[TransposeConv16, list[Int8]]:
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    kernel, stride = draw(st.sampled_from([(1, 1), (3, 4), (2, 2), (1, 3)])), (draw(st.integers(1, 2)), 2)
    rows, columns, deep, outputs = (draw(st.integers(1, most)) for most in (3, 4, 9, 6))
    before = tuple(draw(st.integers(0, size - 1)) for size in kernel)
    made = (
        max(1, (size - 1) * stride[axis] + kernel[axis] - before[axis] - draw(st.integers(0, 1)))
        for axis, size in enumerate((rows, columns))
    )
    layer = TransposeConv16(
        name="layer",
        inputs=(0,),
        output=1,
        input_shapes=((1, rows, columns, 2 * deep),),
        output_shape=(1, *made, 2 * outputs),  # type: ignore[arg-type]
        stride=stride,
        before=before,  # type: ignore[arg-type]
        **weighted(rng, (outputs, *kernel, deep), draw(st.integers(0, 4)) == 0, False),
    )
    return layer, [some_numbers(rng, 1, rows, columns, deep)]


@pytest.mark.parametrize("forms", FORMS)
@given(case=transposed())
@settings(max_examples=40, deadline=None)
def test_transposed_convolutions(forms: Forms, case: tuple[TransposeConv16, list[Int8]]) -> None:
    layer, inputs = case
    assert made_by_kernel(layer, inputs, forms).tobytes() == layer.compute(inputs).tobytes()


def test_sums_of_more_than_32_bits_take_the_long_way() -> None:
    rng = np.random.default_rng(1)
    head: dict[str, Any] = {"name": "layer", "inputs": (0,), "output": 1, "stride": (1, 1)}
    head |= {"input_shapes": ((1, 1, 1, 16),), "output_shape": ((1, 1, 1, 8))}
    for large in (False, True):
        layer = Sums16(**head, **weighted(rng, (4, 1, 1, 8), large, False))
        assert is_short(layer) == (not large)
