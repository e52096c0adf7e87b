"""Plans in several memories: legal ones are accepted, and every figure is what a literal machine counts."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legal_plans import legal_plan
from memory_plans import MemoryMachine, legal_memory_plan

from onchip.base.errors import IllegalPlan
from onchip.check import check
from onchip.machines.chip import Memory
from onchip.plans import Load, Move, Plan, from_json, from_text, to_json, to_text
from several_memories import in_memories
from strategies import network_of


@pytest.mark.thorough
@given(rng=st.randoms(use_true_random=True))
@settings(max_examples=60)
def test_the_figures_of_each_memory_are_what_a_literal_machine_counts(rng: Random) -> None:
    plan = legal_memory_plan(rng)
    result = check(plan)
    assert result == plan.result
    machine = MemoryMachine(plan).execute()
    for use in result.memories:
        name = use.memory
        counted = machine.peak[name], machine.extent[name], machine.accessed[name]
        assert (use.peak_bytes, use.extent_bytes, use.accessed_bytes) == counted
    assert {(m.source, m.target): m.bytes for m in result.moves} == machine.moved
    assert result.move_bytes == sum(machine.moved.values())
    known = all(rate is not None for rate in machine.rate.values())
    assert result.memory_picoseconds == (machine.picoseconds if known else None)
    assert from_text(to_text(plan)) == from_json(to_json(plan)) == plan


@given(rng=st.randoms(use_true_random=True))
@settings(max_examples=40)
def test_what_crosses_to_dram_does_not_depend_on_the_memory(rng: Random) -> None:
    plan = legal_plan(rng)
    spread = check(in_memories(rng, plan))
    for figure in ("traffic_bytes", "compulsory_bytes", "weight_bytes", "dram_bytes"):
        assert getattr(spread, figure) == getattr(plan.result, figure)


@pytest.mark.thorough
@given(rng=st.randoms(use_true_random=True))
@settings(max_examples=60)
def test_a_wrong_figure_is_refused(rng: Random) -> None:
    plan = legal_memory_plan(rng)
    use = plan.result.memories[0]
    wrong = [
        replace(
            plan.result, memories=(replace(use, **{key: getattr(use, key) + 1}), *plan.result.memories[1:])
        )
        for key in ("peak_bytes", "extent_bytes", "accessed_bytes")
    ]
    wrong += [replace(plan.result, move_bytes=(plan.result.move_bytes or 0) + 1)]
    wrong += [replace(plan.result, moves=plan.result.moves[:-1])] if plan.result.moves else []
    wrong += [replace(plan.result, memories=())]
    if plan.result.memory_picoseconds is not None:
        wrong += [replace(plan.result, memory_picoseconds=plan.result.memory_picoseconds + 1)]
    for result in wrong:
        with pytest.raises(IllegalPlan, match="result"):
            check(replace(plan, result=result))


def by_hand() -> Plan:
    """x is made into a in the fast memory, waits in the slow one while b is made, and comes back."""
    return from_text(
        """onchip.plan/1
network visit
tensor x 4 input
tensor a 6 activation
tensor b 4 activation
tensor y 4 activation
operator f Op in x out a
operator g Op in x out b workspace 4
operator h Op in a b out y
output y
chip two 1
memory fast 14 bytes_per_second 1e12
memory slow 8 storage bytes_per_second 1e11
rate dram_bytes_per_second 1e10
rate macs_per_second 1e12
budget 22
result status feasible
result traffic_bytes 0
result spill_bytes 0
result reload_bytes 0
result compulsory_bytes 8
result weight_bytes 0
result dram_bytes 8
result lower_bound_bytes 0
result peak_bytes 18
result extent_bytes 20
result seconds 0
result move_bytes 12
result memory_picoseconds 176
used fast 14 14 56
used slow 6 6 12
moved fast slow 6
moved slow fast 6
program
  load x @0 in fast
  alloc a @8 in fast
  run f
  move a @0 in slow
  alloc b @4 in fast
  scratch g @8 in fast
  run g
  free x
  move a @8 in fast
  alloc y @0 in fast
  run h
  store y
"""
    )


def test_a_plan_by_hand_says_what_it_does() -> None:
    plan = by_hand()
    result = check(plan)
    assert result == replace(plan.result, latency_picoseconds=None)
    assert plan.program[3] == Move("a", 0, "slow")
    # Operators: f 10, g 8 and 4 of workspace, h 14; x in 4, y out 4; a out and back 12: 56 fast, and 12 slow.


def test_a_move_takes_what_its_slower_side_takes_on_the_dma_channel() -> None:
    from onchip.check import times_of

    times = {t.index: (t.start, t.end) for t in times_of(by_hand()) or ()}
    assert times[0] == (0, 400)  # 4 bytes from DRAM at 10 GB/s
    assert times[2] == (400, 410)  # 10 bytes at 1 TB/s
    assert times[3] == (410, 470)  # 6 bytes at 100 GB/s
    assert times[6] == (470, 482)  # waits for the room that the move leaves
    assert times[8] == (482, 542)
    assert times[10] == (542, 556)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (("move a @0 in slow", "move a @3 in slow"), "outside-budget"),
        (("move a @0 in slow", "move a @0 in nowhere"), "memory"),
        (("move a @0 in slow", "move a @0 in fast"), "range-not-free"),
        (("move a @0 in slow", "move b @0 in slow"), "not-resident"),
        (("alloc a @8 in fast", "alloc a @0 in slow"), "memory-operands"),
        (("scratch g @8 in fast", "scratch g @6 in slow"), "outside-budget"),
        (("  run f\n  move a @0 in slow", "  move a @0 in slow\n  run f"), "not-produced"),
    ],
)
def test_what_a_memory_cannot_hold_is_refused(change: tuple[str, str], rule: str) -> None:
    text = to_text(by_hand())
    assert change[0] in text
    with pytest.raises(IllegalPlan) as refusal:
        check(from_text(text.replace(*change)))
    assert refusal.value.rule == rule


def test_moving_within_a_memory_needs_both_ranges() -> None:
    network = network_of({"x": 4, "y": 4}, ["x -> y"], "y")
    plan = by_hand()
    chip = replace(plan.chip, memories=(Memory("only", 8, True, 1.0),))
    start = (Load("x", 0, "only"), Move("x", 2, "only"))
    with pytest.raises(IllegalPlan, match="range-not-free"):
        check(replace(plan, network=network, chip=chip, budget=8, program=start))
