"""The legal distances of single layers of every kind: by bytes in the order promised, and by the checker."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.check.operator_overlap import prove_overlap
from onchip.check.rules import Broken
from onchip.microcontroller.segments.group import StageChoice, figures
from onchip.microcontroller.segments.layers import Layers, layers_of
from onchip.network import Geometry, Network, OperatorSpec
from oracles.segments import legal, lone_times


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
    steps = {"pixels": number(1, 3), "channels": number(0, 6)} if number(0, 2) else {}
    given = (1, height, width, channels)
    padding = tuple(number(0, 3) for _ in range(4))
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
    kernel, stride = (number(1, 3), number(1, 3)), (number(1, 4), number(1, 4))
    dilation = (number(1, 3), number(1, 2))
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
    """Legal where no byte is lost, negative distances and those between two that lose one included."""
    (layer,), network = net.layers, net.network
    geometry = network.operators[0].geometry
    assert geometry is not None
    turned = net.mirrored() if reverse else net
    x, y = network.tensors[layer.reads[0]].bytes, network.tensors[layer.makes].bytes
    found = figures(turned, [StageChoice((0,))], resident=layer.reads[0], alone=True).distances
    assert found is not None
    found = found.mirrored(x, y) if reverse else found
    wanted = legal(lone_times(geometry, x, y, reverse=reverse))
    assert {by for by in range(-x, y + 1) if by in found} == wanted
    assert found.span(x, y) == min(max(by + x, y) - min(by, 0) for by in wanted)
    edges = [by for by in range(-x, y) if (by in wanted) != (by + 1 in wanted)]
    for by in {at + beside for at in edges for beside in (0, 1)}:
        assert accepted(network, reverse, by) == (by in wanted)


def accepted(network: Network, reverse: bool, by: int) -> bool:
    """Whether the checker proves the layer's output `by` bytes below its first input."""
    (op,) = network.operators
    assert op.geometry is not None
    walking = replace(op, geometry=replace(op.geometry, traversal="reverse" if reverse else "forward"))
    try:
        prove_overlap(replace(network, operators=(walking,)), 0, op.outputs[0], op.inputs[0], by)
    except Broken as refused:
        return refused.rule != "overlap-unsafe"
    return True


@settings(max_examples=40)
@pytest.mark.parametrize("kind", KINDS)
@given(st.data(), st.booleans())
def test_legal_distances_are_those_at_which_no_byte_is_lost(
    kind: str, data: st.DataObject, reverse: bool
) -> None:
    exact(data.draw(layers(kind)), reverse)


@pytest.mark.campaign
@settings(max_examples=250)
@pytest.mark.parametrize("kind", KINDS)
@given(st.data(), st.booleans())
def test_so_it_is_for_thousands_of_layers(kind: str, data: st.DataObject, reverse: bool) -> None:
    exact(data.draw(layers(kind)), reverse)
