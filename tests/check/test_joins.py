"""Joined concats: the proof against elements laid out one by one, and what joining costs."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import IllegalPlan
from onchip.check import certify, concat_offsets, plain_concat
from onchip.machines.chip import Chip, Rates
from onchip.network import Geometry, Network, OperatorSpec, Patches
from onchip.plans import Alloc, Free, Instruction, Join, Load, Pin, PinnedTensor, Plan, Run, State, Store

Shape = tuple[int, int, int, int]  # images, channels, rows, columns
Cell = tuple[int, int, int, int, int] | None  # operand and element; None where nobody knows


def laid_out(shape: Shape, layout: str, patch: tuple[int, int] | None, first: int = 0) -> list[Cell]:
    """The channels of a map in the order of their addresses; `first` is the number of its first channel."""
    n, c, h, w = shape
    if patch is None and layout == "NHWC":
        return [(i, first + j, y, x, 0) for i, y, x, j in product(range(n), range(h), range(w), range(c))]
    if patch is None:
        return [(i, first + j, y, x, 0) for i, j, y, x in product(range(n), range(c), range(h), range(w))]
    tall, wide = patch
    found: list[Cell] = []
    for i, j, down, across in product(range(n), range(c), range(0, h, tall), range(0, w, wide)):
        for y, x in product(range(down, down + tall), range(across, across + wide)):
            found.append((i, first + j, y, x, 0) if y < h and x < w else None)
    return found


@pytest.mark.thorough
@given(st.data())
@settings(max_examples=300)
def test_a_plain_concat_is_one_whose_cells_lie_in_turn(data: st.DataObject) -> None:
    def number(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    images, rows, columns = data.draw(st.sampled_from((1, 1, 1, 2))), number(1, 4), number(1, 4)
    layout = data.draw(st.sampled_from(("NCHW", "NHWC")))
    channels = [number(1, 3) for _ in range(number(2, 3))]
    width, patch = data.draw(st.sampled_from((1, 2, 4))), (number(1, 3), number(1, 3))
    chosen: list[tuple[int, int] | None] = [patch] * (len(channels) + 1)
    match number(0, 3):
        case 0 | 1:
            chosen = [None] * (len(channels) + 1)
        case 2:
            at = number(0, len(channels))
            chosen[at] = data.draw(st.sampled_from((None, (number(1, 3), number(1, 3)))))
    shapes: list[Shape] = [(images, c, rows, columns) for c in (*channels, sum(channels))]
    starts = [sum(channels[:i]) for i in range(len(channels))]
    operands = [laid_out(shapes[i], layout, chosen[i], start) for i, start in enumerate(starts)]
    output = laid_out(shapes[-1], layout, chosen[-1])
    in_turn = [cell for operand in operands for cell in operand]
    equal = len(in_turn) == len(output) and all(
        theirs is None or mine == theirs for mine, theirs in zip(in_turn, output, strict=True)
    )
    names = [f"x{i}" for i in range(len(channels))]
    stored = {
        name: Patches(n * c, h, w, *how)
        for name, (n, c, h, w), how in zip((*names, "y"), shapes, chosen, strict=True)
        if how is not None
    }
    ins, out = ((n, h, w, c) if layout == "NHWC" else (n, c, h, w) for n, c, h, w in (shapes[0], shapes[-1]))
    network = Network.build(
        "n",
        [
            *((name, len(cells) * width, "input") for name, cells in zip(names, operands, strict=True)),
            ("y", len(output) * width, "activation"),
        ],
        [OperatorSpec("f", "Concat", names, ["y"], geometry=Geometry("concat", ins, out, layout=layout))],  # type: ignore[arg-type]
        ["y"],
        patches=stored,
    )
    if len(set(chosen)) == 1:
        assert plain_concat(network, 0) == equal
    else:
        # Patches as large as the plane are no patches; the proof does not look at such cases.
        assert not plain_concat(network, 0)
    if plain_concat(network, 0):
        offsets = concat_offsets(network, 0)
        assert not isinstance(offsets, str)
        for i, operand in enumerate(operands):
            begin = offsets[i] // width
            for mine, theirs in zip(output[begin : begin + len(operand)], operand, strict=True):
                assert mine is None or mine == theirs


def vectors(*, geometry: Geometry | None = None, **more: object) -> Network:
    """y = [a, b] of 4 and 2 bytes, made from x; z is made from y, and a is read once more."""
    concat = geometry or Geometry("concat", (1, 4, 1, 1), (1, 6, 1, 1))
    spec = OperatorSpec("join", "Concat", ["a", "b"], ["y"], geometry=concat)
    return Network.build(
        "n",
        [("x", 2, "input"), ("a", 4, "activation"), ("b", 2, "activation"), ("y", 6, "activation"),
         ("z", 3, "activation")],
        [
            OperatorSpec("f", "F", ["x"], ["a"]),
            OperatorSpec("g", "G", ["x"], ["b"]),
            replace(spec, **more),  # type: ignore[arg-type]
            OperatorSpec("h", "H", ["y"], ["z"]),
        ],
        ["z"],
    )  # fmt: skip


MADE: list[Instruction] = [Load("x", 0), Alloc("a", 2), Run("f"), Alloc("b", 6), Run("g")]
AFTER: list[Instruction] = [Alloc("z", 8), Run("h"), Store("z")]
IN_PLACE = [*MADE, Alloc("y", 2, parts=("b", "a")), Run("join"), *AFTER]
IN_DRAM = [*MADE, Store("a"), Store("b"), Join("join"), Free("a"), Free("b"), Load("y", 2), *AFTER]


def planned(
    network: Network, program: list[Instruction], chip: Chip | None = None, pins: tuple[Pin, ...] = ()
) -> Plan:
    return certify(
        network, chip or Chip("c", 1), 20, program,
        status="feasible", lower_bound_bytes=0, seconds=0, pins=pins,
    )  # fmt: skip


def refused(network: Network, program: list[Instruction], pins: tuple[Pin, ...] = ()) -> str | None:
    try:
        planned(network, program, pins=pins)
    except IllegalPlan as refusal:
        return refusal.rule
    return None


def test_what_is_joined_takes_no_bytes_of_its_own() -> None:
    here, there = planned(vectors(), IN_PLACE).result, planned(vectors(), IN_DRAM).result
    assert (here.traffic_bytes, here.extent_bytes) == (0, 11)
    assert (there.spill_bytes, there.reload_bytes, there.extent_bytes) == (4 + 2, 6, 11)
    assert here.compulsory_bytes == there.compulsory_bytes == 2 + 3


def test_what_is_joined_takes_no_time_and_no_energy() -> None:
    rates = Rates(dram_bytes_per_second=1e12, macs_per_second=1e12, scratchpad_bytes_per_second=1e12,
                  dram_picojoules_per_byte=100.0, scratchpad_picojoules_per_byte=1.0)  # fmt: skip
    chip = Chip("c", 1, rates=rates)
    copied = [*MADE, Alloc("y", 8), Run("join"), Alloc("z", 14), Run("h"), Store("z")]
    half = [*MADE[:3], Alloc("b", 12), Run("g"), Alloc("y", 2, parts=("a",)), Run("join"), *AFTER]
    plans = [planned(vectors(), program, chip) for program in (copied, half, IN_PLACE)]
    runs = [
        next(t.end - t.start for t in plan.timing if plan.program[t.index] == Run("join")) for plan in plans
    ]
    assert runs == [12, 4, 0]  # bytes read and written in the scratchpad, one a picosecond
    energies = [plan.result.energy_picojoules or 0 for plan in plans]
    assert [energies[0] - e for e in energies] == [0, 8, 12]
    in_dram = planned(vectors(), IN_DRAM, chip)
    assert not any(isinstance(in_dram.program[t.index], Join) for t in in_dram.timing)
    moved = in_dram.result.dram_bytes - plans[2].result.dram_bytes
    assert in_dram.result.energy_picojoules == energies[2] + moved * 101


def test_what_is_loaded_after_a_join_waits_for_the_last_operand_to_have_crossed() -> None:
    rates = Rates(dram_bytes_per_second=1e12, macs_per_second=1e12, scratchpad_bytes_per_second=1e11)
    chip = Chip("c", 1, rates=rates)
    plan = planned(vectors(), IN_DRAM, chip)
    when = {plan.program[t.index]: t for t in plan.timing}
    assert when[Load("y", 2)].start >= max(when[Store("a")].end, when[Store("b")].end)


@pytest.mark.parametrize(
    "more",
    [
        {"geometry": Geometry("elementwise", (1, 6, 1, 1), (1, 6, 1, 1))},
        {"geometry": Geometry("concat", (1, 4), (2, 3))},
        {"geometry": Geometry("concat", (2, 2, 1, 1), (2, 3, 1, 1))},
        {"geometry": Geometry("concat", (1, 2, 2, 1), (1, 3, 2, 1), layout="NHWC")},
        {"geometry": Geometry("concat", (1, 2, 1, 2), (1, 2, 1, 2))},
        {"geometry": Geometry("concat", (1, 1, 4, 1), (1, 1, 4, 1))},
        {"geometry": Geometry("concat", (1, 1, 3, 1), (1, 2, 3, 1))},  # a has a channel and a third
        {"type": "DequantizeLinear+Concat"},
        {"weight_bytes": 1},
        {"macs": 1},
        {"inputs": ["b", "b"]},
    ],
)
def test_a_concat_that_is_not_plain_is_a_layer_like_any_other(more: dict[str, object]) -> None:
    network = vectors(**more)  # type: ignore[arg-type]
    assert not plain_concat(network, 2)
    copied = [*MADE, Alloc("y", 8), Run("join"), Alloc("z", 14), Run("h"), Store("z")]
    assert refused(network, copied) is None
    assert refused(network, IN_DRAM) == "join-not-concat"
    parts = [p for p in ("a", "b") if network.tensor_id[p] in network.operators[2].inputs]
    program = [*MADE, Alloc("y", 2, parts=tuple(parts)), Run("join"), *AFTER]
    assert refused(network, program) == "join-not-concat"


def test_a_concat_of_features_is_plain_whatever_the_layout() -> None:
    for geometry in (
        Geometry("concat", (1, 4), (1, 6)),
        Geometry("concat", (1, 1, 1, 4), (1, 1, 1, 6), layout="NHWC"),
        Geometry("concat", (1, 2, 2, 1), (1, 3, 2, 1)),
    ):
        assert plain_concat(vectors(geometry=geometry), 2)


def test_operands_of_other_elements_than_the_output_are_not_joined() -> None:
    """Their bytes add up and their patches are alike, but b has narrower elements, and so more channels."""

    def joined(b: Patches) -> bool:
        stored = {"a": Patches(2, 4, 4, 4, 4), "b": b, "y": Patches(3, 4, 4, 4, 4)}
        network = Network.build(
            "n",
            [("a", 64, "input"), ("b", 32, "input"), ("y", 96, "activation")],
            [OperatorSpec("j", "Concat", ["a", "b"], ["y"],
                          geometry=Geometry("concat", (1, 2, 4, 4), (1, 3, 4, 4)))],
            ["y"],
            patches=stored,
        )  # fmt: skip
        return plain_concat(network, 0)

    assert joined(Patches(1, 4, 4, 4, 4))
    assert not joined(Patches(2, 4, 4, 4, 4))


def test_an_operand_that_is_a_view_is_not_joined() -> None:
    network = Network.build(
        "n",
        [("a", 4, "input"), ("half", 2, "activation"), ("b", 2, "input"), ("y", 4, "activation")],
        [OperatorSpec("j", "Concat", ["half", "b"], ["y"],
                      geometry=Geometry("concat", (1, 2, 1, 1), (1, 4, 1, 1)))],
        ["y"],
        views=[("half", "a", 0)],
    )  # fmt: skip
    assert "view" in str(concat_offsets(network, 0))


def test_a_part_that_is_still_needed_does_not_end_in_the_concat() -> None:
    network = vectors()
    operators = list(network.operators)
    operators[3] = replace(operators[3], inputs=(network.tensor_id["y"], network.tensor_id["a"]))
    assert refused(replace(network, operators=tuple(operators)), IN_PLACE) == "overlap-still-needed"
    output = replace(network, outputs=(*network.outputs, network.tensor_id["a"]))
    assert refused(output, IN_PLACE) == "overlap-still-needed"
    assert refused(output, [*IN_PLACE[:5], Store("a"), *IN_PLACE[5:]]) is None


def test_a_part_lies_in_its_place_until_the_concat_ran() -> None:
    stored = [*MADE, Store("a"), Store("b"), Alloc("y", 2, parts=("a", "b"))]
    assert refused(vectors(), [*stored, Free("a")]) == "overlap-freed"
    assert refused(vectors(), [*stored, Run("join"), Free("a")]) == "not-resident"
    assert refused(vectors(), [*MADE, Alloc("y", 2, parts=("a",))]) == "range-not-free"  # b is in the way
    assert refused(vectors(), [*MADE, Alloc("y", 3, parts=("a",))]) == "join-place"
    assert refused(vectors(), [*MADE, Alloc("y", 2, parts=("a", "x"))]) == "overlap-not-input"
    assert refused(vectors(), [*MADE, Alloc("y", 2, parts=("a", "z"))]) == "not-resident"


def test_what_was_joined_is_there_as_often_as_it_is_read() -> None:
    again = [*IN_DRAM, Free("y"), Load("y", 2), Store("y"), Free("y"), Load("a", 2), Free("a")]
    result = planned(vectors(), again).result
    assert (result.spill_bytes, result.reload_bytes) == (6 + 6, 6 + 6 + 4)


def test_pinned_operands_may_be_joined_and_a_pinned_output_may_not() -> None:
    assert refused(vectors(), IN_PLACE, (PinnedTensor("a", 2), PinnedTensor("y", 2))) is None
    assert refused(vectors(), IN_PLACE, (PinnedTensor("y", 3),)) == "pin-moved"
    assert refused(vectors(), IN_DRAM, (PinnedTensor("a"),)) is None
    assert refused(vectors(), IN_DRAM, (PinnedTensor("y"),)) == "pin-moved"


def test_a_state_may_become_part_of_a_concat_on_chip_only() -> None:
    network = Network.build(
        "n",
        [("old", 2, "input"), ("b", 2, "activation"), ("y", 4, "activation"), ("new", 2, "activation")],
        [OperatorSpec("g", "G", [], ["b"]),
         OperatorSpec("j", "Concat", ["old", "b"], ["y"],
                      geometry=Geometry("concat", (1, 2, 1, 1), (1, 4, 1, 1))),
         OperatorSpec("r", "R", ["y"], ["new"])],
        ["y"],
    )  # fmt: skip

    def plan(middle: list[Instruction]) -> str | None:
        program: list[Instruction] = [Alloc("b", 2), Run("g"), *middle]
        try:
            certify(network, Chip("c", 1), 20, program, status="feasible", lower_bound_bytes=0, seconds=0,
                    state=[State("old", "new", 0)])  # fmt: skip
        except IllegalPlan as refusal:
            return refusal.rule
        return None

    inside: list[Instruction] = [Alloc("y", 0, parts=("old", "b")), Run("j"), Store("y")]
    apart: list[Instruction] = [Free("y"), Load("y", 4), Alloc("new", 0), Run("r")]
    assert plan([*inside, *apart]) is None
    assert plan([Store("old"), Store("b"), Join("j")]) == "join-graph-input"


def test_concats_are_joined_inside_each_other() -> None:
    shape = Geometry("concat", (1, 2, 1, 1), (1, 4, 1, 1))
    network = Network.build(
        "n",
        [(t, 2, "activation") for t in "abc"] + [("ab", 4, "activation"), ("abc", 6, "activation")],
        [*(OperatorSpec(f"make {t}", "M", [], [t]) for t in "abc"),
         OperatorSpec("j", "Concat", ["a", "b"], ["ab"], geometry=shape),
         OperatorSpec("k", "Concat", ["ab", "c"], ["abc"],
                      geometry=Geometry("concat", (1, 4, 1, 1), (1, 6, 1, 1)))],
        ["abc"],
    )  # fmt: skip
    head: list[Instruction] = [
        x for t, at in zip("abc", (0, 2, 4), strict=True) for x in (Alloc(t, at), Run(f"make {t}"))
    ]
    here: list[Instruction] = [
        *head, Alloc("ab", 0, parts=("a", "b")), Run("j"), Alloc("abc", 0, parts=("c", "ab")), Run("k"),
        Store("abc"),
    ]  # fmt: skip
    assert planned(network, here).result.extent_bytes == 6
    stored = [*head, Store("a"), Store("b"), Store("c")]
    there = [*stored, Join("j"), Join("k")]
    assert planned(network, there).result.compulsory_bytes == 0
    assert refused(network, [*stored, Join("k")]) == "join-no-dram-copy"
    assert refused(network, [*there, Join("k")]) == "already-run"
