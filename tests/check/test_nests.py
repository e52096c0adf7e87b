"""Groups in nests: the checker's counts against a machine that runs them, the worked example, refusals."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nest_plans import BUDGET_12, plan_of, products

from onchip.base.errors import IllegalPlan, ModelError, PlanFormatError
from onchip.check import RULES, Layout, Place, check, events_of, layout_of
from onchip.check.nests import nested
from onchip.check.replay import Ran
from onchip.machines.chip import Chip, Rates
from onchip.network import Constant, Network, OperatorSpec, Reach, Side
from onchip.plans import Boxes, Group, Leaf, Loop, Nest, Plan, Run, from_json, from_text, to_json, to_text
from onchip.report import html, timeline
from onchip.report.grouped import group_rows
from onchip.report.nest.shown import ShownLeaf, shown_nests
from oracles.nest_trial import trial


@pytest.mark.thorough
@settings(max_examples=400)
@given(st.integers(0, 10**9))
def test_a_nest_is_legal_and_moves_bytes_as_a_machine_runs_it(seed: int) -> None:
    trial(seed)


PAGE = Path(__file__).resolve().parents[2] / "docs" / "nests.md"


# -- the worked example of docs/nests.md -------------------------------------------------------------------

M, F, D, Y = 0, 1, 2, 1
"""Axes: rows and hidden features of up, its sum; the features of down. The sum of down is axis 2."""


def over_f(tile: int, *body: Leaf, keep: tuple[str, ...] = ()) -> Loop:
    return Loop((("up", F), ("down", 2)), tile, body, keep)


def over_m(tile: int, *body: Leaf | Loop, keep: tuple[str, ...] = ()) -> Loop:
    return Loop((("up", M), ("down", M)), tile, body, keep)


def up(*slices: tuple[int, int]) -> Leaf:
    return Leaf("up", slices)


def down(*slices: tuple[int, int]) -> Leaf:
    return Leaf("down", slices)


F_DOWN = 2
EXAMPLE = {
    "m tile 1, f tile 3, z spilled": (
        272,
        5,
        Nest((over_m(1, over_f(3, up((D, 1), (F, 1)), down((Y, 1), (F_DOWN, 1)))),)),
    ),
    "m tile 1: a row of h": (224, 8, Nest((over_m(1, up((D, 1), (F, 1)), down((Y, 1), (F_DOWN, 1))),))),
    "m tile 2, f tile 3": (
        176,
        9,
        Nest((over_m(2, over_f(3, up((D, 1), (F, 1), (M, 1)), down((Y, 1), (F_DOWN, 1)))),)),
    ),
    "f tile 2, z spilled": (176, 11, BUDGET_12),
    "m tile 2": (128, 15, Nest((over_m(2, up((D, 1), (F, 1), (M, 1)), down((Y, 1), (F_DOWN, 1))),))),
    "f tile 2, z held": (
        112,
        27,
        Nest((over_f(2, up((D, 1), (M, 1)), down((Y, 1), (M, 1))),), ("z",)),
    ),
    "no loop": (80, 29, Nest((up((D, 1), (F, 1)), down((Y, 1), (F_DOWN, 1))))),
}
"""By name: the bytes that cross, the bytes of scratch, the nest."""


@pytest.mark.parametrize("name", EXAMPLE)
def test_the_worked_example(name: str) -> None:
    crossing, scratch, nest = EXAMPLE[name]
    plan = plan_of(products(), nest)
    assert plan.result.dram_bytes == crossing
    assert plan.groups[0].scratch_bytes == scratch
    layout = layout_of(plan.network, plan.groups[0])
    assert layout.need <= layout.extent == plan.groups[0].scratch_bytes
    assert from_text(to_text(plan)) == plan == from_json(to_json(plan))
    check(plan)
    (group,) = plan.groups
    refused(replace(plan, groups=(replace(group, scratch_bytes=group.scratch_bytes - 1),)), "group-scratch")
    *before, run = plan.program
    assert isinstance(run, Run)
    for i, (t, size) in enumerate(run.streaming):
        for wrong in (size - 1, size + 1):
            stated = (*run.streaming[:i], (t, wrong), *run.streaming[i + 1 :])
            refused(replace(plan, program=(*before, Run("g", stated))), "streaming-bytes")


def test_the_page_states_the_example_and_its_table() -> None:
    page = PAGE.read_text()
    (text,) = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    plan, ours = from_text(text), plan_of(products(), BUDGET_12)
    assert check(plan) == plan.result
    assert (plan.network, plan.groups, plan.program) == (ours.network, ours.groups, ours.program)
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (.*) \|$", page, re.MULTILINE)
    assert rows == [(str(crossing), str(scratch), name) for name, (crossing, scratch, _) in EXAMPLE.items()]
    assert [name for name in RULES if name.startswith("nest-")] == sorted(
        set(re.findall(r"`(nest-[a-z]+)`", page)), key=list(RULES).index
    )


def refused(plan: Plan, rule: str) -> str:
    with pytest.raises(IllegalPlan) as refusal:
        check(plan)
    assert refusal.value.rule == rule
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_bytes_of_every_operand_are_stated_apart() -> None:
    plan = plan_of(products(), BUDGET_12)
    assert plan.program[-1] == Run("g", (("x", 48), ("z", 80)))
    assert plan.result.weight_bytes == 48
    assert plan.result.macs == 192
    assert plan.result.traffic_bytes == 48 - 16 + 80 - 16


def test_a_whole_operand_has_no_home_and_no_bytes_in_the_group() -> None:
    plan = plan_of(products(), BUDGET_12, ["x", "z"])
    assert plan.program[-2] == Run("g")
    assert plan.result.dram_bytes == 80
    assert plan.groups[0].scratch_bytes == 8 + 2
    kept = Nest(BUDGET_12.body, ("x",))
    (group,) = plan.groups
    told = refused(replace(plan, groups=(replace(group, tiling=kept),)), "nest-keep")
    assert "x, which is whole and has no home in the group" in told


def test_places_hold_every_use_and_tell_the_leaves_at_which_they_live() -> None:
    nest = Nest((up(), down()), ("B",))
    group = Group("g", ("up", "down"), 0, tiling=nest)
    layout = layout_of(products(), group)
    names = [layout.axes.buffers[place.buffer].name for place in layout.places]
    assert names == ["x", "A", "h", "B", "z"]
    assert [(p.first, p.last) for p in layout.places] == [(0, 0), (0, 0), (0, 1), (1, 1), (1, 1)]
    assert [p.home for p in layout.places] == [(0,), (0,), (), (), (1,)]
    assert sorted(use for p in layout.places for use in p.uses) == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
        (1, 1),
        (1, 2),
    ]
    assert layout.need == layout.extent == 64
    with pytest.raises(IllegalPlan):
        layout_of(products(), replace(group, tiling=Nest(())))


def test_a_layout_says_how_often_every_body_begins_and_what_each_place_holds_and_moves() -> None:
    """The worked example: three turns; x comes in each, z leaves partly summed, comes back, leaves."""
    layout = layout_of(products(), Group("g", ("up", "down"), 0, tiling=BUDGET_12))
    assert layout.entries == ((1, 3, 12, 48), (1, 3, 12, 48))
    found = {layout.axes.buffers[p.buffer].name: (p.sides, p.crosses) for p in layout.places}
    assert found == {
        "x": ((1, 1), 48),
        "A": ((1, 2), 24),
        "h": ((4, 2), 0),
        "B": ((2, 1), 24),
        "z": ((1, 1), 80),
    }
    ragged = Nest((over_m(3, over_m(2, over_f(4, up(), down()))),))
    layout = layout_of(products(), Group("g", ("up", "down"), 0, tiling=ragged))
    assert layout.entries == ((1, 2, 3, 6), (1, 2, 3, 6))


def relu() -> Network:
    """Two products, an element-wise operator between them."""
    plain = products()
    specs = [
        OperatorSpec("up", "MatMul", ["x"], ["a"], 24, reach=plain.operators[0].reach),
        OperatorSpec("relu", "Relu", ["a"], ["h"], reach=Reach((4, 6), ((Side(4, 0), Side(6, 1)),))),
        OperatorSpec("down", "MatMul", ["h"], ["z"], 24, reach=plain.operators[1].reach),
    ]
    tensors = [("x", 16, "input"), ("a", 24, "activation"), ("h", 24, "activation"), ("z", 16, "activation")]
    return Network.build("relu", tensors, specs, ["z"])  # type: ignore[arg-type]


def bands() -> Network:
    """Two convolutions, the second of stride 2, and a resize behind them."""
    names, sizes = ("x", "a", "h", "z"), (8, 8, 4, 8)
    sides = (Side(8, 0, before=1, span=3), Side(8, 0, 2, 1, 3), Side(4, 0, per=2))
    specs = [
        OperatorSpec(name, "Any", [names[n]], [names[n + 1]], reach=Reach((sizes[n + 1],), ((sides[n],),)))
        for n, name in enumerate(("up", "relu", "down"))
    ]
    tensors = [
        (name, n, "activation" if name != "x" else "input") for name, n in zip(names, sizes, strict=True)
    ]
    return Network.build("bands", tensors, specs, ["z"])  # type: ignore[arg-type]


def test_an_output_in_the_place_of_an_operand_takes_no_place_of_its_own() -> None:
    over = (("up", F), ("relu", 1), ("down", 2))

    def nest(place: str | None) -> Nest:
        leaves = (up((D, 1), (M, 1)), Leaf("relu", ((0, 1),), place), down((Y, 1), (M, 1)))
        return Nest((Loop(over, 2, leaves),))

    apart, inside = (plan_of(relu(), nest(place)) for place in (None, "a"))
    assert (apart.groups[0].scratch_bytes, inside.groups[0].scratch_bytes) == (16, 11)
    assert apart.result.dram_bytes == inside.result.dram_bytes == 176
    check(inside)


def gated(*, pooled_last: bool = False) -> Network:
    """A map of 3 x 4 is made, pooled over its 4, and multiplied with that; or pooled afterwards."""
    rows, all_rows = (Side(3, 0), Side(4, 1)), (Side(3, 0), Side(4, 1))
    specs = [
        OperatorSpec("make", "Relu", ["x"], ["a"], reach=Reach((3, 4), (rows,))),
        OperatorSpec("pool", "Mean", ["a"], ["p"], reach=Reach((3,), (all_rows,), sums=(4,))),
        OperatorSpec("mul", "Mul", ["a", "p"], ["y"], reach=Reach((3, 4), (rows, (Side(3, 0),)))),
    ]
    if pooled_last:
        specs[2] = replace(specs[2], inputs=["a"], reach=Reach((3, 4), (rows,)))
        specs = [specs[0], specs[2], specs[1]]
    tensors = [("x", 12, "input"), ("a", 12, "activation"), ("p", 3, "activation"), ("y", 12, "activation")]
    return Network.build("gated", tensors, specs, ["y", "p"] if pooled_last else ["y"])  # type: ignore[arg-type]


CHANNELS = (("make", 0), ("pool", 0), ("mul", 0))


@pytest.mark.parametrize(("loop", "scratch"), [((), (12 + 12 + 3, 12 + 12)), (CHANNELS, (4 + 4 + 1, 4 + 4))])
def test_an_output_takes_the_place_of_what_others_read_before(
    loop: tuple[tuple[str, int], ...], scratch: tuple[int, int]
) -> None:
    """Then most is there while `make` runs, the map and what it is made of."""

    def plan(over: str | None) -> Plan:
        leaves = (Leaf("make"), Leaf("pool"), Leaf("mul", (), over))
        body = (Loop(loop, 1, leaves, ("y",)),) if loop else leaves
        return plan_of(gated(), Nest(body, () if loop else ("y",)))

    apart, inside = plan(None), plan("a")
    assert apart.result.dram_bytes == inside.result.dram_bytes
    assert (apart.groups[0].scratch_bytes, inside.groups[0].scratch_bytes) == scratch
    check(inside)


def test_an_output_takes_no_place_of_what_others_read_later() -> None:
    leaves = (Leaf("make"), Leaf("mul", (), "a"), Leaf("pool"))
    network = gated(pooled_last=True)
    plan = plan_of(network, Nest((leaves[0], Leaf("mul"), leaves[2]), ("y",)))
    changed = replace(plan.groups[0], tiling=Nest(leaves, ("y",)))
    told = refused(replace(plan, groups=(changed,)), "nest-over")
    assert "in the place of a, which pool reads, too: it runs later" in told


def test_nor_in_a_loop_in_whose_next_turn_they_read_it_again() -> None:
    """Every column of y takes the place of one of the map, all of which a gate reads for each column."""
    rows, everything = (Side(3, 0), Side(4, 1)), (Side(3, span=3), Side(4, span=4))
    specs = [
        OperatorSpec("make", "Relu", ["x"], ["a"], reach=Reach((3, 4), (rows,))),
        OperatorSpec("gate", "Any", ["a", "w"], ["q"], reach=Reach((4,), (everything, (Side(4, 0),)))),
        OperatorSpec("mul", "Mul", ["a", "q"], ["y"], reach=Reach((3, 4), (rows, (Side(4, 1),)))),
    ]
    tensors = [("x", 12, "input"), ("w", 4, "input"), ("a", 12, "activation"), ("q", 4, "activation")]
    network = Network.build("gate", [*tensors, ("y", 12, "activation")], specs, ["y"])  # type: ignore[list-item]

    def nest(over: str | None) -> Nest:
        loop = Loop((("gate", 0), ("mul", 1)), 1, (Leaf("gate"), Leaf("mul", (), over)))
        return Nest((Leaf("make"), loop), ("y",))

    plan = plan_of(network, nest(None))
    told = refused(replace(plan, groups=(replace(plan.groups[0], tiling=nest("a")),)), "nest-over")
    assert "which gate reads, too: a later turn of a loop around both reads it again" in told


LATE = Constant("b", 6, (Side(6, 1),), late=True)


def with_bias(bias: Constant) -> Network:
    """A product of 4 x 4 and 4 x 6 with a bias for each column."""
    product = Constant("A", 24, (Side(4, 2), Side(6, 1)))
    reach = Reach((4, 6), ((Side(4, 0), Side(4, 2)),), (product, bias), (4,))
    operators = [OperatorSpec("f", "MatMul", ["x"], ["y"], 30, reach=reach)]
    return Network.build("bias", [("x", 16, "input"), ("y", 24, "activation")], operators, ["y"])


def test_a_late_constant_comes_for_the_last_turns_of_a_sum() -> None:
    """Of one that is not, all of it comes for each of the four slices of the sum."""
    nest = Nest((Loop((("f", 2),), 1, (Leaf("f", ((1, 1),)),), ("y",)),))
    made, again = (plan_of(with_bias(bias), nest) for bias in (LATE, replace(LATE, late=False)))
    assert (made.result.weight_bytes, again.result.weight_bytes) == (24 + 6, 24 + 4 * 6)
    assert made.groups[0].scratch_bytes == again.groups[0].scratch_bytes
    for plan in (made, again):
        assert from_text(to_text(plan)) == from_json(to_json(plan)) == plan


def test_a_late_constant_goes_along_no_sum() -> None:
    with pytest.raises(ModelError, match="along a sum that is late"):
        with_bias(replace(LATE, bytes=4, sides=(Side(4, 2),)))


def test_a_layout_may_need_more_than_the_worst_moment_and_says_so() -> None:
    sizes = (1, 7, 6, 5, 8, 6, 1)
    names = ("x", "a", "b", "c", "d", "e", "y")
    specs = [
        OperatorSpec(f"f{i}", "Any", [names[i]], [names[i + 1]], reach=Reach((m,), ((Side(n, span=n),),)))
        for i, (n, m) in enumerate(pairwise(sizes))
    ]
    kinds = ["input", *["activation"] * 6]
    network = Network.build("chain", list(zip(names, sizes, kinds, strict=True)), specs, ["y"])  # type: ignore[arg-type]
    plan = plan_of(network, Nest(tuple(Leaf(f"f{i}") for i in range(6))))
    (group,) = plan.groups
    assert group.scratch_bytes == 18
    told = refused(replace(plan, groups=(replace(group, scratch_bytes=14),)), "group-scratch")
    assert "states 14 bytes and needs 18, as addresses go: 14 live at once" in told


def test_a_nest_of_absurdly_many_turns_is_judged_at_once() -> None:
    size = 10**9
    reach = Reach((size,), ((Side(size, 0),),))
    operators = [OperatorSpec("f", "Relu", ["x"], ["y"], reach=reach)]
    network = Network.build("long", [("x", size, "input"), ("y", size, "activation")], operators, ["y"])
    body: tuple[Loop | Leaf, ...] = (Leaf("f", ((0, 1),)),)
    for tile in range(2, 66):
        body = (Loop((("f", 0),), tile, body),)
    plan = plan_of(network, Nest(body))
    assert plan.groups[0].scratch_bytes == 2
    assert plan.result.dram_bytes == 2 * size
    wide = Reach((size, size), ((Side(size, 0),),), sums=())
    operators = [OperatorSpec("f", "Expand", ["x"], ["y"], reach=wide)]
    far = Network.build("wide", [("x", size, "input"), ("y", size, "activation")], operators, ["y"])
    with pytest.raises(IllegalPlan) as refusal:
        layout_of(far, Group("g", ("f",), 0, tiling=Nest((Loop((("f", 1),), 1, (Leaf("f"),)),))))
    assert refusal.value.rule == "group-unproved"


def test_a_nest_is_shown_in_its_group() -> None:
    plan = plan_of(products(), BUDGET_12)
    (row,) = group_rows(plan, timeline(plan))
    assert (row.bands, row.tile, row.dram_bytes) == ("nest", "a nest of 1 loop", 176)
    assert "a nest of 1 loop" in html(plan)
    unit = next(event.unit for event in events_of(plan) if isinstance(event, Ran))
    assert [(part.name, part.bytes) for part in unit.parts] == [("x", 1), ("up", 2), ("h", 8)]


def test_the_time_of_a_nest_is_that_of_what_crosses() -> None:
    chip = Chip("timed", 1, rates=Rates(dram_bytes_per_second=1e12, macs_per_second=1e12))
    plan = plan_of(products(), BUDGET_12, chip=chip)
    assert plan.result.latency_picoseconds == max(176, 192)
    check(plan)


words = st.sampled_from(("up", "relu", "down", "x", "a", "h", "z", "A", "nobody"))
small = st.integers(-1, 7)
any_leaf = st.builds(
    Leaf,
    st.sampled_from(("up", "relu", "down")),
    st.lists(st.tuples(st.integers(-1, 3), small), max_size=3).map(tuple),
    st.none() | words,
)
any_body = st.recursive(
    st.just((Leaf("up"), Leaf("relu", (), "a"), Leaf("down"))) | st.lists(any_leaf, max_size=3).map(tuple),
    lambda bodies: st.lists(
        any_leaf
        | st.builds(
            Loop,
            st.lists(st.tuples(words, st.integers(-1, 3)), max_size=3, unique_by=lambda row: row[0]).map(
                tuple
            )
            | st.sampled_from(((("up", 0), ("relu", 0), ("down", 0)), (("up", 1), ("relu", 1), ("down", 2)))),
            small,
            bodies,
            st.lists(words, max_size=1).map(tuple),
            st.just(()) | st.lists(words, max_size=2).map(tuple),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    max_leaves=4,
)


@pytest.mark.thorough
@settings(max_examples=300)
@given(any_body, st.lists(words, max_size=2).map(tuple), st.sets(st.sampled_from(("x", "z"))), st.booleans())
def test_any_nest_is_judged_or_refused_in_one_line(
    body: tuple[Loop | Leaf, ...], keep: tuple[str, ...], whole: set[str], slide: bool
) -> None:
    plan = plan_of(bands() if slide else relu(), Nest((up(), Leaf("relu"), down())), whole)
    (group,) = plan.groups
    changed = replace(plan, groups=(replace(group, scratch_bytes=10**6, tiling=Nest(body, keep)),))
    with pytest.raises(IllegalPlan) as refusal:  # the budget does not hold that scratch
        check(changed)
    assert refusal.value.rule.startswith(("nest-", "outside-budget", "group-"))
    assert "\n" not in str(refusal.value)
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize(
    ("order", "scratch", "width"), [((1, 2, 0), 33, 4), ((1, 0, 2), 24, 4), ((1, 0), 21, 1)]
)
def test_partial_sums_are_wider(order: tuple[int, ...], scratch: int, width: int) -> None:
    """The table of docs/nests.md: a private output is as wide as its sums if a slice goes over one."""
    reach = Reach((4, 4), ((Side(4, 0), Side(4, 2)),), (Constant("A", 16, (Side(4, 2), Side(4, 1))),), (4,))
    network = Network.build(
        "product",
        [("x", 16, "input"), ("z", 16, "activation")],
        [OperatorSpec("p", "MatMul", ["x"], ["z"], 16, reach=reach)],
        ["z"],
    )
    nest = Nest((Leaf("p", tuple((axis, 1) for axis in order)),))
    layout = layout_of(network, Group("g", ("p",), 0, tiling=nest), accumulator=4)
    assert layout.need == scratch
    assert [place.width for place in layout.places] == [1, 1, width]


def test_accumulators_lie_beside_what_is_summed_in_parts() -> None:
    """The rows of a kept output are summed one by one: it stays narrow, and a row of sums lies beside it."""
    kept = Nest((Loop((("up", 0),), 1, (Leaf("up", ((2, 1),)),)), Leaf("down")), keep=("z",))
    layout = layout_of(products(), Group("g", ("up", "down"), 0, tiling=kept), accumulator=4)
    assert [axes_name(layout, place) for place in layout.accumulators] == ["h"]
    [row] = layout.accumulators
    assert (row.sides, row.bytes, row.first, row.last, row.deep) == ((1, 6), 24, 0, 0, 1)
    narrow = layout_of(products(), Group("g", ("up", "down"), 0, tiling=kept))
    assert narrow.accumulators == ()


def axes_name(layout: Layout, place: Place) -> str:
    return layout.axes.buffers[place.buffer].name


def test_spilled_sums_cross_at_their_width_but_the_last() -> None:
    group = Group("g", ("up", "down"), 0, tiling=BUDGET_12)
    found = [
        nested(products(), group, [0, 1], None, 1, width).crossing[products().tensor_id["z"]]
        for width in (None, 1, 4)
    ]
    assert found == [16 * 5, 16 * 5, 16 + 2 * 2 * 16 * 4]


def test_the_chip_of_a_plan_says_how_wide_sums_are() -> None:
    plan = plan_of(products(), BUDGET_12)
    wide = replace(plan, chip=replace(plan.chip, accumulator_bytes=4))
    for read, written in ((from_text, to_text), (from_json, to_json)):
        assert read(written(wide)) == wide
    assert "accumulators 4" in to_text(wide)
    check(plan)
    with pytest.raises(IllegalPlan, match="group-scratch"):
        check(wide)
    with pytest.raises(PlanFormatError, match="9 is not from 1 to 8"):
        from_text(to_text(wide).replace("accumulators 4", "accumulators 9"))


def rescaled(carries: int = 2, across: tuple[int, ...] = (1,), sums: tuple[int, ...] = (6,)) -> Network:
    """An attention of 5 rows over 6 keys, 2 features a value."""
    keys = Side(6, 2) if sums else Side(6, span=6)
    reads = ((Side(5, 0), Side(3, span=3)), (keys, Side(3, span=3)), (keys, Side(2, 1)))
    return Network.build(
        "attention",
        [("q", 15, "input"), ("k", 18, "input"), ("v", 12, "input"), ("y", 10, "activation")],
        [
            OperatorSpec(
                "a",
                "Attention",
                ["q", "k", "v"],
                ["y"],
                reach=Reach((5, 2), reads, (), sums, carries, across),
            )
        ],
        ["y"],
    )


@pytest.mark.parametrize(("accumulator", "sums", "state"), [(None, 0, 2 * 1), (4, 2 * 4, 2 * 4)])
def test_a_rescaled_sum_carries_a_state_for_every_row(accumulator: int | None, sums: int, state: int) -> None:
    """Keys in slices of 4, a row at a time, while the output is kept: the state, and wide sums beside it."""
    nest = Nest((Leaf("a", ((0, 1), (2, 4))),), keep=("y",))
    layout = layout_of(rescaled(), Group("g", ("a",), 0, tiling=nest), accumulator=accumulator)
    found = {place.carried: place.bytes for place in layout.accumulators}
    assert found == ({True: state} | ({False: sums} if sums else {}))
    whole = layout_of(rescaled(), Group("g", ("a",), 0, tiling=Nest((Leaf("a", ((0, 1),)),))))
    assert whole.accumulators == ()


def test_features_that_share_a_state_stay_together() -> None:
    with pytest.raises(IllegalPlan, match="stays together"):
        layout_of(rescaled(), Group("g", ("a",), 0, tiling=Nest((Leaf("a", ((1, 1),)),))))


def test_a_reach_with_a_state_comes_back_from_both_forms() -> None:
    plan = plan_of(rescaled(), Nest((Leaf("a", ((0, 1), (2, 4))),)))
    assert "sums 6 carries 2 1 read" in to_text(plan)
    for read, written in ((from_text, to_text), (from_json, to_json)):
        assert read(written(plan)) == plan
    for wrong in ("carries", "carries 2 1 carries 2", "carries 2,1"):
        with pytest.raises(PlanFormatError):
            from_text(to_text(plan).replace("carries 2 1", wrong))


@pytest.mark.parametrize(
    ("carries", "across", "sums"),
    [(17, (1,), (6,)), (-1, (), (6,)), (0, (1,), (6,)), (2, (1,), ()), (2, (2,), (6,)), (2, (1, 1), (6,))],
)
def test_a_state_that_no_sum_has_is_refused(
    carries: int, across: tuple[int, ...], sums: tuple[int, ...]
) -> None:
    with pytest.raises(ModelError, match="state"):
        rescaled(carries, across, sums)


def test_boxes_take_such_a_sum_whole() -> None:
    plan = plan_of(rescaled(), Nest((Leaf("a"),)))
    cut = replace(plan, groups=(Group("g", ("a",), 99, 2, tiling=Boxes((5, 2, 3), (0, 1, 2))),))
    with pytest.raises(IllegalPlan, match="along a sum that would carry a state"):
        check(cut)


def test_the_page_names_what_lies_beside_a_buffer() -> None:
    plan = plan_of(rescaled(), Nest((Leaf("a", ((0, 1), (2, 4))),), keep=("y",)))
    shown = shown_nests(plan, timeline(plan))["g"]
    leaf = shown.body[0]
    assert [(shown.names[b.name], b.bytes, b.turns) for b in leaf.buffers[-1:]] == [("state of y", 2, 5)]
    assert isinstance(leaf, ShownLeaf)
    assert leaf.alive == shown.need
    assert "state of y" in html(plan)
