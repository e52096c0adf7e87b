"""Convolution and depthwise kernels, interpreted byte by byte: the bytes of the reference, at the closest
distance to their input that their contract allows."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import Walk, Windowed, distance, drive, fixed_point, random_input, windowed

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import Conv, Depthwise, Int8
from onchip.microcontroller.int8.reference import layer_output
from onchip.microcontroller.kernel_language import Fault, Function, Pointer, Ram
from onchip.microcontroller.kernels.conv import CHUNK, ConvShape, conv, conv_words, run_words
from onchip.microcontroller.kernels.depthwise import CHUNK as DEPTHWISE_CHUNK
from onchip.microcontroller.kernels.depthwise import depthwise, depthwise_words
from onchip.microcontroller.kernels.windows import conv_shape, depthwise_shape

FURTHER = st.integers(0, 9)
"""Bytes beyond the closest distance: farther is as safe as near."""
FORMS: st.SearchStrategy[Forms] = st.sampled_from(get_args(Forms))


def run_overlapped(
    layer: Windowed, function: Function, words: list[int], walk: Walk, patch: int, further: int = 0
) -> Int8:
    """The output, made over the input at the contract's distance; nothing else is in RAM but the patch."""
    x = random_input(layer)
    made = layer.output_shape
    size, apart = int(np.prod(made)), distance(layer, walk) + further
    # Forward, the output lies below the input; in reverse its end lies above the input's end.
    source, target = (0, x.size + apart - size) if walk.reverse else (apart, 0)
    below = min(source, target)
    source, target = source - below, target - below
    end = max(source + x.size, target + size)
    ram = Ram(end + patch)
    ram.put(Pointer("in", source), x.tobytes())
    out = Pointer("out", target)
    drive(
        function,
        layer,
        words,
        ram,
        Pointer("in", source),
        out,
        reverse=walk.reverse,
        patch=Pointer("patch", end),
    )
    made_bytes: Int8 = np.frombuffer(ram.get(out, size), np.int8).reshape(made)
    return made_bytes


@pytest.mark.thorough
@given(
    layer=windowed(depthwise=False),
    pixels=st.integers(1, 3),
    reverse=st.booleans(),
    further=FURTHER,
    forms=FORMS,
)
@settings(max_examples=60)
def test_convolutions_make_the_reference_s_bytes_over_their_input(
    layer: Conv, pixels: int, reverse: bool, further: int, forms: Forms
) -> None:
    shape = conv_shape(layer, pixels=pixels, reverse=reverse, forms=forms)
    walk = Walk(
        pixels, 1 if layer.output_shape[3] // layer.groups % CHUNK and layer.groups > 1 else CHUNK, reverse
    )
    got = run_overlapped(layer, conv("c", shape), conv_words(layer, shape), walk, shape.patch_bytes, further)
    assert np.array_equal(got, layer_output(layer, [random_input(layer)]))


@pytest.mark.parametrize("outputs", [22, 32])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("forms", ["vector", "narrow"])
def test_windows_that_are_gathered_as_one_run_are_gathered_inside_the_map_too(
    outputs: int, reverse: bool, forms: Forms
) -> None:
    """A first convolution of an image, three short lines of three channels: inside, too."""
    rng = np.random.default_rng(outputs)
    layer = Conv(
        name="c",
        inputs=(0,),
        output=1,
        input_shapes=((1, 5, 9, 3),),
        output_shape=(1, 5, 9, outputs),
        weights=rng.integers(-127, 128, (outputs, 3, 3, 3)).astype(np.int8),
        stride=(1, 1),
        dilation=(1, 1),
        padding=(1, 1, 1, 1),
        groups=1,
        **fixed_point(rng, outputs, 1 << 10, (-9, -7)),  # type: ignore[arg-type]
    )
    shape = conv_shape(layer, pixels=3, reverse=reverse, forms=forms)
    assert shape.joined
    words = conv_words(layer, shape)
    got = run_overlapped(layer, conv("c", shape), words, Walk(3, CHUNK, reverse), shape.patch_bytes)
    assert np.array_equal(got, layer_output(layer, [random_input(layer)]))


@pytest.mark.thorough
@given(layer=windowed(depthwise=True), reverse=st.booleans(), further=FURTHER, forms=FORMS)
@settings(max_examples=60)
def test_depthwise_convolutions_make_the_reference_s_bytes_over_their_input(
    layer: Depthwise, reverse: bool, further: int, forms: Forms
) -> None:
    shape = depthwise_shape(layer, reverse=reverse, forms=forms)
    walk = Walk(1, DEPTHWISE_CHUNK, reverse)
    got = run_overlapped(layer, depthwise("d", shape), depthwise_words(layer, shape), walk, 0, further)
    assert np.array_equal(got, layer_output(layer, [random_input(layer)]))


@pytest.mark.thorough
@given(layer=st.one_of(windowed(depthwise=False), windowed(depthwise=True)), reverse=st.booleans())
@settings(max_examples=25)
def test_lines_may_be_columns(layer: Windowed, reverse: bool) -> None:
    """A kernel with its taps transposed makes the map column by column, wherever the pixels lie."""
    _, _, width, depth = layer.input_shapes[0]
    _, _, made_width, outputs = layer.output_shape
    steps = {"reverse": reverse, "columns": True, "in_step": width * depth, "out_step": made_width * outputs}
    if isinstance(layer, Conv):
        shape = conv_shape(layer, **steps)  # type: ignore[arg-type]
        words = conv_words(layer, shape, columns=True)
        function, patch = conv("c", shape), shape.patch_bytes
    else:
        function = depthwise("d", depthwise_shape(layer, **steps))  # type: ignore[arg-type]
        words, patch = depthwise_words(layer, columns=True), 0
    x = random_input(layer)
    size = int(np.prod(layer.output_shape))
    ram = Ram(x.size + size + patch)
    ram.put(Pointer("in", 0), x.tobytes())
    out = Pointer("out", x.size)
    drive(
        function,
        layer,
        words,
        ram,
        Pointer("in", 0),
        out,
        reverse=reverse,
        columns=True,
        patch=Pointer("patch", x.size + size),
    )
    got = np.frombuffer(ram.get(out, size), np.int8).reshape(layer.output_shape)
    assert np.array_equal(got, layer_output(layer, [x]))


def test_a_byte_less_than_the_distance_is_caught() -> None:
    """The guard that the others rely on: one byte closer, a pointwise layer reads what it has written."""
    rng = np.random.default_rng(3)
    layer = Conv(
        name="c",
        inputs=(0,),
        output=1,
        input_shapes=((1, 2, 6, 4),),
        output_shape=(1, 2, 6, 8),
        weights=rng.integers(-127, 128, (8, 1, 1, 4)).astype(np.int8),
        bias=np.zeros(8, np.int32),
        multiplier=np.full(8, 1 << 30, np.int32),
        shift=np.full(8, -6, np.int32),
        input_offset=1,
        output_offset=0,
        low=-128,
        high=127,
    )
    function, x = conv("c", conv_shape(layer, pixels=2)), random_input(layer)
    apart = distance(layer, Walk(2, CHUNK, False)) - 1
    ram = Ram(x.size + 96 + apart)
    ram.put(Pointer("in", apart), x.tobytes())
    with pytest.raises(Fault, match="is out's by now"):
        drive(function, layer, conv_words(layer), ram, Pointer("in", apart), Pointer("out", 0))


@given(run=st.integers(1, 13))
def test_words_of_a_run_give_every_weight_once(run: int) -> None:
    weights = np.arange(1, run + 1, dtype=np.int8)[None]
    packed, words = run_words(weights)[0], -(-run // 4)
    seen = [
        (4 * w if w < words - 1 or run % 4 == 0 or run < 4 else run - 4) + i
        for w in range(words)
        for i in range(4)
        if packed[4 * w + i]
    ]
    assert sorted(seen) == list(range(run))
    assert [int(v) for v in packed if v] == [int(weights[0, at]) for at in seen]


def test_a_pointwise_kernel_needs_no_patch() -> None:
    assert ConvShape(channels=8).patch_bytes == 0
