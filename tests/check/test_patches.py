"""Tensors in patches: the ring of the patch walk against cells that come and go, and what is not proved."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import prod

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from test_overlap import loses_a_byte

from onchip.base.errors import IllegalPlan
from onchip.check import certify, streaming_scratch
from onchip.check.patches import ring_rows
from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec, Patches, TensorKind
from onchip.network.windows import Window
from onchip.plans import Alloc, Group, Instruction, Load, PinnedWeights, Run, Scratch, Store, Tiling

# -- one axis ------------------------------------------------------------------------------------------------


def strips_of(axis: Window, strip: int, patch: int) -> list[set[int]]:
    """The rows of patches that each strip of output rows reads, row by row and tap by tap."""
    found = []
    for start in range(0, axis.outputs, strip):
        read = set()
        for o in range(start, min(start + strip, axis.outputs)):
            for k in range(axis.taps):
                row = o * axis.stride - axis.before + k * axis.dilation
                if 0 <= row < axis.size:
                    read.add(row // patch)
        found.append(read)
    return found


def suffices(strips: list[set[int]], slots: int) -> bool:
    """Whether rows of patches that come once, in order, into a ring are all there when they are read."""
    ring: dict[int, int] = {}
    came = 0
    for read in strips:
        while read and came <= max(read):
            ring[came % slots] = came
            came += 1
        if any(ring[r % slots] != r for r in read):
            return False
    return True


axes = st.builds(
    lambda taps, **sides: Window(span=(taps - 1) * sides["dilation"] + 1, **sides),
    size=st.integers(1, 40),
    outputs=st.integers(1, 40),
    taps=st.integers(1, 5),
    stride=st.integers(1, 5),
    dilation=st.integers(1, 9),
    before=st.integers(-3, 20),
)

COMES_BACK = Window(size=16, outputs=16, stride=1, before=8, span=17, dilation=8)
"""In strips of 4 the second reads patch rows 1 and 3, and the third 0 and 2."""


@given(axes, st.integers(1, 5), st.integers(1, 5))
@settings(max_examples=300)
@example(COMES_BACK, 4, 4)
def test_the_ring_is_the_smallest_from_which_nothing_is_fetched_twice(
    axis: Window, strip: int, patch: int
) -> None:
    strips = strips_of(axis, strip, patch)
    least = next(n for n in itertools.count(1) if suffices(strips, n))
    assert ring_rows(axis, strip, patch) == least


@given(axes, st.integers(1, 5), st.integers(1, 5))
@settings(max_examples=200)
def test_without_dilation_the_ring_is_what_one_strip_spans(axis: Window, strip: int, patch: int) -> None:
    axis = replace(axis, span=axis.taps, dilation=1)
    spans = [max(read) - min(read) + 1 for read in strips_of(axis, strip, patch) if read]
    assert ring_rows(axis, strip, patch) == max(spans, default=1)


def test_a_dilated_window_may_come_back_to_a_row_that_a_strip_has_passed() -> None:
    spans = [max(read) - min(read) + 1 for read in strips_of(COMES_BACK, 4, 4)]
    assert (max(spans), ring_rows(COMES_BACK, 4, 4)) == (3, 4)


# -- whole operators ---------------------------------------------------------------------------------------


def stored_network(
    geometry: Geometry, patch: tuple[int, int], *, width: int = 1, weights: int = 0, workspace: int = 0,
    plain: str = "",
) -> Network:  # fmt: skip
    """y = f(x), both in patches but for those named in `plain`; the geometry says their maps."""
    shapes = {"x": geometry.input, "y": geometry.output}
    kinds: dict[str, TensorKind] = {"x": "input", "y": "activation"}
    patches = {}
    for name, shape in shapes.items():
        n, c, h, w = shape if geometry.layout == "NCHW" else (shape[0], shape[3], shape[1], shape[2])
        if name not in plain:
            patches[name] = Patches(n * c, h, w, *patch)
    size = {name: patches[name].elements if name in patches else prod(shapes[name]) for name in shapes}
    return Network.build(
        "n",
        [(name, size[name] * width, kinds[name]) for name in shapes],
        [OperatorSpec("f", "F", ["x"], ["y"], weights, workspace, geometry)],
        ["y"],
        patches=patches,
    )


def refusal(
    network: Network,
    streamed: str,
    *,
    groups: tuple[Group, ...] = (),
    resident: bool = False,
    chip: Chip | None = None,
    pins: tuple[PinnedWeights, ...] = (),
) -> str | None:
    """The rule by which f with some operands streamed is refused."""
    size = {t.name: t.bytes for t in network.tensors}
    program: list[Instruction] = []
    if "x" not in streamed:
        program.append(Load("x", 0))
    if "y" not in streamed:
        program.append(Alloc("y", size["x"]))
    program += [Scratch("f", size["x"] + size["y"]), Run("f", tuple((t, size[t]) for t in streamed))]
    if "y" not in streamed:
        program.append(Store("y"))
    try:
        certify(
            network, chip or Chip("c", 1), 1 << 30, program, status="feasible", lower_bound_bytes=0,
            seconds=0, groups=groups, pins=pins,
            options={"weights": "resident" if resident else "streamed"},
        )  # fmt: skip
    except IllegalPlan as refused:
        return refused.rule
    return None


def with_workspace(network: Network, workspace: int) -> Network:
    return replace(network, operators=(replace(network.operators[0], workspace=workspace),))


@st.composite
def windows(draw: st.DrawFn) -> Geometry:
    def number(low: int, high: int) -> int:
        return draw(st.integers(low, high))

    kind = draw(st.sampled_from(("conv", "conv", "depthwise", "pool", "pad")))
    groups, images = number(1, 3), draw(st.sampled_from((1, 1, 2)))
    fan_in, fan_out = (1 if kind != "conv" else number(1, 3)), (1 if kind == "pool" else number(1, 2))
    size, kernel = (number(1, 14), number(1, 6)), (number(1, 4), number(1, 3))
    stride, dilation = (number(1, 4), number(1, 2)), (number(1, 5), number(1, 2))
    padding = tuple(number(0, 6) for _ in range(4))
    out = tuple(
        (size[i] + padding[i] + padding[i + 2] - (kernel[i] - 1) * dilation[i] - 1) // stride[i] + 1
        for i in (0, 1)
    )
    assume(min(out) >= 1)
    if kind == "pad":
        padding = tuple(number(-2, 6) for _ in range(4))
        fan_out, kernel, stride, dilation = 1, (), (), ()  # type: ignore[assignment]
        out = tuple(size[i] + padding[i] + padding[i + 2] for i in (0, 1))
        assume(min(out) >= 1)
    maps = [(images, groups * fan_in, *size), (images, groups * fan_out, *out)]
    layout = draw(st.sampled_from(("NHWC", "NCHW")))
    if layout == "NHWC":
        maps = [(n, h, w, c) for n, c, h, w in maps]
    return Geometry(
        kind, maps[0], maps[1], kernel, stride, padding, dilation, groups if kind == "conv" else 1, layout
    )  # fmt: skip


class Rings:
    """The line buffer, cell by cell: a cell is a row of patches of one channel of one image."""

    def __init__(self, g: Geometry, patch: int, strip: int) -> None:
        chw = [(s[0], s[1], s[2]) if g.layout == "NCHW" else (s[0], s[3], s[1]) for s in (g.input, g.output)]
        (self.images, self.channels, rows), (_, out_channels, out_rows) = chw
        self.groups = g.groups if g.kind == "conv" else self.channels
        self.fan_in, fan_out = self.channels // self.groups, out_channels // self.groups
        self.height = -(-rows // patch)
        self.reads: list[list[set[tuple[int, int, int]]]] = []  # by group, strip: (image, channel, patch row)
        for group, image in itertools.product(range(self.groups), range(self.images)):
            strips = []
            for start in range(0, out_rows, strip):
                cells = set()
                for channel, o, k in itertools.product(
                    range(group * fan_out, (group + 1) * fan_out),
                    range(start, min(start + strip, out_rows)),
                    range(1 if g.kind == "pad" else g.kernel[0]),
                ):
                    row = o - g.padding[0]
                    if g.kind != "pad":
                        row = o * g.stride[0] - g.padding[0] + k * g.dilation[0]
                    if 0 <= row < rows:
                        own = range(channel // fan_out * self.fan_in, (channel // fan_out + 1) * self.fan_in)
                        cells |= {(image, c, row // patch) for c in own}
                strips.append(cells)
            self.reads.append(strips)

    def fetched(self, slots: int) -> dict[tuple[int, int, int], int] | None:
        """How often every cell came when that many rows of each channel fit; None when one is not there."""
        count: dict[tuple[int, int, int], int] = {}
        for turn, strips in enumerate(self.reads):
            group, image = divmod(turn, self.images)
            own = range(group * self.fan_in, (group + 1) * self.fan_in)
            ring: dict[tuple[int, int], int] = {}
            came = 0
            for cells in [*strips, {(image, own[0], self.height - 1)}]:  # what nothing reads comes, too
                while cells and came <= max(row for _, _, row in cells):
                    for c in own:
                        ring[c, came % slots] = came
                        count[image, c, came] = count.get((image, c, came), 0) + 1
                    came += 1
                if any(ring.get((c, row % slots)) != row for _, c, row in cells):
                    return None
        return count


@pytest.mark.thorough
@given(windows(), st.tuples(st.integers(1, 4), st.integers(1, 4)), st.sampled_from((1, 2)), st.data())
@settings(max_examples=150)
def test_windows_stream_in_patches_with_the_least_line_buffer_and_not_a_byte_less(
    g: Geometry, patch: tuple[int, int], width: int, data: st.DataObject
) -> None:
    weights = data.draw(st.integers(0, 40))
    streamed = data.draw(st.sampled_from(("x", "xy")))
    plain = data.draw(st.sampled_from(("", "", "y"))) if streamed == "x" else ""
    network = stored_network(g, patch, width=width, weights=weights, plain=plain)
    rings = Rings(g, patch[0], 1 if plain else patch[0])
    least = next(n for n in itertools.count(1) if rings.fetched(n) is not None)
    count = rings.fetched(least)
    assert count is not None
    every = itertools.product(range(rings.images), range(rings.channels), range(rings.height))
    assert count == dict.fromkeys(every, 1)

    stored = network.tensors[0].patches
    assert stored is not None
    line = stored.grid[1] * patch[0] * patch[1] * width
    need = rings.fan_in * least * line + -(-weights // rings.groups)
    need += patch[0] * patch[1] * width if "y" in streamed else 0
    need = min(need, sum(t.bytes for t in network.tensors if t.name in streamed))
    ids = [network.tensor_id[t] for t in streamed]
    assert streaming_scratch(network, 0, ids) == need
    assert refusal(with_workspace(network, need), streamed) is None
    assert refusal(with_workspace(network, need - 1), streamed) in ("streaming-unproved", "no-scratch")


STEM = Geometry("conv", (1, 3, 35, 34), (1, 8, 18, 17), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1))
LINE = 3 * 3 * 4 * 36


def test_a_stem_by_hand() -> None:
    network = stored_network(STEM, (4, 4), weights=3 * 9 * 8)
    # Four rows of output take as many as 7 to 15: three rows of patches, of 3 channels, 36 columns wide.
    assert streaming_scratch(network, 0, [0]) == LINE + 216  # and all weights
    assert streaming_scratch(network, 0, [0, 1]) == LINE + 216 + 16  # and a patch of the output
    assert streaming_scratch(network, 0, [1]) == 16
    assert streaming_scratch(network, 0, [0], weights=0) == LINE


def test_weights_that_are_there_already_need_no_room() -> None:
    network = stored_network(STEM, (4, 4), weights=216)
    line = LINE
    assert refusal(with_workspace(network, line), "x") == "streaming-unproved"
    apart = certify_with_weights_apart(with_workspace(network, line))
    assert apart is None
    assert certify_with_weights_apart(with_workspace(network, line - 1)) == "streaming-unproved"
    assert refusal(with_workspace(network, line + 216), "x", resident=True) is None
    assert refusal(with_workspace(network, line + 215), "x", resident=True) == "streaming-unproved"
    pinned = (PinnedWeights("f", 10_000),)
    assert refusal(with_workspace(network, line), "x", pins=pinned) is None


def certify_with_weights_apart(network: Network) -> str | None:
    from onchip.plans import PlanChip

    size = [t.bytes for t in network.tensors]
    program = [Scratch("f", 0), Alloc("y", 9000), Run("f", (("x", size[0]),)), Store("y")]
    chip = PlanChip("c", 1, weight_scratchpad_bytes=216)
    try:
        certify(network, chip, 1 << 20, program, status="feasible", lower_bound_bytes=0, seconds=0)
    except IllegalPlan as refused:
        return refused.rule
    return None


MAP = (1, 3, 5, 6)
SAME = Geometry("elementwise", MAP, MAP)


def test_element_wise_operators_stream_patch_by_patch() -> None:
    network = stored_network(SAME, (4, 4), width=2)
    for streamed, patches in (("x", 1), ("y", 1), ("xy", 2)):
        need = patches * 32
        assert streaming_scratch(network, 0, [network.tensor_id[t] for t in streamed]) == need
        assert refusal(with_workspace(network, need), streamed) is None
        assert refusal(with_workspace(network, need - 1), streamed) == "streaming-unproved"


def broadcast(patches: dict[str, Patches], geometry: Geometry = SAME) -> Network:
    """y = x + s, of one byte an element."""
    size = {"x": prod(MAP), "s": 3, "y": prod(MAP)} | {t: p.elements for t, p in patches.items()}
    return Network.build(
        "n",
        [("x", size["x"], "input"), ("s", size["s"], "input"), ("y", size["y"], "activation")],
        [OperatorSpec("f", "F", ["x", "s"], ["y"], 0, 0, geometry)],
        ["y"],
        patches=patches,
    )


def test_what_is_broadcast_does_not_stream_and_keeps_nothing_else_from_it() -> None:
    full = Patches(3, 5, 6, 4, 4)
    network = broadcast({"x": full, "y": full})
    assert streaming_scratch(network, 0, [0, 2]) == 32
    assert streaming_scratch(network, 0, [0, 1]) == full.elements + 3  # at once
    row = Patches(1, 5, 6, 4, 4)
    assert streaming_scratch(broadcast({"x": full, "s": row, "y": full}), 0, [1]) == row.elements
    other = Patches(3, 5, 6, 2, 4)
    network = broadcast({"x": full, "y": other})
    assert streaming_scratch(network, 0, [0, 2]) == full.elements + other.elements


def test_operands_that_do_not_all_lie_in_patches_stream_only_at_once() -> None:
    for plain in ("x", "y"):
        network = stored_network(SAME, (4, 4), plain=plain)
        both = sum(t.bytes for t in network.tensors)
        assert streaming_scratch(network, 0, [0, 1]) == both
    geometry = replace(STEM, kind="rowwise")
    network = stored_network(geometry, (4, 4))
    assert streaming_scratch(network, 0, [0]) == network.tensors[0].bytes


@pytest.mark.parametrize("kind", ["", "gathered conv", "rowwise", "fully_connected", "concat", "conv"])
def test_whatever_makes_an_output_may_send_it_out_patch_by_patch(kind: str) -> None:
    geometry = Geometry(kind, (1, 2, 5, 6), (1, 3, 5, 6))
    for plain in ("", "x"):
        network = stored_network(geometry, (4, 4), width=2, weights=7, plain=plain)
        if not kind:
            network = replace(network, operators=(replace(network.operators[0], geometry=None),))
        assert streaming_scratch(network, 0, [1]) == 32
        assert refusal(with_workspace(network, 32), "y") is None
        assert refusal(with_workspace(network, 31), "y") == "streaming-unproved"


def test_a_concat_streams_patch_by_patch_whatever_is_merged_into_it() -> None:
    stored = {name: Patches(channels, 5, 6, 4, 4) for name, channels in (("a", 2), ("b", 3), ("y", 5))}

    def judged(**changes: Patches) -> int:
        patches = stored | changes
        size = {name: p.elements * 2 for name, p in patches.items()}
        network = Network.build(
            "n",
            [("a", size["a"], "input"), ("b", size["b"], "input"), ("y", size["y"], "activation")],
            [OperatorSpec("f", "Concat+BatchNormalization", ["a", "b"], ["y"], 20, 0,
                          Geometry("concat", (1, 2, 5, 6), (1, 5, 5, 6)))],
            ["y"],
            patches=patches,
        )  # fmt: skip
        return streaming_scratch(network, 0, [0, 1, 2])

    assert judged() == 3 * 32
    assert judged(b=Patches(3, 5, 6, 2, 4)) == (2 * 64 + 3 * 48 + 5 * 64) * 2


def test_what_is_read_through_a_view_does_not_stream() -> None:
    stored = {name: Patches(channels, 4, 4, 4, 4) for name, channels in (("x", 4), ("b", 1), ("y", 3))}
    for read, need in (("b", 16), ("x", 4 * 16)):  # of b a patch, x whole
        network = Network.build(
            "n",
            [("x", 64, "input"), ("b", 16, "input"), ("y", 48, "activation"), ("half", 32, "activation")],
            [OperatorSpec("f", "Concat", ["half", "b"], ["y"],
                          geometry=Geometry("concat", (1, 2, 4, 4), (1, 3, 4, 4)))],
            ["y"],
            views=[("half", "x", 0)],
            patches=stored | {"half": Patches(2, 4, 4, 4, 4)},
        )  # fmt: skip
        assert streaming_scratch(network, 0, [network.tensor_id[read]]) == need


# -- alloc over ----------------------------------------------------------------------------------------------


def over(network: Network, by: int, x: str = "x") -> str | None:
    size = {t.name: t.bytes for t in network.tensors}
    base = sum(size.values()) + abs(by)
    program: list[Instruction] = [
        Load(t.name, base if t.name == x else base + 2 * sum(size.values()))
        for t in network.tensors
        if t.kind == "input"
    ]
    program += [Alloc("y", base - by, x, by), Run("f"), Store("y")]
    try:
        certify(network, Chip("c", 1), 1 << 20, program, status="feasible", lower_bound_bytes=0, seconds=0)
    except IllegalPlan as refused:
        return refused.rule
    return None


@given(st.sampled_from((1, 2)), st.sampled_from(("forward", "reverse")), st.integers(-50, 50))
def test_an_element_wise_operator_writes_over_an_input_in_the_same_patches(
    width: int, direction: str, by: int
) -> None:
    shape = (1, 2, 1, 3)
    geometry = Geometry("elementwise", shape, shape, traversal=direction)  # type: ignore[arg-type]
    network = stored_network(geometry, (2, 2), width=width)
    cells = (2 * 8,)  # with their filling
    lost = loses_a_byte(replace(geometry, input=cells, output=cells), width, width, by)
    assert over(network, by) == ("overlap-unsafe" if lost else None)


def test_between_other_patches_nothing_is_written_over() -> None:
    full = Patches(3, 5, 6, 4, 4)
    # All of them have as many bytes; where an element lies differs.
    for patches in (
        {"x": full, "y": Patches(3, 5, 6, 8, 8)}, {"x": full, "y": Patches(3, 5, 6, 2, 8)},
        {"x": Patches(3, 5, 6, 8, 4), "y": full},
    ):  # fmt: skip
        assert over(broadcast(patches), 0) == "overlap-unproved"
    assert over(broadcast({"x": full, "y": full}), 0) is None


@pytest.mark.parametrize("plain", ["", "x", "y"])
def test_sizes_that_look_like_wider_elements_prove_nothing(plain: str) -> None:
    # A plane of 2 x 2 takes 16 elements: as many bytes as 4 elements of 4 bytes.
    shape = (1, 1, 2, 2)
    for kind in ("conv", "pool", "depthwise"):
        network = stored_network(Geometry(kind, shape, shape, (1, 1)), (4, 4), plain=plain)
        assert over(network, 0) == "overlap-unproved"
    if plain:
        network = stored_network(Geometry("elementwise", shape, shape), (4, 4), plain=plain)
        assert over(network, 0) == "overlap-unproved"


# -- groups --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", ["", "x", "y"])
def test_a_group_in_tiles_has_no_operand_in_patches(plain: str) -> None:
    shape = (1, 1, 4, 4)
    network = stored_network(Geometry("conv", shape, shape, (1, 1)), (4, 4), plain=plain)
    group = Group("g", ("f",), 1000, 4, (), (), Tiling(1))
    program: list[Instruction] = [Scratch("g", 0), Run("g", (("x", 16), ("y", 16)))]
    with pytest.raises(IllegalPlan, match=r"group-unproved: .* lies in patches"):
        certify(network, Chip("c", 1), 1000, program, status="feasible", lower_bound_bytes=0, seconds=0,
                groups=[group])  # fmt: skip


# -- the rule ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("geometry", "x", "y"),
    [
        (Geometry("conv", (1, 2, 3, 3), (1, 4, 3, 3), (1, 1)), (2, 3, 3), (4, 3, 3)),
        (Geometry("conv", (1, 3, 3, 2), (1, 3, 3, 4), (1, 1), layout="NHWC"), (2, 3, 3), (4, 3, 3)),
        (Geometry("pool", (2, 2, 3, 3), (2, 2, 1, 1), (3, 3)), (4, 3, 3), (4, 1, 1)),
        (Geometry("pad", (1, 2, 3, 3), (1, 2, 4, 4), padding=(0, 0, 1, 1)), (2, 3, 3), (2, 4, 4)),
        (SAME, (3, 5, 6), (3, 5, 6)),
        (SAME, (1, 5, 1), (3, 5, 6)),
        (Geometry("concat", (1, 3, 5, 6), (1, 3, 5, 6)), (3, 5, 6), (3, 5, 6)),
    ],
)
def test_patches_are_those_of_the_map_that_the_geometry_names(
    geometry: Geometry, x: tuple[int, int, int], y: tuple[int, int, int]
) -> None:
    def judged(x: tuple[int, int, int], y: tuple[int, int, int]) -> str | None:
        stored = {"x": Patches(*x, 4, 4), "y": Patches(*y, 4, 4)}
        network = Network.build(
            "n",
            [("x", stored["x"].elements, "input"), ("y", stored["y"].elements, "activation")],
            [OperatorSpec("f", "F", ["x"], ["y"], 0, 0, geometry)],
            ["y"],
            patches=stored,
        )
        program: list[Instruction] = [Load("x", 0), Alloc("y", 1000), Run("f"), Store("y")]
        try:
            certify(network, Chip("c", 1), 9999, program, status="feasible", lower_bound_bytes=0, seconds=0)
        except IllegalPlan as refused:
            return refused.rule
        return None

    assert judged(x, y) is None
    for i in range(3):
        wrong_y = (*y[:i], y[i] + 7, *y[i + 1 :])
        assert judged(x, wrong_y) == "patches"
        if not (geometry.kind == "concat" and i == 0):  # its channels count where it is joined
            assert judged((*x[:i], x[i] + 7, *x[i + 1 :]), y) == "patches"
