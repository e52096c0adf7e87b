"""Streaming: what the scratch must hold so that nothing crosses twice, and what is counted."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given
from test_overlap import geometries, steps

from onchip.base.errors import IllegalPlan
from onchip.check import certify
from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.plans import Alloc, Group, Instruction, Load, Plan, Run, Scratch, Store


def network_of(geometry: Geometry | None, x: int, y: int, workspace: int, weights: int = 0) -> Network:
    operator = OperatorSpec("f", "F", ["x"], ["y"], weights, workspace, geometry)
    return Network.build("n", [("x", x, "input"), ("y", y, "activation")], [operator], ["y"])


def planned(network: Network, program: list[Instruction], **options: str) -> Plan:
    return certify(
        network, Chip("c", 1), 1 << 40, program,
        status="feasible", lower_bound_bytes=0, seconds=0, options=options,
    )  # fmt: skip


def refused(network: Network, program: list[Instruction], **options: str) -> str | None:
    try:
        planned(network, program, **options)
    except IllegalPlan as refusal:
        return refusal.rule
    return None


X, Y = 24, 12
BOTH: list[Instruction] = [Scratch("f", 0), Run("f", (("x", X), ("y", Y)))]


def test_at_once_needs_no_geometry_and_is_compulsory() -> None:
    result = planned(network_of(None, X, Y, X + Y, 7), BOTH).result
    assert (result.compulsory_bytes, result.traffic_bytes, result.weight_bytes) == (X + Y, 0, 7)
    assert (result.peak_bytes, result.extent_bytes) == (X + Y, X + Y)
    assert refused(network_of(None, X, Y, X + Y - 1), BOTH) == "streaming-unproved"


def test_resident_weights_take_their_part_of_the_scratch() -> None:
    network = network_of(None, X, Y, X + Y + 6, 7)
    assert refused(network, BOTH, weights="streamed") is None
    assert refused(network, BOTH, weights="resident") == "streaming-unproved"


def test_without_a_workspace_there_is_nothing_to_stream_through() -> None:
    in_place = Geometry("elementwise", (X,), (X,))
    program: list[Instruction] = [Run("f", (("x", X), ("y", X)))]
    assert refused(network_of(in_place, X, X, 0), program) == "streaming-unproved"
    assert refused(network_of(in_place, X, X, 2), program) == "no-scratch"


def test_streaming_again_is_reload_and_spill() -> None:
    network = Network.build(
        "n",
        [("x", 5, "input"), ("a", 4, "activation"), ("y", 3, "activation")],
        [OperatorSpec("f", "F", ["x"], ["a"], 0, 9), OperatorSpec("g", "G", ["x", "a"], ["y"], 0, 9)],
        ["y"],
    )
    program: list[Instruction] = [
        Scratch("f", 0), Run("f", (("x", 5), ("a", 4))), Scratch("g", 0), Alloc("y", 9),
        Run("g", (("a", 4), ("x", 5))), Store("y"), Store("y"),
    ]  # fmt: skip
    result = planned(network, program).result
    assert (result.compulsory_bytes, result.spill_bytes, result.reload_bytes) == (5 + 3, 4 + 3, 4 + 5)


@pytest.mark.parametrize(
    ("geometry", "x", "y", "room"),
    [
        (Geometry("elementwise", (2, 6), (2, 6)), 12, 12, 2),
        (Geometry("elementwise", (2, 6), (2, 6)), 48, 12, 5),
        (Geometry("fully_connected", (4, 3), (4, 5)), 12, 20, 3 + 5),
        # Three rows of 8 x 2 bytes, and a pixel of 4.
        (Geometry("conv", (1, 8, 8, 2), (1, 8, 8, 4), (3, 3), padding=(1, 1, 1, 1), layout="NHWC"),
         128, 256, 3 * 16 + 4),
        (Geometry("conv", (1, 8, 8, 2), (1, 8, 8, 4), (1, 1), layout="NHWC"), 128, 256, 16 + 4),
        # A window that spans more rows than there are.
        (Geometry("pool", (1, 2, 2, 4), (1, 2, 2, 4), (3, 3), (1, 1), (1, 1, 1, 1), (2, 2), layout="NHWC"),
         16, 16, 2 * 8 + 4),
        # One channel after another.
        (Geometry("depthwise", (1, 3, 8, 8), (1, 3, 8, 8), (3, 3), padding=(1, 1, 1, 1)),
         192, 192, 3 * 8 + 1),
    ],
)  # fmt: skip
def test_a_line_buffer_is_enough_and_a_byte_less_is_not(
    geometry: Geometry, x: int, y: int, room: int
) -> None:
    program: list[Instruction] = [Scratch("f", 0), Run("f", (("x", x), ("y", y)))]
    assert refused(network_of(geometry, x, y, room), program) is None
    assert refused(network_of(geometry, x, y, room - 1), program) == "streaming-unproved"


def test_a_walk_over_the_whole_input_for_each_output_channel_cannot_stream_it() -> None:
    geometry = Geometry("conv", (1, 2, 8, 8), (1, 2, 8, 8), (1, 1))
    network = network_of(geometry, 128, 128, 127)
    assert (
        refused(network, [Scratch("f", 0), Alloc("y", 200), Run("f", (("x", 128),))]) == "streaming-unproved"
    )
    assert refused(network, [Load("x", 200), Scratch("f", 0), Run("f", (("y", 128),))]) is None


def test_what_is_read_through_a_view_or_as_a_second_input_streams_only_at_once() -> None:
    windows = Geometry("conv", (1, 2, 2, 1), (1, 2, 2, 1), (1, 1), layout="NHWC")
    tensors = [("x", 4, "input"), ("k", 4, "input"), ("part", 4, "activation"), ("y", 4, "activation")]
    for inputs, streamed in ((["part", "k"], "x"), (["x", "k"], "k")):
        for room, rule in ((4, None), (3, "streaming-unproved")):
            network = Network.build(
                "n", tensors, [OperatorSpec("f", "F", inputs, ["y"], 0, room, windows)], ["y"],  # type: ignore[arg-type]
                views=[("part", "x", 0)],
            )  # fmt: skip
            other = "k" if streamed == "x" else "x"
            program: list[Instruction] = [
                Load(other, 100), Alloc("y", 200), Scratch("f", 0), Run("f", ((streamed, 4),)), Store("y"),
            ]  # fmt: skip
            assert refused(network, program) == rule


def test_a_group_streams_through_what_its_inner_tensors_leave() -> None:
    network = Network.build(
        "n",
        [("x", 5, "input"), ("a", 4, "activation"), ("y", 3, "activation")],
        [OperatorSpec("f", "F", ["x"], ["a"], 10, 0), OperatorSpec("g", "G", ["a"], ["y"], 20, 6)],
        ["y"],
    )
    program: list[Instruction] = [Scratch("fg", 0), Run("fg", (("x", 5), ("y", 3)))]

    def plan(scratch: int, resident: tuple[str, ...] = ()) -> Plan:
        group = Group("fg", ("f", "g"), scratch, 1, (("g", 3),), resident)
        return certify(
            network, Chip("c", 1), 99, program,
            status="feasible", lower_bound_bytes=0, seconds=0, groups=[group],
        )  # fmt: skip

    # a, the larger workspace, and both operands at once
    assert plan(4 + 6 + 8).result.weight_bytes == 10 + 3 * 20
    with pytest.raises(IllegalPlan, match="streaming-unproved"):
        plan(4 + 6 + 7)
    with pytest.raises(IllegalPlan, match="streaming-unproved"):
        plan(4 + 6 + 7 + 10, ("f",))
    assert plan(4 + 6 + 8 + 10, ("f",)).result.peak_bytes == 28


@pytest.mark.thorough
@given(geometries())
def test_no_row_is_needed_again_once_it_left_the_line_buffer(g: Geometry) -> None:
    """The accepted scratch is simulated: rows come once, in order, and only what it holds is read."""
    if g.kind == "elementwise":
        return
    x, y = prod(g.input), prod(g.output)
    program: list[Instruction] = [Alloc("y", 1000), Scratch("f", 0), Run("f", (("x", x),)), Store("y")]
    room = next((r for r in range(1, x) if refused(network_of(g, x, y, r), program) is None), None)
    if room is None:
        return
    # A row, in the order of addresses, is as much as lies between two vertical positions of one plane.
    row = g.input[-1] * (g.input[2] if g.layout == "NHWC" and g.kind != "fully_connected" else 1)
    planes = g.input[1] // g.groups if g.layout == "NCHW" and g.kind == "conv" else 1
    most = room // row // planes
    rows = [sorted({e // row for e in read}) for read, _ in steps(g)]
    if g.traversal == "reverse":
        rows = [[-r for r in reversed(step)] for step in rows]
    if planes == 1:
        newest = None
        for step in (s for s in rows if s):
            newest = step[-1] if newest is None else max(newest, step[-1])
            assert newest - step[0] < most


def test_what_may_be_broadcast_streams_only_at_once() -> None:
    # Four wide numbers, one for each of four channels, have as many bytes as sixteen narrow ones: a piece of
    # them is wanted again for every pixel.
    g = Geometry("elementwise", (1, 4, 1, 4), (1, 4, 1, 4), layout="NHWC")
    network = Network.build(
        "n",
        [("x", 64, "input"), ("b", 16, "input"), ("y", 16, "activation")],
        [OperatorSpec("f", "F", ["x", "b"], ["y"], 0, 15, g)],
        ["y"],
    )

    def program(*streamed: tuple[str, int]) -> list[Instruction]:
        rest: list[Instruction] = [Load(t, at) for t, at in (("x", 0), ("b", 64)) if t not in dict(streamed)]
        return [*rest, Alloc("y", 80), Scratch("f", 96), Run("f", streamed), Store("y")]

    assert refused(network, program(("x", 64))) is None
    assert refused(network, program(("b", 16))) == "streaming-unproved"
    at_once = replace(network, operators=(replace(network.operators[0], workspace=16),))
    assert refused(at_once, program(("b", 16))) is None
