"""`alloc ... over`: the proof against a simulation that tags every byte and walks every step."""

from __future__ import annotations

from itertools import product
from math import prod
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onchip.check import certify
from onchip.chip import Chip
from onchip.errors import IllegalPlan
from onchip.network import Geometry, Network, OperatorSpec
from onchip.plan import Alloc, Free, Instruction, Load, Run, Store


def refusal(geometry: Geometry | None, read: int, write: int, by: int) -> str | None:
    """The rule by which x, `by` bytes above y, is refused; `read`, `write` are bytes of an element."""
    shapes = geometry or Geometry("", (4,), (4,))
    x, y = prod(shapes.input) * read, prod(shapes.output) * write
    network = Network.build(
        "n",
        [("x", x, "input"), ("y", y, "activation")],
        [OperatorSpec("f", "F", ["x"], ["y"], 0, 0, geometry)],
        ["y"],
    )
    base = y + abs(by)
    program: list[Instruction] = [Load("x", base), Alloc("y", base - by, "x", by), Run("f"), Store("y")]
    return judged(network, program, base + x + y + abs(by))


def judged(network: Network, program: list[Instruction], budget: int) -> str | None:
    try:
        certify(network, Chip("c", 1), budget, program, status="optimal", lower_bound_bytes=0, seconds=0)
    except IllegalPlan as refused:
        return refused.rule
    return None


# -- the simulation ------------------------------------------------------------------------------------


def index(shape: tuple[int, ...], at: tuple[int, ...]) -> int:
    linear = 0
    for size, i in zip(shape, at, strict=True):
        linear = linear * size + i
    return linear


def steps(g: Geometry) -> list[tuple[list[int], list[int]]]:
    """(elements read, elements written) of every step, written down from the definitions."""
    found: list[tuple[list[int], list[int]]] = []
    if g.kind == "elementwise":
        found = [([i], [i]) for i in range(prod(g.output))]
    elif g.kind == "fully_connected":
        k, n = g.input[-1], g.output[-1]
        for m in range(prod(g.output[:-1])):
            found.append((list(range(m * k, m * k + k)), list(range(m * n, m * n + n))))
    elif g.layout == "NHWC":
        images, height, width, channels = g.output
        for n, h, w in product(range(images), range(height), range(width)):
            read = [
                index(g.input, (n, y, x, c))
                for y, x in window(g, h, w, g.input[1:3])
                for c in range(g.input[3])
            ]
            found.append((read, [index(g.output, (n, h, w, c)) for c in range(channels)]))
    else:
        images, channels, height, width = g.output
        groups = g.groups if g.kind == "conv" else g.input[1]
        fan_in, fan_out = g.input[1] // groups, channels // groups
        for n, c, h, w in product(range(images), range(channels), range(height), range(width)):
            own = range(c // fan_out * fan_in, (c // fan_out + 1) * fan_in)
            read = [index(g.input, (n, i, y, x)) for y, x in window(g, h, w, g.input[2:4]) for i in own]
            found.append((read, [index(g.output, (n, c, h, w))]))
    return found[::-1] if g.traversal == "reverse" else found


def window(g: Geometry, h: int, w: int, size: tuple[int, ...]) -> list[tuple[int, int]]:
    at = []
    for i, j in product(range(g.kernel[0]), range(g.kernel[1])):
        y = h * g.stride[0] - g.padding[0] + i * g.dilation[0]
        x = w * g.stride[1] - g.padding[1] + j * g.dilation[1]
        if 0 <= y < size[0] and 0 <= x < size[1]:
            at.append((y, x))
    return at


def loses_a_byte(g: Geometry, read: int, write: int, by: int) -> bool:
    """Walk over one memory: does some step read a byte of x that an earlier one overwrote?"""
    overwritten: set[int] = set()
    for ins, outs in steps(g):
        if any(by + e * read + b in overwritten for e in ins for b in range(read)):
            return True
        overwritten |= {e * write + b for e in outs for b in range(write)}
    return False


# -- random walks --------------------------------------------------------------------------------------


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    def number(low: int, high: int) -> int:
        return draw(st.integers(low, high))

    direction = draw(st.sampled_from(("forward", "reverse")))
    kind = draw(st.sampled_from(("elementwise", "fully_connected", "conv", "depthwise", "pool")))
    if kind == "elementwise":
        shape = (number(1, 3), number(1, 6))
        return Geometry(kind, shape, shape, traversal=direction)
    if kind == "fully_connected":
        rows = number(1, 6)
        return Geometry(kind, (rows, number(1, 5)), (rows, number(1, 5)), traversal=direction)
    groups, images = number(1, 3), draw(st.sampled_from((1, 1, 2)))
    fan_in, fan_out = (1 if kind != "conv" else number(1, 2)), (1 if kind == "pool" else number(1, 2))
    size, kernel = (number(1, 6), number(1, 6)), (number(1, 3), number(1, 3))
    stride, dilation = (number(1, 3), number(1, 3)), (number(1, 2), number(1, 2))
    padding = tuple(number(0, 2) for _ in range(4))
    out = tuple(
        (size[i] + padding[i] + padding[i + 2] - (kernel[i] - 1) * dilation[i] - 1) // stride[i] + 1
        for i in (0, 1)
    )
    assume(min(out) >= 1)
    ins, outs = groups * fan_in, groups * fan_out
    layout = draw(st.sampled_from(("NHWC", "NCHW")))
    shapes = ((images, *size, ins), (images, *out, outs))
    if layout == "NCHW":
        shapes = ((images, ins, *size), (images, outs, *out))
    return Geometry(kind, *shapes, kernel, stride, padding, dilation, groups, layout, direction)


@given(geometries(), st.sampled_from((1, 2, 4)), st.sampled_from((1, 2, 4)), st.data())
@settings(max_examples=200)
def test_the_proof_agrees_with_the_simulation(
    g: Geometry, read: int, write: int, data: st.DataObject
) -> None:
    x, y = prod(g.input) * read, prod(g.output) * write
    by = data.draw(st.integers(-x - 2, y + 2))
    assert refusal(g, read, write, by) == ("overlap-unsafe" if loses_a_byte(g, read, write, by) else None)


def least(g: Geometry) -> int:
    """The smallest distance from 0 up that is accepted."""
    return next(by for by in range(10_000) if refusal(g, 1, 1, by) is None)


def test_known_least_distances() -> None:
    def conv(kernel: int, ins: int, outs: int, pad: int, stride: int = 1) -> Geometry:
        out = (12 + 2 * pad - kernel) // stride + 1
        shapes = (1, 12, 12, ins), (1, out, out, outs)
        return Geometry("conv", *shapes, (kernel,) * 2, (stride,) * 2, (pad,) * 4, (1, 1), 1, "NHWC")

    assert least(conv(1, 8, 8, 0)) == 0
    assert least(conv(1, 8, 4, 0)) == 0
    # Twice the channels: only the last pixel of the input may be gone when the last step writes.
    assert least(conv(1, 4, 8, 0)) == 143 * 4
    # 3x3 with padding: a row and a pixel have to stay.
    assert least(conv(3, 8, 8, 1)) == (12 + 1) * 8
    assert least(Geometry("fully_connected", (5, 7), (5, 7))) == 0


def test_a_tensor_of_a_terabyte_is_judged_without_walking_it() -> None:
    n = 1 << 38
    assert refusal(Geometry("elementwise", (n,), (n,)), 1, 1, 0) is None
    assert refusal(Geometry("elementwise", (n,), (n,)), 1, 1, -1) == "overlap-unsafe"
    shape = (1, 1 << 19, 1 << 19, 1)
    wide = Geometry("conv", shape, shape, (1, 1), layout="NHWC")
    assert refusal(wide, 1, 1, 0) == "overlap-unproved"


# -- what is not proved --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "geometry",
    [
        None,
        Geometry("softmax", (4,), (4,)),
        Geometry("elementwise", (2, 2), (4,)),
        Geometry("elementwise", (0,), (0,)),
        Geometry("conv", (1, 2, 2, 1), (1, 2, 2, 1)),
        Geometry("conv", (1, 1, 2, 2, 1), (1, 1, 2, 2, 1), (1, 1, 1)),
        Geometry("conv", (1, 2, 2, 1), (1, 2, 2, 1), (1, 1), (0, 1), layout="NHWC"),
        Geometry("conv", (1, 3, 2, 2), (1, 3, 2, 2), (1, 1), groups=2),
        Geometry("pool", (1, 2, 2, 1), (1, 2, 2, 2), (1, 1), layout="NHWC"),
        Geometry("conv", (1, 2, 2, 1), (1, 2, 2, 1), (1 << 30, 1), layout="NHWC"),
        Geometry("fully_connected", (2, 2), (4, 2)),
        Geometry("fully_connected", (), ()),
        Geometry("concat", (1, 2, 4, 4), (1, 2, 4, 4)),
        Geometry("pad", (1, 2, 4, 4), (1, 2, 4, 4), padding=(0, 0, 0, 0)),
        Geometry("pad", (1, 2, 4, 4), (1, 2, 3, 4), padding=(-1, 0, 0, 0)),
        Geometry("rowwise", (1, 2, 4, 4), (1, 2, 4, 4)),
        Geometry("rowwise", (1, 4, 4, 2), (1, 4, 4, 1), layout="NHWC"),
    ],
)
def test_what_the_geometry_does_not_say_is_refused(geometry: Geometry | None) -> None:
    if geometry is not None and not prod(geometry.input):
        geometry = None
    assert refusal(geometry, 1, 1, 0) == "overlap-unproved"


def two_inputs(x: str, geometry: Geometry, views: list[tuple[str, str, int]]) -> Network:
    names = ["a", x]
    tensors = [("a", 4, "input"), ("b", 4, "input"), ("y", 4, "activation"), ("z", 4, "activation")]
    tensors += [(v, 4, "activation") for v, _, _ in views]
    return Network.build(
        "n",
        tensors,  # type: ignore[arg-type]
        [OperatorSpec("f", "F", names, ["y"], 0, 0, geometry), OperatorSpec("g", "G", ["b"], ["z"])],
        ["y", "z"],
        views=views,
    )


IN_PLACE = Geometry("elementwise", (4,), (4,))
WINDOWS = Geometry("conv", (1, 2, 2, 1), (1, 2, 2, 1), (1, 1), layout="NHWC")


@pytest.mark.parametrize(("geometry", "rule"), [(IN_PLACE, None), (WINDOWS, "overlap-unproved")])
def test_only_the_first_input_is_read_by_windows(geometry: Geometry, rule: str | None) -> None:
    network = two_inputs("b", geometry, [])
    program: list[Instruction] = [
        Load("b", 0), Alloc("z", 8), Run("g"), Store("z"),
        Load("a", 4), Alloc("y", 0, "b", 0), Run("f"), Store("y"),
    ]  # fmt: skip
    assert judged(network, program, 12) == rule


def test_a_broadcast_input_forbids_no_other_to_be_overwritten() -> None:
    network = Network.build(
        "n",
        [("scale", 1, "input"), ("x", 4, "input"), ("y", 4, "activation")],
        [OperatorSpec("f", "F", ["scale", "x"], ["y"], 0, 0, IN_PLACE)],
        ["y"],
    )
    head: list[Instruction] = [Load("scale", 0), Load("x", 8)]
    assert judged(network, [*head, Alloc("y", 8, "x", 0), Run("f"), Store("y")], 20) is None
    over_the_small_one = [*head, Alloc("y", 0, "scale", 0), Run("f"), Store("y")]
    assert judged(network, over_the_small_one, 20) == "overlap-unproved"


def test_a_smaller_input_of_wider_elements_may_be_broadcast_and_is_not_overwritten() -> None:
    # As when 4-byte numbers are compared, four with one: `few` has as many bytes as the output has elements.
    network = Network.build(
        "n",
        [("many", 16, "input"), ("few", 4, "input"), ("y", 4, "activation")],
        [OperatorSpec("f", "F", ["many", "few"], ["y"], 0, 0, IN_PLACE)],
        ["y"],
    )
    head: list[Instruction] = [Load("many", 0), Load("few", 16)]
    assert judged(network, [*head, Alloc("y", 16, "few", 0), Run("f"), Store("y")], 20) == "overlap-unproved"
    assert judged(network, [*head, Alloc("y", 0, "many", 0), Run("f"), Store("y")], 20) is None


def test_a_later_reader_forbids_the_overlap_whatever_it_is() -> None:
    network = two_inputs("b", IN_PLACE, [])
    program: list[Instruction] = [
        Load("b", 0), Load("a", 4), Alloc("y", 0, "b", 0), Run("f"), Store("y"), Free("y"),
        Load("b", 0), Alloc("z", 8), Run("g"), Store("z"),
    ]  # fmt: skip
    assert judged(network, program, 12) == "overlap-still-needed"


def test_a_tensor_is_overlapped_by_one_operator_only() -> None:
    network = two_inputs("b", IN_PLACE, [])
    program: list[Instruction] = [Load("b", 0), Load("a", 4), Alloc("y", 0, "b", 0), Alloc("z", 2, "b", -2)]
    assert judged(network, program, 12) == "overlap-still-needed"


@pytest.mark.parametrize("offset", [0, 1, 4])
def test_an_input_read_through_a_view_is_judged_where_the_view_lies(offset: int) -> None:
    network = Network.build(
        "n",
        [("x", 8, "input"), ("part", 4, "activation"), ("y", 4, "activation")],
        [OperatorSpec("f", "F", ["part"], ["y"], 0, 0, IN_PLACE)],
        ["y"],
        views=[("part", "x", offset)],
    )
    for by in range(-8, 5):
        program: list[Instruction] = [Load("x", 8), Alloc("y", 8 - by, "x", by), Run("f"), Store("y")]
        lost = loses_a_byte(IN_PLACE, 1, 1, by + offset)
        assert judged(network, program, 24) == ("overlap-unsafe" if lost else None)


def test_the_overlapped_tensor_ends_with_the_run_and_leaves_no_bytes_taken() -> None:
    network = Network.build(
        "n",
        [("x", 8, "input"), ("y", 4, "activation"), ("z", 4, "activation")],
        [
            OperatorSpec("f", "F", ["x"], ["y"], 0, 0, Geometry("fully_connected", (2, 4), (2, 2))),
            OperatorSpec("g", "G", ["y"], ["z"]),
        ],
        ["z"],
    )
    head: list[Instruction] = [Load("x", 0), Alloc("y", 0, "x", 0), Run("f")]
    assert judged(network, [*head, Alloc("z", 4), Run("g"), Store("z")], 8) is None
    assert judged(network, [*head, Free("x")], 8) == "not-resident"


def test_random_distances_of_a_large_convolution_are_monotone() -> None:
    shape = (1, 40, 40, 3)
    g = Geometry("depthwise", shape, shape, (5, 5), (1, 1), (2, 2, 2, 2), (1, 1), 3, "NHWC")
    safe = least(g)
    rng = Random(0)
    for _ in range(20):
        by = rng.randint(0, 3 * safe)
        assert (refusal(g, 1, 1, by) is None) == (by >= safe)
