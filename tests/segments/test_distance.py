"""The smallest safe distance of single layers of every kind, against byte tags in the order promised."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.network import Geometry, Network, OperatorSpec
from onchip.segments.group import StageChoice, figures
from onchip.segments.layers import Layers, layers_of


def one_layer(geometry: Geometry, *, beside: tuple[int, ...] = ()) -> Layers:
    """The layer alone, one byte an element; it reads the tensors of shapes `beside` as well."""
    shapes = {"x": geometry.input, **dict.fromkeys(["other"] if beside else [], beside), "y": geometry.output}
    network = Network.build(
        "one",
        [(name, prod(shape), "activation" if name == "y" else "input") for name, shape in shapes.items()],
        [OperatorSpec("layer", "Layer", [n for n in shapes if n != "y"], ["y"], geometry=geometry)],
        ["y"],
    )
    found = layers_of(network)
    assert not isinstance(found, str)
    return found


def safe(net: Layers, distance: int, *, reverse: bool = False) -> bool:
    """Whether no byte is read after it was written over, by tags on every byte.

    `net` is mirrored if `reverse`; then the chunks of a pixel come from its last, which may be smaller.
    """
    (layer,) = net.layers
    source, made = net.maps[layer.reads[0]], net.maps[layer.makes]
    chunks = [(at, min(at + layer.chunk, made.pixel)) for at in range(0, made.pixel, layer.chunk)]
    if reverse:
        chunks = [(made.pixel - end, made.pixel - at) for at, end in reversed(chunks)]
    written: set[int] = set()
    for row in range(made.rows):
        for column in range(0, made.columns, layer.step):
            end = min(column + layer.step, made.columns)
            rows, columns = layer.rows[0].reads((row, row + 1)), layer.columns[0].reads((column, end))
            for low, high in chunks:
                for y in range(*rows):
                    for x in range(*columns):
                        first = distance + y * source.row + x * source.pixel
                        if not written.isdisjoint(range(first, first + source.pixel)):
                            return False
                for x in range(column, end):
                    start = row * made.row + x * made.pixel
                    written |= set(range(start + low, start + high))
    return True


@given(st.integers(1, 9), st.integers(1, 12), st.integers(1, 12))
def test_a_matrix_product_has_the_papers_footprint(m: int, n: int, k: int) -> None:
    net = one_layer(Geometry("fully_connected", (m, k), (m, n), layout="NHWC", channels=1))
    found = figures(net, [StageChoice((0,))], resident=net.layers[0].reads[0]).distance
    assert found is not None
    assert max(m * k + found, m * n) == max(m * n, m * k) + min(n, k) - 1


KINDS = (
    "conv",
    "depthwise",
    "pool",
    "mean",
    "pad",
    "elementwise",
    "rowwise",
    "concat",
    "product",
)


@st.composite
def layers(draw: st.DrawFn, kind: str) -> Layers:
    """A layer of this kind over a small map, in steps of several pixels and chunks of channels."""

    def number(low: int, high: int) -> int:
        return draw(st.integers(low, high))

    height, width, channels, out = number(1, 7), number(1, 7), number(1, 4), number(1, 6)
    given, steps = (1, height, width, channels), {"pixels": number(1, 3), "channels": number(0, 6)}
    padding = tuple(number(0, 2) for _ in range(4))
    match kind:
        case "elementwise" | "rowwise":
            beside = given if kind == "elementwise" and draw(st.booleans()) else ()
            return one_layer(Geometry(kind, given, given, layout="NHWC", **steps), beside=beside)
        case "concat":
            joined = (1, height, width, channels + out)
            made = Geometry("concat", given, joined, layout="NHWC", **steps)
            return one_layer(made, beside=(1, height, width, out))
        case "pad":
            rows, columns = height + padding[0] + padding[2], width + padding[1] + padding[3]
            padded = (1, rows, columns, channels)
            return one_layer(Geometry("pad", given, padded, padding=padding, layout="NHWC", **steps))
        case "mean":
            made = Geometry("pool", given, (1, 1, 1, channels), (height, width), (1, 1), layout="NHWC")
            return one_layer(replace(made, padding=(0, 0, 0, 0), dilation=(1, 1), **steps))
        case "product":
            shapes = (height * width, channels), (height * width, out)
            return one_layer(Geometry("fully_connected", *shapes, layout="NHWC", **steps))
    kernel, stride = (number(1, 3), number(1, 3)), (number(1, 3), number(1, 2))
    dilation = (1, 1) if kind == "pool" else (number(1, 2), number(1, 2))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    rows = (height + padding[0] + padding[2] - spans[0]) // stride[0] + 1
    columns = (width + padding[1] + padding[3] - spans[1]) // stride[1] + 1
    multiplied = channels * number(1, 2) if kind == "depthwise" else channels
    made_shape = (1, max(rows, 1), max(columns, 1), out if kind == "conv" else multiplied)
    groups = channels if kind == "depthwise" else 1
    return one_layer(
        Geometry(kind, given, made_shape, kernel, stride, padding, dilation, groups, "NHWC", **steps)
    )


def exact(net: Layers, reverse: bool) -> None:
    """Safe as far as the planner says, and not one byte further."""
    net = net.mirrored() if reverse else net
    found = figures(net, [StageChoice((0,))], resident=net.layers[0].reads[0], alone=True).distance
    assert found is not None
    assert safe(net, found, reverse=reverse)
    assert found == 0 or not safe(net, found - 1, reverse=reverse)


@settings(max_examples=60)
@pytest.mark.parametrize("kind", KINDS)
@given(st.data(), st.booleans())
def test_the_distance_is_safe_and_one_byte_less_is_not(kind: str, data: st.DataObject, reverse: bool) -> None:
    exact(data.draw(layers(kind)), reverse)


@pytest.mark.slow
@settings(max_examples=1000)
@pytest.mark.parametrize("kind", KINDS)
@given(st.data(), st.booleans())
def test_so_it_is_for_thousands_of_layers(kind: str, data: st.DataObject, reverse: bool) -> None:
    exact(data.draw(layers(kind)), reverse)
