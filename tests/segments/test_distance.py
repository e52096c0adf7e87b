"""The smallest safe distance of single layers, against byte tags in the order that the geometry promises."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.network import Geometry, Network, OperatorSpec
from onchip.segments.group import StageChoice, figures
from onchip.segments.layers import Layers, layers_of


def one_layer(geometry: Geometry) -> Layers:
    """The layer alone, one byte an element."""
    size = {"x": 1, "y": 1}
    for n in geometry.input:
        size["x"] *= n
    for n in geometry.output:
        size["y"] *= n
    network = Network.build(
        "one",
        [("x", size["x"], "input"), ("y", size["y"], "activation")],
        [OperatorSpec("layer", "Layer", ["x"], ["y"], geometry=geometry)],
        ["y"],
    )
    found = layers_of(network)
    assert not isinstance(found, str)
    return found


def safe(net: Layers, distance: int) -> bool:
    """Whether no byte is read after it was written over, by tags on every byte."""
    (layer,) = net.layers
    source, made = net.maps[layer.reads[0]], net.maps[layer.makes]
    written: set[int] = set()
    for row in range(made.rows):
        for column in range(0, made.columns, layer.step):
            end = min(column + layer.step, made.columns)
            rows, columns = layer.rows[0].reads((row, row + 1)), layer.columns[0].reads((column, end))
            for chunk in range(0, made.pixel, layer.chunk):
                for y in range(*rows):
                    for x in range(*columns):
                        first = distance + y * source.row + x * source.pixel
                        if any(byte in written for byte in range(first, first + source.pixel)):
                            return False
                for x in range(column, end):
                    start = row * made.row + x * made.pixel + chunk
                    written |= set(
                        range(start, min(start + layer.chunk, row * made.row + (x + 1) * made.pixel))
                    )
    return True


@given(st.integers(1, 9), st.integers(1, 12), st.integers(1, 12))
def test_a_matrix_product_has_the_papers_footprint(m: int, n: int, k: int) -> None:
    net = one_layer(Geometry("fully_connected", (m, k), (m, n), layout="NHWC", channels=1))
    found = figures(net, [StageChoice((0,))], resident=net.layers[0].reads[0]).distance
    assert found is not None
    assert max(m * k + found, m * n) == max(m * n, m * k) + min(n, k) - 1


@st.composite
def windows(draw: st.DrawFn) -> Geometry:
    height, width = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    kernel = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    stride = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    padding = tuple(draw(st.integers(0, 2)) for _ in range(4))
    rows = (height + padding[0] + padding[2] - kernel[0]) // stride[0] + 1
    columns = (width + padding[1] + padding[3] - kernel[1]) // stride[1] + 1
    channels, out = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    return Geometry(
        "conv",
        (1, height, width, channels),
        (1, max(rows, 1), max(columns, 1), out),
        kernel,
        stride,
        padding,
        (1, 1),
        1,
        "NHWC",
        "forward",
        draw(st.integers(1, 3)),
        draw(st.integers(0, out)),
    )


@settings(max_examples=200)
@given(windows())
def test_the_distance_is_safe_and_one_byte_less_is_not(geometry: Geometry) -> None:
    net = one_layer(geometry)
    found = figures(net, [StageChoice((0,))], resident=net.layers[0].reads[0]).distance
    assert found is not None
    assert safe(net, found)
    assert found == 0 or not safe(net, found - 1)
