"""Groups in bands: the checker accepts exactly what the cell machine can run, and counts what it counts."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from cell_machine import Counts, Lack
from hypothesis import given, settings
from hypothesis import strategies as st
from tiled_plans import (
    Blocked,
    Tiled,
    drawn_group,
    operands_of,
    plan_of,
    random_blocks,
    random_choice,
    random_whole,
    tiled_plan,
)

from onchip.base.errors import IllegalPlan
from onchip.check import check
from onchip.plans import Group, Load, Plan, Run, Store


def refused(tiled: Tiled | Blocked, alignment: int) -> str | None:
    try:
        plan_of(tiled, alignment)
    except IllegalPlan as refusal:
        return refusal.rule
    return None


def judged_like_the_cell_machine(rng: Random) -> bool:
    """Whether it runs at all."""
    drawn, members, tiling, alignment = random_choice(rng)
    if all(op.geometry is None or len(op.geometry.output) != 4 for op in drawn.network.operators):
        return False  # a network without a map has no images
    resident = tuple(name for name in members if rng.random() < 0.3)
    whole = random_whole(rng, drawn, members, tiling)
    try:
        tiled = drawn_group(drawn, members, tiling, alignment, resident, whole)
    except Lack:
        try:
            everything = replace(tiling, streamed=())
            tiled = drawn_group(drawn, members, everything, alignment, resident, whole)
        except Lack:
            whole = replace(tiling, rows=1, streamed=(), images=1)
            group = Group("tiled", members, 1 << 30, 1, (), (), whole)
            nothing = Tiled(drawn, group, (), Counts(), None)
            assert refused(nothing, alignment) == "group-unproved"
            return False
        # What runs when nothing is streamed does not because of what is.
        group = replace(tiled.group, tiling=tiling, scratch_bytes=1 << 30)
        assert refused(replace(tiled, group=group), alignment) == "tiling-passes"
        return False
    rings = tiled.machine.execute(tiled.counts.rows)
    assert rings.crossed == tiled.counts.crossed
    accepted(plan_of(tiled, alignment), tiled)
    scratch = tiled.group.scratch_bytes
    if scratch:
        less = replace(tiled.group, scratch_bytes=scratch - 1)
        assert refused(replace(tiled, group=less), alignment) == "group-scratch"
    at = rng.randrange(len(tiled.streaming) or 1)
    for by in (-1, 1, tiled.streaming[at][1]) if tiled.streaming else ():
        wrong = [(t, n + by if i == at else n) for i, (t, n) in enumerate(tiled.streaming)]
        assert refused(replace(tiled, streaming=tuple(wrong)), alignment) == "streaming-bytes"
    return True


def accepted(plan: Plan, tiled: Tiled) -> None:
    assert check(plan) == plan.result
    network = tiled.drawn.network
    weights = {op.name: op.weight_bytes for op in network.operators}
    fetched = sum(weights.values())
    fetched += sum(weights[name] * (times - 1) for name, times in tiled.group.refills)
    assert plan.result.weight_bytes == fetched
    crossed = sum(n for _, n in tiled.streaming)
    for step in plan.program:
        if isinstance(step, Load | Store):
            crossed += network.tensors[network.tensor_id[step.tensor]].bytes
    assert plan.result.dram_bytes == crossed + fetched


@pytest.mark.thorough
@given(st.randoms(use_true_random=True))
@settings(max_examples=150)
def test_a_tiled_group_is_judged_like_the_cell_machine(rng: Random) -> None:
    judged_like_the_cell_machine(rng)


@given(st.randoms(use_true_random=True))
@settings(max_examples=100)
def test_blocks_need_and_move_what_counting_their_windows_says(rng: Random) -> None:
    found, alignment = random_blocks(rng)
    plan = plan_of(found, alignment)
    assert check(plan) == plan.result
    if found.group.scratch_bytes:
        less = replace(found.group, scratch_bytes=found.group.scratch_bytes - 1)
        assert refused(replace(found, group=less), alignment) == "group-scratch"
    for i, (t, n) in enumerate(found.streaming):
        wrong = (*found.streaming[:i], (t, n + 1), *found.streaming[i + 1 :])
        assert refused(replace(found, streaming=wrong), alignment) == "streaming-bytes"


@given(st.randoms(use_true_random=True))
@settings(max_examples=20)
def test_a_second_run_that_streams_something_else_is_one_too_many(rng: Random) -> None:
    plan = tiled_plan(rng)
    (group,) = plan.groups
    (at,) = (i for i, x in enumerate(plan.program) if isinstance(x, Run) and x.operator == group.name)
    for streaming in ((), tuple((t, 1) for t in sorted(operands_of(plan.network, group)))):
        program = (*plan.program[: at + 1], Run(group.name, streaming), *plan.program[at + 1 :])
        with pytest.raises(IllegalPlan) as refusal:
            check(replace(plan, program=program))
        assert (refusal.value.rule, refusal.value.index) == ("already-run", at + 1)


@pytest.mark.campaign
@given(st.randoms(use_true_random=True))
@settings(max_examples=500)
def test_hundreds_of_tiled_groups_are_judged_like_the_cell_machine(rng: Random) -> None:
    judged_like_the_cell_machine(rng)
