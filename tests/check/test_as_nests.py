"""Groups in bands, blocks and boxes as nests: what they cost then, or why the law of nests has none."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from shaped_plans import shaped_blocks_plan, shaped_tiled_plan
from test_boxes import plan_of, random_boxes

from onchip.check import certify, check
from onchip.check.as_nests import (
    DIFFERENCES,
    REASONS,
    AsNests,
    Compared,
    Taken,
    costless_nests,
    in_nests,
    plan_as_nests,
    taken,
)
from onchip.check.as_nests.cutting import up_to
from onchip.machines.chip_memory import Memory
from onchip.network import Network, OperatorSpec, Reach, Side
from onchip.plans import Boxes, Leaf, Loop, Nest, Plan, PlanChip, Scratch, Tiling
from oracles.boxes import random_operator, turned
from sliced_plan import sliced_plan

MORE_SCRATCH = {
    "held", "at-once", "rows", "shift", "apart", "constants", "sums", "addresses", "padding"
}  # fmt: skip
MORE_BYTES = {"apart", "padding", "shift", "slices"}
LESS_BYTES = {"unread", "once", "held"}


def boxes_plan(random: Random) -> Plan:
    """A legal plan of one operator of any reach in boxes."""
    network = random_operator(random)
    boxes, alignment = random_boxes(random, network), random.choice((1, 1, 4))
    return plan_of(network, boxes, turned(network, boxes), alignment)


def at_no_cost(plan: Plan) -> Taken:
    """A plan's program with the nests that have room where their groups are."""
    found = costless_nests(plan)
    return taken(plan, found, found.around)


def judged(plan: Plan) -> Compared:
    """The only group of a plan as a nest: what the law says of it, against what the plan in tiles says."""
    found = plan_as_nests(plan)
    assert found is not None
    [group] = found.groups
    if group.nest_dram_bytes is None:
        assert set(group.reasons) <= REASONS.keys()
        assert group.detail
        return group
    assert group.nest_scratch_bytes is not None
    assert set(group.reasons) <= DIFFERENCES.keys()
    more = group.nest_dram_bytes - group.dram_bytes
    assert more <= 0 or MORE_BYTES & set(group.reasons)
    assert more >= 0 or LESS_BYTES & set(group.reasons)
    larger = group.nest_scratch_bytes - group.scratch_bytes
    assert larger <= 0 or MORE_SCRATCH & set(group.reasons)
    assert larger >= 0 or "lives" in group.reasons
    if found.fits == "in place" and plan.chip.accumulator_bytes is None:
        made = in_nests(found)
        check(made)
        assert made.result.dram_bytes == found.dram_bytes == plan.result.dram_bytes + more
        assert made.result.peak_bytes == found.peak_bytes
    return group


def with_sums(plan: Plan, size: int | None) -> Plan:
    """The plan for a chip on which a sum that is not complete takes so many bytes."""
    return replace(plan, chip=replace(plan.chip, accumulator_bytes=size), kept={})


def tally(groups: list[Compared]) -> Counter[str]:
    return Counter(reason for group in groups for reason in group.reasons)


@pytest.mark.parametrize("start", [0, pytest.param(1000, marks=pytest.mark.thorough)])
def test_a_group_in_bands_costs_as_much_or_a_reason_is_said(start: int) -> None:
    count = 25 if start == 0 else 200
    groups = [judged(shaped_tiled_plan(Random(seed))) for seed in range(start, start + count)]
    assert sum(group.nest_dram_bytes is not None for group in groups) >= 0.95 * count
    alike = [
        g for g in groups if (g.dram_bytes, g.scratch_bytes) == (g.nest_dram_bytes, g.nest_scratch_bytes)
    ]
    assert len(alike) >= count // 3
    assert {"lives", "once"} <= tally(groups).keys()


@pytest.mark.parametrize("start", [0, pytest.param(1000, marks=pytest.mark.thorough)])
def test_a_group_in_blocks_costs_as_much_or_a_reason_is_said(start: int) -> None:
    count = 25 if start == 0 else 200
    groups = [judged(shaped_blocks_plan(Random(seed))) for seed in range(start, start + count)]
    alike = [
        g for g in groups if (g.dram_bytes, g.scratch_bytes) == (g.nest_dram_bytes, g.nest_scratch_bytes)
    ]
    assert len(alike) >= 0.7 * count


@pytest.mark.parametrize("start", [0, pytest.param(1000, marks=pytest.mark.thorough)])
def test_a_group_in_boxes_costs_as_much_or_a_reason_is_said(start: int) -> None:
    count = 40 if start == 0 else 400
    groups = [judged(boxes_plan(Random(seed))) for seed in range(start, start + count)]
    alike = [
        g for g in groups if (g.dram_bytes, g.scratch_bytes) == (g.nest_dram_bytes, g.nest_scratch_bytes)
    ]
    assert len(alike) >= 0.6 * count
    assert {"together", "steps", "padding"} <= tally(groups).keys()


@pytest.mark.parametrize(
    ("sizes", "tile", "loops"),
    [
        ((24,), 24, ()),
        ((24,), 5, ((0, 5),)),
        ((3, 8), 8, ((0, 1),)),
        ((3, 8), 16, ((0, 2),)),
        ((3, 8), 2, ((0, 1), (1, 2))),
        ((3, 1, 8), 2, ((0, 1), (2, 2))),
        ((2, 3, 8), 8, ((0, 1), (1, 1))),
        ((3, 8), 12, ((0, 1),)),
        ((3, 8), 3, ((0, 1), (1, 3))),
        ((2, 3, 8), 16, ((0, 1), (1, 2))),
    ],
)
def test_a_tile_of_a_flat_axis_is_loops_over_what_it_is_cut_into(
    sizes: tuple[int, ...], tile: int, loops: tuple[tuple[int, int], ...]
) -> None:
    assert up_to(sizes, tile) == loops


def test_boxes_are_their_loops_with_every_operand_where_its_last_loop_is() -> None:
    reach = Reach((4, 6), ((Side(4, 0), Side(8, 2)),), sums=(8,))
    network = Network.build(
        "product",
        [("x", 32, "input"), ("y", 24, "activation")],
        [OperatorSpec("f", "MatMul", ["x"], ["y"], reach=reach)],
        ["y"],
    )
    boxes = Boxes((2, 3, 4), (1, 0, 2))
    plan = plan_of(network, boxes, turned(network, boxes), 1)
    found = plan_as_nests(plan)
    assert found is not None
    [group] = found.plan.groups
    inner = Loop((("f", 2),), 4, (Leaf("f"),), ("x",))
    middle = Loop((("f", 0),), 2, (inner,), ("y",))
    assert group.tiling == Nest((Loop((("f", 1),), 3, (middle,)),))
    assert found.groups == (Compared("g", "boxes", 14, 88, 14, 88),)


def test_a_plan_without_tiles_has_nothing_to_say() -> None:
    plan = boxes_plan(Random(3))
    found = plan_as_nests(plan)
    assert found is not None
    assert found.fits == "in place"
    assert plan_as_nests(in_nests(found)) is None


def sliced(budget: int) -> AsNests:
    found = plan_as_nests(sliced_plan(budget))
    assert found is not None
    return found


def test_a_bias_of_what_sums_over_slices_comes_once_a_sum() -> None:
    """Four bytes of bias beside a weight, of one channel of y at a time, though every slice of x passes."""
    plan = sliced_plan(18)
    op = replace(plan.network.operators[0], weight_bytes=24)
    network = replace(plan.network, operators=(op,))
    group = replace(plan.groups[0], scratch_bytes=17)
    made = certify(
        network,
        plan.chip,
        17,
        plan.program,
        status="feasible",
        lower_bound_bytes=0,
        seconds=0,
        groups=[group],
    )
    found = plan_as_nests(made)
    assert found is not None
    [one] = found.groups
    assert (one.scratch_bytes, one.dram_bytes) == (one.nest_scratch_bytes, one.nest_dram_bytes)
    assert one.dram_bytes == 128 + 32 + 4 * 24


def test_weights_of_which_nothing_says_the_sides_are_there_whole() -> None:
    """The 9 bytes that belong to no channel, not 5 of them."""
    tight = sliced(18)
    [group] = tight.groups
    assert (group.scratch_bytes, group.nest_scratch_bytes) == (18, 22)
    assert group.dram_bytes == group.nest_dram_bytes == 128 + 32 + 4 * 25
    assert group.reasons == ("constants",)
    assert (tight.fits, tight.peak_bytes) == ("no", 22)
    assert sliced(22).fits == "in place"


def test_a_nest_that_has_no_room_in_one_of_several_memories_lies_behind_that_memory() -> None:
    memories = (Memory("near", 18), Memory("far", 100))
    plan = sliced_plan(18)
    program = tuple(replace(s, memory="near") if isinstance(s, Scratch) else s for s in plan.program)
    made = certify(
        plan.network, PlanChip("c", memories=memories), 118, program,
        status="feasible", lower_bound_bytes=0, seconds=0, groups=plan.groups,
    )  # fmt: skip
    found = plan_as_nests(made)
    assert found is not None
    assert (found.grown, [m.bytes for m in found.plan.chip.memories]) == (("g",), [40, 100])
    assert next(s.address for s in found.plan.program if isinstance(s, Scratch)) == 18


@pytest.mark.parametrize("at", [0, 4])
def test_a_group_becomes_a_nest_where_that_has_room(at: int) -> None:
    """The nest of 22 bytes takes the place of 18, whichever of the 22 these are."""
    tight = at_no_cost(sliced_plan(21))
    assert [type(group.tiling) for group in tight.groups] == [Tiling]
    plan = sliced_plan(22)
    raised = tuple(replace(step, address=at) if isinstance(step, Scratch) else step for step in plan.program)
    made = at_no_cost(replace(plan, program=raised, kept={}))
    [group] = made.groups
    assert isinstance(group.tiling, Nest)
    assert [step.address for step in made.program if isinstance(step, Scratch)] == [0]
    assert made.saved_bytes == 0


@pytest.mark.parametrize("count", [10, pytest.param(200, marks=pytest.mark.thorough)])
def test_nests_in_the_place_of_groups_in_tiles_move_no_more(count: int) -> None:
    became = 0
    for seed in range(count):
        for drawn in (shaped_tiled_plan, shaped_blocks_plan, boxes_plan):
            plan = drawn(Random(seed))
            taken = at_no_cost(plan)
            made = certify(
                plan.network, plan.chip, plan.budget, taken.program,
                status="feasible", lower_bound_bytes=0, seconds=0, groups=taken.groups,
            )  # fmt: skip
            assert made.result.dram_bytes == plan.result.dram_bytes - taken.saved_bytes
            assert taken.saved_bytes >= 0
            assert made.result.extent_bytes <= plan.budget
            became += sum(isinstance(group.tiling, Nest) for group in taken.groups)
    assert became > count


@pytest.mark.parametrize("count", [4, pytest.param(100, marks=pytest.mark.thorough)])
def test_sums_that_are_wider_than_elements_are_the_reason_for_what_they_take(count: int) -> None:
    """What takes more scratch than with sums as wide as elements says so."""
    seen = 0
    for seed in range(count):
        for drawn in (shaped_tiled_plan, shaped_blocks_plan, boxes_plan):
            plan = drawn(Random(seed))
            plain, wide = judged(plan), judged(with_sums(plan, 8))
            assert "sums" not in plain.reasons
            if plain.nest_scratch_bytes is not None and wide.nest_scratch_bytes is not None:
                more = wide.nest_scratch_bytes - plain.nest_scratch_bytes
                assert more <= 0 or "sums" in wide.reasons or not wide.reasons  # as much as in tiles
                seen += more > 0
    assert seen
