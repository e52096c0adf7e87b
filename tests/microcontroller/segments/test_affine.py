"""vMCU's offset problem: closed form, integer programme, walking and byte tags say the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.microcontroller.segments.group import StageChoice, figures
from onchip.microcontroller.segments.layers import layers_of
from onchip.network import Geometry, Network, OperatorSpec
from onchip.papers.vmcu.affine import (
    Access,
    Domain,
    LoopNest,
    Operand,
    chain_distance,
    least_distance,
    printed_distance,
)
from onchip.papers.vmcu.nests import bottleneck_ends, matrix_product, window_nest


def safe(nest: LoopNest, distance: int) -> bool:
    """Whether no read finds what an earlier instance wrote over it, by tags."""
    written: set[int] = set()
    for i in nest.domain:
        if i in nest.read.when and nest.read.address(i) + distance in written:
            return False
        if i in nest.write.when:
            written.add(nest.write.address(i))
    return True


def by_reach(geometry: Geometry) -> int:
    """The planner's distance for the same layer."""
    sizes = {"x": 1, "y": 1}
    for name, shape in ("x", geometry.input), ("y", geometry.output):
        for n in shape:
            sizes[name] *= n
    network = Network.build(
        "one",
        [("x", sizes["x"], "input"), ("y", sizes["y"], "activation")],
        [OperatorSpec("layer", "Layer", ["x"], ["y"], geometry=geometry)],
        ["y"],
    )
    net = layers_of(network)
    assert not isinstance(net, str)
    found = figures(net, [StageChoice((0,))], resident=net.layers[0].reads[0]).distance
    assert found is not None
    return found


sizes = st.integers(1, 7)


@pytest.mark.thorough
@given(sizes, sizes, sizes)
def test_a_matrix_product_has_the_papers_footprint(m: int, n: int, k: int) -> None:
    nest = matrix_product(m, n, k)
    found = least_distance(nest, "closed")
    assert found == least_distance(nest, "walk") == printed_distance(nest)
    # The paper's intermediate max(MN, MK) + d counts d twice over where N > K; this is what it must be:
    assert max(m * n, m * k + found) == max(m * n, m * k) + min(n, k) - 1
    assert safe(nest, found)
    assert found == 0 or not safe(nest, found - 1)


def test_the_papers_intermediate_formula_is_wrong_for_more_outputs_than_inputs() -> None:
    m, n, k = 2, 3, 2
    found = least_distance(matrix_product(m, n, k))
    assert max(m * n, m * k) + found > max(m * n, m * k) + min(n, k) - 1


def test_a_large_matrix_product_is_solved_at_once() -> None:
    m, n, k = 6400, 16, 48
    assert least_distance(matrix_product(m, n, k)) == n - 1
    assert least_distance(matrix_product(m, k, n)) == (k - n) * (m - 1) + k - 1


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_the_solver_agrees_with_the_closed_form(m: int, n: int, k: int) -> None:
    nest = matrix_product(m, n, k)
    assert least_distance(nest, "solver") == least_distance(nest, "closed")


@pytest.mark.parametrize("outputs", [2, 5])
def test_an_output_written_from_its_end_needs_the_strict_constraint(outputs: int) -> None:
    """To the letter, equation 1 lets a read meet what was written just before."""
    domain = Domain.box(3, outputs, outputs)
    nest = LoopNest(
        domain,
        Operand(domain, Access(((1, 0, 0), (0, 0, 1)), (0, 0)), (outputs, 1)),
        Operand(domain, Access(((1, 0, 0), (0, -1, 0)), (0, outputs - 1)), (outputs, 1)),
    )
    assert printed_distance(nest) == outputs - 1
    assert not safe(nest, printed_distance(nest))
    assert least_distance(nest) == outputs
    assert safe(nest, outputs)


@st.composite
def windows(
    draw: st.DrawFn, kinds: tuple[str, ...] = ("conv", "grouped", "depthwise", "pool"), dilated: int = 2
) -> Geometry:
    kind = draw(st.sampled_from(kinds))
    height, width = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    kernel = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    stride = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    dilation = draw(st.integers(1, dilated)), draw(st.integers(1, dilated))
    padding = tuple(draw(st.integers(0, 2)) for _ in range(4))
    spans = [(n - 1) * d + 1 for n, d in zip(kernel, dilation, strict=True)]
    rows = max((height + padding[0] + padding[2] - spans[0]) // stride[0] + 1, 1)
    columns = max((width + padding[1] + padding[3] - spans[1]) // stride[1] + 1, 1)
    groups = 2 if kind == "grouped" else 1
    channels = groups * draw(st.integers(1, 2))
    outputs = channels if kind in ("depthwise", "pool") else groups * draw(st.integers(1, 3))
    return Geometry(
        "conv" if kind == "grouped" else kind,
        (1, height, width, channels),
        (1, rows, columns, outputs),
        kernel,
        stride,
        padding,
        dilation,
        channels if kind == "depthwise" else groups,
        "NHWC",
    )


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(windows())
def test_the_distance_of_a_window_is_safe_and_one_less_is_not(geometry: Geometry) -> None:
    """Where addresses are written upwards a lower distance fails; per byte, groups and depthwise included."""
    nest = window_nest(geometry)
    found = least_distance(nest, "walk")
    assert safe(nest, found)
    assert found == 0 or not safe(nest, found - 1)


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(windows())
def test_the_solver_finds_what_walking_finds(geometry: Geometry) -> None:
    nest = window_nest(geometry)
    assert least_distance(nest, "solver") == least_distance(nest, "walk")


@pytest.mark.thorough
@given(windows(("conv",), dilated=1))
def test_a_convolution_byte_by_byte_has_the_planners_distance(geometry: Geometry) -> None:
    assert least_distance(window_nest(geometry), "walk") == by_reach(replace(geometry, channels=1))


@pytest.mark.thorough
@given(windows(("depthwise", "pool"), dilated=1))
def test_a_depthwise_layer_pixel_by_pixel_has_the_planners_distance(geometry: Geometry) -> None:
    """With a pixel as the segment, both speak of whole pixels."""
    channels = geometry.input[3]
    assert least_distance(window_nest(geometry, channels), "walk") * channels == by_reach(geometry)


@pytest.mark.thorough
@given(windows(("depthwise", "pool", "grouped")))
def test_taking_channels_one_by_one_never_needs_more(geometry: Geometry) -> None:
    """Nor does a dilated window here: the planner takes the rows and columns between its taps as read."""
    assert least_distance(window_nest(geometry), "walk") <= by_reach(replace(geometry, channels=1))


def test_the_fused_bottleneck_runs_a_window_ahead() -> None:
    """20 x 20 x 16 through 3 x 3: the window reaches back a row and a pixel (S1 of MCUNet-5fps-VWW)."""
    read, write = bottleneck_ends(20, 16, 16, 3, segment=16)
    assert chain_distance(read, write, 2) == 20 + 1


@pytest.mark.parametrize(("size", "kernel", "stride"), [(4, 3, 1), (5, 5, 2), (3, 7, 1)])
def test_the_fused_bottleneck_as_walked(size: int, kernel: int, stride: int) -> None:
    read, write = bottleneck_ends(size, 2, 3, kernel, stride)
    found = chain_distance(read, write, 2)
    greatest, highest = 0, None
    for turn in sorted({i[:2] for i in write.when}):
        for i in (i for i in read.when if i[:2] == turn):
            if highest is not None:
                greatest = max(greatest, highest + 1 - read.address(i))
        highest = max(write.address(j) for j in write.when if j[:2] == turn)
    assert found == greatest


def test_a_closed_form_wants_boxes_and_a_domain_wants_bounds() -> None:
    padded = Geometry("conv", (1, 3, 3, 1), (1, 3, 3, 1), (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1, "NHWC")
    with pytest.raises(ValueError, match="boxes"):
        least_distance(window_nest(padded), "closed")
    with pytest.raises(ValueError, match="no bound"):
        list(Domain(((1, 0), (0, 1)), (-3, -3)))
    with pytest.raises(ValueError, match="do not divide"):
        window_nest(padded, 2)
