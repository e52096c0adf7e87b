"""Kernels over their inputs at every legal distance, also below 0 and between two that lose a byte.

The interpreter refuses to read a byte that something else was written on, whether its value matters or not:
what holds here holds for every load that a kernel makes.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import Windowed, drive, random_input, windowed
from test_kernel_layers import FACTORS, SEEDS, SHAPES, check, factors, head

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import Add, AveragePool, HardSwish, Layer, MaxPool, Pad, Softmax
from onchip.microcontroller.int8.reference import layer_output
from onchip.microcontroller.int8.shapes import window_count
from onchip.microcontroller.kernel_language import Pointer, Ram
from onchip.microcontroller.kernels import kernel_for
from onchip.microcontroller.network import geometry_of
from oracles.segments import legal, lone_times

Map = tuple[int, int, int, int]


def distances(layer: Layer, *, reverse: bool, shared: bool = False, seed: int = 0) -> list[int]:
    """Legal distances at which output and input meet: those at the edges of holes, and some more."""
    given, made = int(np.prod(layer.input_shapes[0])), int(np.prod(layer.output_shape))
    found = legal(lone_times(geometry_of(layer, shared=shared), given, made, reverse=reverse))
    inside = [by for by in sorted(found) if -given < by < made]
    edges = [by for by in inside if by - 1 not in found or by + 1 not in found]
    rng = random.Random(seed)
    return sorted({*edges[:4], *edges[-2:], *rng.sample(inside, min(3, len(inside)))})


def made_over(layer: Windowed, by: int, *, reverse: bool, shared: bool) -> bool:
    """Whether the kernel makes the reference's bytes with its output `by` bytes below its input."""
    use = kernel_for(layer, reverse=reverse, shared=shared)
    x, size = random_input(layer), int(np.prod(layer.output_shape))
    source, target = max(by, 0), max(-by, 0)
    end = max(source + x.size, target + size)
    ram = Ram(end + use.workspace)
    ram.put(Pointer("in", source), x.tobytes())
    out, patch = Pointer("out", target), Pointer("patch", end)
    drive(use.function, layer, use.words, ram, Pointer("in", source), out, reverse=reverse, patch=patch)
    got = np.frombuffer(ram.get(out, size), np.int8).reshape(layer.output_shape)
    return bool(np.array_equal(got, layer_output(layer, [x])))


LAYERS = st.one_of(windowed(depthwise=False), windowed(depthwise=True))


@pytest.mark.thorough
@given(layer=LAYERS, reverse=st.booleans(), shared=st.booleans())
@settings(max_examples=20)
def test_windows_at_legal_distances(layer: Windowed, reverse: bool, shared: bool) -> None:
    for by in distances(layer, reverse=reverse, shared=shared):
        assert made_over(layer, by, reverse=reverse, shared=shared)


@pytest.mark.campaign
@given(layer=LAYERS, reverse=st.booleans(), shared=st.booleans())
@settings(max_examples=50)
def test_many_windows_at_legal_distances(layer: Windowed, reverse: bool, shared: bool) -> None:
    for by in distances(layer, reverse=reverse, shared=shared):
        assert made_over(layer, by, reverse=reverse, shared=shared)


def at_all(layer: Layer, *, reverse: bool, seed: int) -> None:
    """The kernel's bytes are the reference's wherever its output may lie."""
    given, made = int(np.prod(layer.input_shapes[0])), int(np.prod(layer.output_shape))
    for i, by in enumerate(distances(layer, reverse=reverse, seed=seed)):
        forms: Forms = ("packed", "vector", "plain")[(seed + i) % 3]
        check(layer, reverse=reverse, apart=made - given - by if reverse else by, seed=seed, forms=forms)


@given(
    shape=SHAPES,
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    pads=st.tuples(*[st.integers(0, 2)] * 4),
    greatest=st.booleans(),
    reverse=st.booleans(),
)
@settings(max_examples=30)
def test_pools_at_legal_distances(
    shape: Map,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pads: tuple[int, ...],
    greatest: bool,
    reverse: bool,
) -> None:
    padding = tuple(min(pad, kernel[axis % 2] - 1) for axis, pad in enumerate(pads))
    made = [window_count(shape[1 + a], kernel[a], stride[a], 1, padding[a], padding[2 + a]) for a in (0, 1)]
    if 0 in made:
        return
    common = head("l", [shape], (1, made[0], made[1], shape[3]))
    common |= {"kernel": kernel, "stride": stride, "padding": padding, "low": -100, "high": 90}
    at_all(MaxPool(**common) if greatest else AveragePool(**common), reverse=reverse, seed=sum(pads))


@pytest.mark.thorough
@given(shape=SHAPES, real=st.floats(1e-3, 0.9), reverse=st.booleans(), seed=SEEDS)
@settings(max_examples=30)
def test_softmax_and_tables_at_legal_distances(shape: Map, real: float, reverse: bool, seed: int) -> None:
    (m,), (s,) = factors(real)
    softmax = Softmax(**head("l", [shape], shape), multiplier=m, shift=s + 20, diff_min=-200)
    at_all(softmax, reverse=reverse, seed=seed)
    table = np.random.default_rng(seed).integers(-128, 128, 256).astype(np.int8)
    at_all(HardSwish(**head("l", [shape], shape), table=table), reverse=reverse, seed=seed)


@given(shape=SHAPES, reals=st.tuples(FACTORS, FACTORS, FACTORS), reverse=st.booleans(), seed=SEEDS)
@settings(max_examples=20)
def test_sums_at_legal_distances(
    shape: Map, reals: tuple[float, float, float], reverse: bool, seed: int
) -> None:
    (ma, mb, m), (sa, sb, s) = factors(*reals)
    constant = np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)
    common = head("l", [shape], shape) | {"constant": constant, "input_offsets": (3, -4), "multiplier": m}
    common |= {"shift": s, "output_offset": 5, "low": -128, "high": 127}
    layer = Add(multipliers=(ma, mb), shifts=(sa, sb), left_shift=20, **common)
    at_all(layer, reverse=reverse, seed=seed)


@given(shape=SHAPES, pads=st.tuples(*[st.integers(0, 2)] * 4), reverse=st.booleans())
@settings(max_examples=20)
def test_padding_at_legal_distances(shape: Map, pads: tuple[int, ...], reverse: bool) -> None:
    made = (1, shape[1] + pads[0] + pads[2], shape[2] + pads[1] + pads[3], shape[3])
    layer = Pad(**head("l", [shape], made), padding=pads, channels=(0, 0), value=-7)
    at_all(layer, reverse=reverse, seed=sum(pads))
