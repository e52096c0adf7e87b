"""The paper's circular pool: its example, its segments, and tags on every byte of a chain."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onchip.base.errors import ModelError
from onchip.network import Geometry, Network, OperatorSpec
from onchip.papers.vmcu.circular import circular_pool, segment_bytes


def product(m: int, k: int, n: int) -> Geometry:
    return Geometry("fully_connected", (m, k), (m, n), layout="NHWC")


def chain(geometries: list[Geometry]) -> Network:
    shapes = [geometries[0].input, *(g.output for g in geometries)]
    return Network.build(
        "chain",
        [(f"t{i}", prod(shape), "activation" if i else "input") for i, shape in enumerate(shapes)],
        [
            OperatorSpec(f"layer{i}", "Layer", [f"t{i}"], [f"t{i + 1}"], geometry=g)
            for i, g in enumerate(geometries)
        ],
        [f"t{len(geometries)}"],
    )


def test_the_papers_example_needs_seven_segments_of_ten() -> None:
    """2 x 3 segments in, 2 x 2 out (vMCU 2.4): one segment is empty at first."""
    found = circular_pool(chain([product(2, 3, 2)]), "byte")
    assert found.bytes == 7
    assert found.layers[0].distance == 1


def test_segments_are_the_smaller_side() -> None:
    assert segment_bytes(product(4, 48, 16)) == 16
    conv = Geometry("conv", (1, 5, 5, 8), (1, 5, 5, 24), (1, 1), layout="NHWC")
    assert segment_bytes(conv) == 8


def test_smaller_segments_do_not_always_need_less() -> None:
    """The paper says so (5.3); but a row that is read whole and then written whole stays where it is."""
    network = chain([product(1, 2, 2)])
    assert circular_pool(network, "byte").bytes == 3
    assert circular_pool(network, "paper").bytes == 2


@st.composite
def chains(draw: st.DrawFn) -> list[Geometry]:
    found: list[Geometry] = []
    shape = (1, draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    for _ in range(draw(st.integers(1, 4))):
        kernel, stride = draw(st.sampled_from([1, 3])), draw(st.integers(1, 2))
        out = tuple((n - 1) // stride + 1 for n in shape[1:3])
        made = (1, *out, draw(st.integers(1, 6)))
        around = (kernel // 2,) * 4
        found.append(Geometry("conv", shape, made, (kernel,) * 2, (stride,) * 2, around, (1, 1), 1, "NHWC"))
        shape = made  # type: ignore[assignment]
    return found


@given(chains(), st.sampled_from(["paper", "byte"]))
def test_a_chain_in_a_circular_pool_loses_no_byte(geometries: list[Geometry], segment: str) -> None:
    """Each layer reads its window, then writes a segment; every read must find its own tensor's byte."""
    found = circular_pool(chain(geometries), segment)  # type: ignore[arg-type]
    pool: list[tuple[int, int] | None] = [None] * found.bytes
    for byte in range(prod(geometries[0].input)):
        pool[found.address(found.layers[0].input + byte)] = (0, byte)
    for i, (g, layer) in enumerate(zip(geometries, found.layers, strict=True)):
        _, height, width, channels = g.input
        _, rows, columns, outputs = g.output
        for row in range(rows):
            for column in range(columns):
                ys = [row * g.stride[0] - g.padding[0] + r for r in range(g.kernel[0])]
                xs = [column * g.stride[1] - g.padding[1] + s for s in range(g.kernel[1])]
                reads = [
                    (y * width + x) * channels + c
                    for y in ys
                    for x in xs
                    for c in range(channels)
                    if 0 <= y < height and 0 <= x < width
                ]
                start = (row * columns + column) * outputs
                for chunk in range(0, outputs, layer.segment):
                    assert all(pool[found.address(layer.input + at)] == (i, at) for at in reads)
                    for at in range(start + chunk, start + min(chunk + layer.segment, outputs)):
                        pool[found.address(layer.output + at)] = (i + 1, at)


def test_what_is_no_chain_is_refused() -> None:
    add = Geometry("elementwise", (1, 2, 2, 1), (1, 2, 2, 1), layout="NHWC")
    network = Network.build(
        "sum",
        [("a", 4, "input"), ("b", 4, "activation"), ("c", 4, "activation")],
        [
            OperatorSpec("one", "Relu", ["a"], ["b"], geometry=add),
            OperatorSpec("two", "Add", ["b", "a"], ["c"], geometry=add),
        ],
        ["c"],
    )
    with pytest.raises(ModelError, match="two reads more than what was made last"):
        circular_pool(network)
