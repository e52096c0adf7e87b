"""`alloc ... over`: the proof against a simulation that tags every byte and walks every step."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onchip.base.errors import IllegalPlan
from onchip.check import certify
from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.plans import Alloc, Free, Instruction, Load, Run, Store


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
    """(elements read, elements written) at every time, written down from the definitions.

    With several pixels a step, or channels in chunks: every chunk of a step reads all of it. A row-wise
    operator that states no steps goes through its pixel element by element.
    """
    pixels = one_by_one(g)
    if (g.pixels, g.channels) == (1, 0):
        return pixels if g.kind != "rowwise" else [one for step in pixels for one in by_element(g, *step)]
    wide, deep = (g.output[2] if len(g.output) == 4 else g.output[0]), g.output[-1]
    chunk = g.channels or deep
    places = list(range(0, deep, chunk))
    found: list[tuple[list[int], list[int]]] = []
    for row in range(0, len(pixels), wide):
        for start in range(row, row + wide, g.pixels):
            together = pixels[start : min(start + g.pixels, row + wide)]
            reads = [e for ins, _ in together for e in ins]
            for place in places if g.traversal == "forward" else places[::-1]:
                found.append((reads, [e for _, outs in together for e in outs[place : place + chunk]]))
    return found


def by_element(g: Geometry, reads: list[int], writes: list[int]) -> list[tuple[list[int], list[int]]]:
    """A pixel's elements in the order of the walk; those to come are still wanted."""
    order = range(len(writes)) if g.traversal == "forward" else range(len(writes))[::-1]
    return [(reads[e:] if g.traversal == "forward" else reads[: e + 1], [writes[e]]) for e in order]


def one_by_one(g: Geometry) -> list[tuple[list[int], list[int]]]:
    """(elements read, elements written) of every pixel in the order of the walk."""
    found: list[tuple[list[int], list[int]]] = []
    if g.kind == "elementwise" and (g.pixels, g.channels) == (1, 0):
        found = [([i], [i]) for i in range(prod(g.output))]
    elif g.kind == "fully_connected":
        k, n = g.input[-1], g.output[-1]
        for m in range(prod(g.output[:-1])):
            found.append((list(range(m * k, m * k + k)), list(range(m * n, m * n + n))))
    elif g.kind in ("elementwise", "rowwise", "concat", "pad"):
        top, left = g.padding[:2] or (0, 0)
        shape = g.output if len(g.output) == 4 else (1, 1, *g.output)
        given = g.input if len(g.input) == 4 else (1, 1, *g.input)
        for n, h, w in product(*map(range, shape[:3])):
            y, x = h - top, w - left
            inside = 0 <= y < given[1] and 0 <= x < given[2]
            read = [index(given, (n, y, x, c)) for c in range(given[3])] if inside else []
            found.append((read, [index(shape, (n, h, w, c)) for c in range(shape[3])]))
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
    kind = draw(
        st.sampled_from(("elementwise", "fully_connected", "conv", "depthwise", "pool", "pad", "rowwise"))
    )
    pixels, chunk = draw(st.sampled_from(((1, 0), (1, 1), (2, 0), (3, 2), (2, 1), (9, 9))))
    if kind == "elementwise":
        shape = (number(1, 3), number(1, 6))
        return Geometry(kind, shape, shape, traversal=direction, layout="NHWC", pixels=pixels, channels=chunk)
    if kind == "fully_connected":
        rows = number(1, 6)
        return Geometry(
            kind,
            (rows, number(1, 5)),
            (rows, number(1, 5)),
            traversal=direction,
            pixels=pixels,
            channels=chunk,
        )
    if kind in ("pad", "rowwise"):
        shape = (number(1, 2), number(1, 4), number(1, 4), number(1, 3))
        padding = tuple(number(-1, 2) for _ in range(4)) if kind == "pad" else (0, 0, 0, 0)
        made = (shape[0], shape[1] + padding[0] + padding[2], shape[2] + padding[1] + padding[3], shape[3])
        assume(min(made) >= 1)
        return Geometry(
            kind,
            shape,
            made,
            padding=padding,
            layout="NHWC",
            traversal=direction,
            pixels=pixels,
            channels=chunk,
        )
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
        pixels, chunk = 1, 0
    return Geometry(
        kind, *shapes, kernel, stride, padding, dilation, groups, layout, direction, pixels, chunk
    )


@pytest.mark.thorough
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
        Geometry("rowwise", (1, 2, 8, 2), (1, 4, 4, 1), layout="NHWC"),
        Geometry("pad", (1, 4, 4, 2), (1, 4, 4, 2), layout="NHWC"),
        Geometry("conv", (1, 4, 4, 2), (1, 4, 4, 2), (1, 1), layout="NHWC", pixels=0),
        Geometry("conv", (1, 4, 4, 2), (1, 4, 4, 2), (1, 1), layout="NHWC", channels=-1),
        Geometry("conv", (1, 2, 4, 4), (1, 2, 4, 4), (1, 1), pixels=2),
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


# -- every kind, as kernels walk ---------------------------------------------------------------------------


@pytest.mark.thorough
@given(st.integers(1, 7), st.integers(1, 9), st.integers(1, 9), st.sampled_from(("forward", "reverse")))
@settings(max_examples=60)
def test_a_matrix_needs_exactly_the_bytes_of_the_formula(m: int, n: int, k: int, way: str) -> None:
    # M x K times K x N, one pixel and one channel at a time: max(MN, MK) + min(N, K) - 1 bytes.
    g = Geometry("fully_connected", (m, k), (m, n), traversal=way, pixels=1, channels=1)  # type: ignore[arg-type]
    x, y = m * k, m * n

    def extent(by: int) -> int:
        return max(x + by, y) - min(by, 0) if way == "forward" else max(y - by, x) + max(by, 0)

    legal = [by for by in range(-x, y + 1) if refusal(g, 1, 1, by) is None]
    assert min(map(extent, legal)) == max(x, y) + min(n, k) - 1


MAP = (1, 4, 5, 6)
ONE, NONE = (1, 1), (0, 0, 0, 0)
KINDS = {
    "conv": Geometry("conv", MAP, (1, 2, 3, 8), (3, 3), (2, 2), (1, 1, 1, 1), ONE, 1, "NHWC"),
    "pointwise": Geometry("conv", MAP, (1, 4, 5, 9), ONE, ONE, NONE, ONE, 1, "NHWC"),
    "depthwise": Geometry("depthwise", MAP, MAP, (3, 3), ONE, (1, 1, 1, 1), ONE, 6, "NHWC"),
    "pool": Geometry("pool", MAP, (1, 2, 2, 6), (2, 2), (2, 2), NONE, ONE, 1, "NHWC"),
    "mean": Geometry("pool", MAP, (1, 1, 1, 6), (4, 5), ONE, NONE, ONE, 1, "NHWC"),
    "fully_connected": Geometry("fully_connected", (5, 6), (5, 8)),
    "elementwise": Geometry("elementwise", MAP, MAP, layout="NHWC"),
    "rowwise": Geometry("rowwise", MAP, MAP, layout="NHWC"),
    "pad": Geometry("pad", MAP, (1, 7, 8, 6), padding=(1, 1, 2, 2), layout="NHWC"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [(1, 0), (2, 4)])
@pytest.mark.parametrize("way", ["forward", "reverse"])
def test_a_distance_of_one_byte_less_is_refused(kind: str, step: tuple[int, int], way: str) -> None:
    g = replace(KINDS[kind], traversal=way, pixels=step[0], channels=step[1])  # type: ignore[arg-type]
    x, y = prod(g.input), prod(g.output)
    # Forward the input lies that much above; in reverse the ends count, and it lies below.
    distances = range(-x, y + 1) if way == "forward" else range(y, -x - 1, -1)
    unsafe = [i for i, by in enumerate(distances) if refusal(g, 1, 1, by) is not None]
    if not unsafe:
        assert kind == "mean"  # it has read everything before it writes
        return
    least = distances[unsafe[-1] + 1]
    assert not loses_a_byte(g, 1, 1, least)
    assert refusal(g, 1, 1, distances[unsafe[-1]]) == "overlap-unsafe"
    assert loses_a_byte(g, 1, 1, distances[unsafe[-1]])


@pytest.mark.parametrize(("kind", "deep"), [("concat", (2, 3)), ("elementwise", (5, 5))])
@pytest.mark.parametrize("step", [(1, 0), (2, 2)])
def test_with_two_live_inputs_either_may_be_overwritten_as_far_as_it_was_read(
    kind: str, deep: tuple[int, int], step: tuple[int, int]
) -> None:
    pixels, out = 12, 5
    g = Geometry(kind, (1, 3, 4, deep[0]), (1, 3, 4, out), layout="NHWC", pixels=step[0], channels=step[1])
    network = Network.build(
        "two",
        [
            ("a", pixels * deep[0], "input"),
            ("b", pixels * deep[1], "input"),
            ("y", pixels * out, "activation"),
        ],
        [OperatorSpec("f", "F", ["a", "b"], ["y"], 0, 0, g)],
        ["y"],
    )
    for over, other, size in (("a", "b", deep[0]), ("b", "a", deep[1])):
        walk = replace(g, input=(1, 3, 4, size), output=(1, 3, 4, out), kind="rowwise")
        if step == (1, 0) and kind == "elementwise":
            walk = g
        for by in range(-5, pixels * out + 1):
            program: list[Instruction] = [
                Load(other, 200), Load(over, 100), Alloc("y", 100 - by, over, by), Run("f"), Store("y"),
            ]  # fmt: skip
            lost = loses_a_byte(walk, 1, 1, by)
            assert judged(network, program, 300) == ("overlap-unsafe" if lost else None)
