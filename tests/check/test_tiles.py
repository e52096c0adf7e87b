"""Groups in bands: the checker accepts exactly what the cell machine can run, and counts what it counts."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from cell_machine import Counts, Lack
from hypothesis import given, settings
from hypothesis import strategies as st
from tiled_plans import Blocked, Tiled, drawn_group, plan_of, random_blocks, random_choice

from onchip.check import check
from onchip.errors import IllegalPlan
from onchip.plan import Group, Plan, Run


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
    try:
        tiled = drawn_group(drawn, members, tiling, alignment, resident)
    except Lack:
        try:
            everything = replace(tiling, streamed=())
            tiled = drawn_group(drawn, members, everything, alignment, resident)
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
    at = rng.randrange(len(tiled.streaming))
    for by in (-1, 1, tiled.streaming[at][1]):
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
        if isinstance(step, Run) and step.operator != tiled.group.name:
            op = network.operators[network.operator_id[step.operator]]
            crossed += sum(network.tensors[t].bytes for t in (*op.inputs, *op.outputs))
    assert plan.result.dram_bytes == crossed + fetched


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
    less = replace(found.group, scratch_bytes=found.group.scratch_bytes - 1)
    assert refused(replace(found, group=less), alignment) == "group-scratch"
    (x, n), y = found.streaming
    assert refused(replace(found, streaming=((x, n + 1), y)), alignment) == "streaming-bytes"


@pytest.mark.slow
@given(st.randoms(use_true_random=True))
@settings(max_examples=500)
def test_hundreds_of_tiled_groups_are_judged_like_the_cell_machine(rng: Random) -> None:
    judged_like_the_cell_machine(rng)
