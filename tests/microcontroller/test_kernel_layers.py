"""The other kernels, interpreted: the reference's bytes, over their input where they may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import Walk, call, distance, fixed_point

from onchip.base.errors import ModelError
from onchip.machines.cores import Forms
from onchip.microcontroller.int8.arithmetic import quantised_multiplier
from onchip.microcontroller.int8.model import (
    Add,
    AveragePool,
    Concat,
    Dequantize,
    Extremum,
    FullyConnected,
    HardSwish,
    Int8,
    Layer,
    MaxPool,
    Mean,
    Mul,
    Pad,
    Pairwise,
    PReLU,
    Resize,
    Softmax,
    SquaredDifference,
    Sub,
)
from onchip.microcontroller.int8.reference import bilinear_places, layer_output, nearest_places
from onchip.microcontroller.int8.shapes import window_count
from onchip.microcontroller.kernel_language import Pointer, Ram
from onchip.microcontroller.kernels import kernel_for, pool_sums_for, walk_of, workspace_bytes

Map = tuple[int, int, int, int]


def head(name: str, shapes: list[Map], made: Map) -> dict[str, Any]:
    return {
        "name": name,
        "inputs": tuple(range(len(shapes))),
        "output": len(shapes),
        "input_shapes": tuple(shapes),
        "output_shape": made,
    }


def made_by_kernel(
    layer: Layer, inputs: list[Int8], *, reverse: bool, apart: int | None = None, forms: Forms = "packed"
) -> Int8:
    """The layer's output, line by line; with `apart` over its first input, so many bytes ahead of it."""
    use = kernel_for(layer, reverse=reverse, forms=forms)
    assert (use.pixels, use.channels, use.workspace) == (*walk_of(layer), workspace_bytes(layer))
    sizes = [x.size for x in inputs]
    # Room behind the first input, so that an output ahead of it in reverse meets no other.
    at = [sum(sizes[:i]) + (64 if i else 0) for i in range(len(sizes) + 1)]
    size = int(np.prod(layer.output_shape))
    # And before it, so that one as far below it meets no constant operand, which lies at 0.
    low, workspace = 2 * size + 64, at[-1] + 3 * size + 128
    ram = Ram(workspace + use.workspace)
    pointers = [Pointer(f"in{i}", low + at[i]) for i in range(len(inputs))]
    for pointer, x in zip(pointers, inputs, strict=True):
        ram.put(pointer, x.tobytes())
    out = Pointer("out", low + at[-1])
    if apart is not None:
        out = Pointer("out", low + (sizes[0] + apart - size if reverse else -apart))
    _, rows, width, depth = layer.input_shapes[0]
    _, made_rows, made_width, outputs = layer.output_shape
    kernel, stride, top = 1, 1, 0
    if isinstance(layer, AveragePool | MaxPool):
        kernel, stride, top = layer.kernel[0], layer.stride[0], layer.padding[0]
    elif isinstance(layer, Mean):
        kernel = stride = rows if 1 in layer.axes else 1
    elif isinstance(layer, Pad):
        top = layer.padding[0]
    if use.operand is not None:
        ram.put(Pointer("operand", 0), use.operand.tobytes())
    for y in reversed(range(made_rows)) if reverse else range(made_rows):
        places = [y * stride - top + i for i in range(kernel)]
        inside = [i for i in range(kernel) if 0 <= places[i] < rows]
        lines = [pointers[0] + row * width * depth for row in places]
        if use.operand is not None:
            lines.append(Pointer("operand", 0) + y * width * depth)
        elif isinstance(layer, Pairwise) and layer.constant is None:
            shape = layer.input_shapes[1]
            lines.append(pointers[1] + (y * shape[2] * shape[3] if shape == layer.output_shape else 0))
        elif isinstance(layer, Concat):
            row_bytes = [shape[2] * shape[3] for shape in layer.input_shapes]
            lines = [p + y * each for p, each in zip(pointers, row_bytes, strict=True)]
            if layer.axis == 1:
                starts = np.cumsum([0, *(shape[1] for shape in layer.input_shapes)])
                part = int(np.searchsorted(starts, y, side="right")) - 1
                lines = [pointers[part] + (y - int(starts[part])) * row_bytes[part]]
        elif isinstance(layer, Resize) and layer.mode == "nearest":
            lines = [pointers[0] + int(nearest_places(layer, rows, made_rows)[y]) * width * depth]
        elif isinstance(layer, Resize):
            above, below, _ = bilinear_places(layer, rows, made_rows)
            lines = [pointers[0] + int(row[y]) * width * depth for row in (above, below)]
        call(
            use.function,
            ram,
            {
                "lines": lines,
                "out": out + y * made_width * outputs,
                "x0": 0,
                "x1": made_width,
                "first": min(inside, default=0),
                "last": max(inside, default=-1) + 1,
                "width": width,
                "y": y,
                "patch": Pointer("patch", workspace),
                "weights": use.words,
            },
        )
    made: Int8 = np.frombuffer(ram.get(out, size), np.int8).reshape(layer.output_shape)
    return made


def check(
    layer: Layer, *, reverse: bool, apart: int | None = None, seed: int = 0, forms: Forms = "packed"
) -> None:
    rng = np.random.default_rng(seed)
    inputs = [rng.integers(-128, 128, shape).astype(np.int8) for shape in layer.input_shapes]
    inputs = inputs[: len(layer.inputs)]
    got = made_by_kernel(layer, inputs, reverse=reverse, apart=apart, forms=forms)
    assert np.array_equal(got, layer_output(layer, inputs))


FORMS: st.SearchStrategy[Forms] = st.sampled_from(["packed", "vector", "plain"])
WIDER = st.tuples(
    st.just(1), st.integers(1, 2), st.integers(1, 4), st.sampled_from([1, 3, 4, 7, 8, 9, 16, 21, 33])
)
SHAPES = st.tuples(st.just(1), st.integers(1, 4), st.integers(1, 5), st.integers(1, 7))
SEEDS = st.integers(0, 1 << 20)
FACTORS = st.floats(1e-4, 0.999)


def factors(*reals: float) -> tuple[list[int], list[int]]:
    pairs = [quantised_multiplier(real) for real in reals]
    return [m for m, _ in pairs], [s for _, s in pairs]


@given(
    shape=SHAPES | WIDER,
    second=st.sampled_from(["map", "pixel", "one", "constant map", "constant pixel", "constant one"]),
    kind=st.sampled_from([Add, Add, Mul, Sub, SquaredDifference, Extremum]),
    reals=st.tuples(FACTORS | st.just(0.5), FACTORS | st.just(0.5), st.floats(1e-3, 1.9)),
    reverse=st.booleans(),
    seed=SEEDS,
    forms=FORMS,
)
@settings(max_examples=80)
def test_sums_and_products(
    shape: Map,
    second: str,
    kind: type[Pairwise],
    reals: tuple[float, float, float],
    reverse: bool,
    seed: int,
    forms: Forms,
) -> None:
    rng = np.random.default_rng(seed)
    other: Map = {"map": shape, "pixel": (1, 1, 1, shape[3])}.get(second.split()[-1], (1, 1, 1, 1))
    constant = rng.integers(-128, 128, other).astype(np.int8) if second.startswith("constant") else None
    (ma, mb, m), (sa, sb, s) = factors(*reals)
    low, high = sorted(int(v) for v in rng.integers(-128, 128, 2))
    common = head("l", [shape, other] if constant is None else [shape], shape) | {"constant": constant}
    if kind is Extremum:
        extreme = Extremum(greatest=bool(seed & 1), **common)
        check(extreme, reverse=reverse, apart=seed % 20, seed=seed, forms=forms)
        return
    common |= {
        "input_offsets": tuple(int(v) for v in rng.integers(-127, 129, 2)),
        "multiplier": m,
        "shift": s,
        "output_offset": int(rng.integers(-128, 128)),
        "low": low,
        "high": high,
    }
    if kind is not Mul:
        common |= {
            "multipliers": (ma, mb),
            "shifts": (sa, sb),
            "left_shift": 5 if kind is SquaredDifference else 20,
        }
    check(kind(**common), reverse=reverse, apart=seed % 20, seed=seed, forms=forms)


@given(
    shape=SHAPES | WIDER,
    one=st.booleans(),
    reals=st.tuples(FACTORS, FACTORS),
    reverse=st.booleans(),
    seed=SEEDS,
    forms=FORMS,
)
@settings(max_examples=25)
def test_prelu_and_tables(
    shape: Map, one: bool, reals: tuple[float, float], reverse: bool, seed: int, forms: Forms
) -> None:
    rng = np.random.default_rng(seed)
    (m, below), (s, below_shift) = factors(*reals)
    prelu = PReLU(
        **head("l", [shape], shape),
        alpha=rng.integers(-128, 128, 1 if one else shape[3]).astype(np.int8),
        input_offset=int(rng.integers(-127, 129)),
        alpha_offset=int(rng.integers(-127, 129)),
        multiplier=m,
        shift=s,
        multiplier_below=below,
        shift_below=below_shift,
        output_offset=int(rng.integers(-128, 128)),
    )
    check(prelu, reverse=reverse, apart=seed % 20, seed=seed, forms=forms)
    table = rng.integers(-128, 128, 256).astype(np.int8)
    looked_up = HardSwish(**head("l", [shape], shape), table=table)
    check(looked_up, reverse=reverse, apart=seed % 20, seed=seed, forms=forms)


@given(
    shape=SHAPES | WIDER,
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    pads=st.tuples(*[st.integers(0, 2)] * 4),
    greatest=st.booleans(),
    reverse=st.booleans(),
    further=st.integers(0, 12),
    forms=FORMS,
)
@settings(max_examples=50)
def test_pools(
    shape: Map,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pads: tuple[int, ...],
    greatest: bool,
    reverse: bool,
    further: int,
    forms: Forms,
) -> None:
    padding = tuple(min(pad, kernel[axis % 2] - 1) for axis, pad in enumerate(pads))
    made = [window_count(shape[1 + a], kernel[a], stride[a], 1, padding[a], padding[2 + a]) for a in (0, 1)]
    if 0 in made:
        return
    common = head("l", [shape], (1, made[0], made[1], shape[3]))
    common |= {"kernel": kernel, "stride": stride, "padding": padding, "low": -100, "high": 90}
    layer = MaxPool(**common) if greatest else AveragePool(**common)
    apart = distance(layer, Walk(1, shape[3], reverse)) + further
    check(layer, reverse=reverse, apart=apart, forms=forms)


@given(
    shape=SHAPES | WIDER,
    axes=st.sampled_from([(1,), (2,), (1, 2)]),
    real=st.floats(1e-3, 3.0),
    seed=SEEDS,
    forms=FORMS,
)
@settings(max_examples=40)
def test_means(shape: Map, axes: tuple[int, ...], real: float, seed: int, forms: Forms) -> None:
    (m,), (s,) = factors(real / max(1, np.prod([shape[a] for a in axes])))
    made = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    layer = Mean(
        **head("l", [shape], made),  # type: ignore[arg-type]
        axes=axes,
        input_offset=7,
        multiplier=m,
        shift=s,
        output_offset=-3,
    )
    check(layer, reverse=False, seed=seed, forms=forms)


@given(shape=SHAPES | WIDER, kind=st.sampled_from(["average", "greatest", "mean"]), seed=SEEDS, forms=FORMS)
@settings(max_examples=30)
def test_a_pool_over_a_map_takes_each_line_as_it_is_made(
    shape: Map, kind: str, seed: int, forms: Forms
) -> None:
    common, made = head("l", [shape], (1, 1, 1, shape[3])), (1, 1, 1, shape[3])
    window = {"kernel": shape[1:3], "stride": (1, 1), "padding": (0, 0, 0, 0), "low": -120, "high": 119}
    layer: AveragePool | MaxPool | Mean
    if kind == "mean":
        (m,), (s,) = factors(0.7 / (shape[1] * shape[2]))
        layer = Mean(**common, axes=(1, 2), input_offset=3, multiplier=m, shift=s, output_offset=5)
    else:
        layer = (AveragePool if kind == "average" else MaxPool)(**common, **window)
    sums, channels = pool_sums_for(layer, forms=forms), shape[3]
    x = np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)
    ram = Ram(x.size + 5 * channels)
    ram.put(Pointer("in", 0), x.tobytes())
    gathered, out = Pointer("sums", x.size), Pointer("out", x.size + 4 * channels)
    ram.put(gathered, bytes([sums.fill]) * (4 * channels))
    for y in range(shape[1]):
        line = Pointer("in", y * shape[2] * channels)
        call(sums.add, ram, {"lines": [line], "x0": 0, "x1": shape[2], "sums": gathered})
    call(sums.finish, ram, {"sums": gathered, "out": out, "weights": sums.words})
    got = np.frombuffer(ram.get(out, channels), np.int8).reshape(made)
    assert np.array_equal(got, layer_output(layer, [x]))


@given(
    shape=st.tuples(st.just(1), st.integers(1, 2), st.integers(1, 2), st.integers(1, 40)),
    real=st.floats(1e-3, 0.9),
    reverse=st.booleans(),
    seed=SEEDS,
)
@settings(max_examples=40)
def test_softmax(shape: Map, real: float, reverse: bool, seed: int) -> None:
    m, s = quantised_multiplier(real * (1 << 26))
    diff_min = -max(1, min(255, int(31 * (1 << 26) / (real * (1 << 26)))))
    layer = Softmax(**head("l", [shape], shape), multiplier=m, shift=s, diff_min=diff_min)
    check(layer, reverse=reverse, apart=seed % 20, seed=seed)


@pytest.mark.parametrize("channels", [2, 600, 1100])
def test_softmax_of_equal_values_of_any_number_of_channels(channels: int) -> None:
    m, s = quantised_multiplier(0.1 * (1 << 26))
    shape = (1, 1, 1, channels)
    layer = Softmax(**head("l", [shape], shape), multiplier=m, shift=s, diff_min=-255)
    x = np.full(shape, 5, np.int8)
    assert np.array_equal(made_by_kernel(layer, [x], reverse=False), layer_output(layer, [x]))


@given(
    shape=SHAPES | WIDER,
    pads=st.tuples(*[st.integers(0, 2)] * 4),
    channels=st.just((0, 0)) | st.tuples(st.integers(0, 2), st.integers(0, 2)),
    reverse=st.booleans(),
    forms=FORMS,
)
@settings(max_examples=30)
def test_padding(
    shape: Map, pads: tuple[int, int, int, int], channels: tuple[int, int], reverse: bool, forms: Forms
) -> None:
    made = (1, shape[1] + pads[0] + pads[2], shape[2] + pads[1] + pads[3], shape[3] + sum(channels))
    layer = Pad(**head("l", [shape], made), padding=pads, channels=channels, value=-7)
    check(layer, reverse=reverse, forms=forms)


@pytest.mark.thorough
@given(
    shape=SHAPES | WIDER,
    others=st.lists(st.integers(1, 4), min_size=1, max_size=2),
    axis=st.integers(1, 3),
    reverse=st.booleans(),
    forms=FORMS,
)
@settings(max_examples=30)
def test_concatenation(shape: Map, others: list[int], axis: int, reverse: bool, forms: Forms) -> None:
    shapes = [shape]
    for size in others:
        part = list(shape)
        part[axis] = size
        shapes.append(tuple(part))  # type: ignore[arg-type]
    made = list(shape)
    made[axis] = sum(part[axis] for part in shapes)
    layer = Concat(**head("l", shapes, tuple(made)), axis=axis)  # type: ignore[arg-type]
    check(layer, reverse=reverse, forms=forms)


@given(
    shape=SHAPES,
    made=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    bilinear=st.booleans(),
    flags=st.sampled_from([(False, False), (True, False), (False, True)]),
    reverse=st.booleans(),
)
@settings(max_examples=30)
def test_resizing(
    shape: Map, made: tuple[int, int], bilinear: bool, flags: tuple[bool, bool], reverse: bool
) -> None:
    layer = Resize(
        **head("l", [shape], (1, *made, shape[3])),
        mode="bilinear" if bilinear else "nearest",
        align_corners=flags[0],
        half_pixel_centers=flags[1],
    )
    check(layer, reverse=reverse)


@given(inputs=st.integers(1, 40), outputs=st.integers(1, 9), reverse=st.booleans(), seed=SEEDS)
@settings(max_examples=20)
def test_fully_connected(inputs: int, outputs: int, reverse: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    layer = FullyConnected(
        **head("l", [(1, 1, 1, inputs)], (1, 1, 1, outputs)),
        weights=rng.integers(-127, 128, (outputs, inputs)).astype(np.int8),
        **fixed_point(rng, outputs, 3000, (-9, -3)),
    )
    if inputs >= 4:
        check(layer, reverse=reverse, seed=seed)
        assert walk_of(layer) == (1, 2)
        assert workspace_bytes(layer) == 0


def test_what_no_kernel_makes_is_refused_by_name() -> None:
    layer = Dequantize(**head("the end", [(1, 1, 1, 1)], (1, 1, 1, 1)))
    with pytest.raises(ModelError, match="the end: no kernel makes Dequantize"):
        kernel_for(layer)


def test_equal_names_are_equal_code() -> None:
    shape = (1, 2, 2, 4)
    layers = [
        Softmax(**head(name, [shape], shape), multiplier=m, shift=20, diff_min=-20)
        for name, m in (("a", 1 << 30), ("b", (1 << 30) + 5))
    ]
    first, second = (kernel_for(layer).function for layer in layers)
    assert first == second
    assert kernel_for(layers[0], reverse=True).function.name != first.name
