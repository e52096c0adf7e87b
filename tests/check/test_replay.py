"""What the replay tells is what the checker counts, and every byte is where it says."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legal_plans import legal_plan
from memory_plans import legal_memory_plan
from tiled_plans import blocked_plan, tiled_plan

from onchip.base.errors import IllegalPlan
from onchip.check.interpreter import interpret
from onchip.check.replay import Crossed, Event, Ran, Released, Reserved, events_of, replay
from onchip.network import Network, OperatorSpec
from onchip.plans import Alloc, Free, Instruction, Load, Plan, PlanChip, Result, Run, Section, Store

CHAIN = Network.build(
    "chain",
    [("x", 10, "input"), ("a", 6, "activation"), ("y", 3, "activation")],
    [OperatorSpec("f", "Any", ["x"], ["a"], 100), OperatorSpec("g", "Any", ["x", "a"], ["y"])],
    ["y"],
)
PROGRAM: list[Instruction] = [
    Load("x", 0), Alloc("a", 12), Run("f"), Free("x"), Load("x", 0), Alloc("y", 20), Run("g"), Store("y"),
]  # fmt: skip
NOTHING = Result("feasible", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0)


def plan_of(program: list[Instruction], *sections: Section) -> Plan:
    return Plan(CHAIN, PlanChip("test", 2), 24, tuple(program), NOTHING, sections=sections)


@pytest.mark.parametrize("made", [legal_plan, legal_memory_plan, tiled_plan, blocked_plan])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_the_events_add_up_to_the_figures_and_every_byte_has_its_owner(
    made: Callable[[Random], Plan], seed: int
) -> None:
    plan = made(Random(seed))
    events, r = events_of(plan), plan.result
    crossed = [e for e in events if isinstance(e, Crossed)]
    ran = [e for e in events if isinstance(e, Ran)]
    assert sum(e.compulsory for e in crossed) == r.compulsory_bytes
    assert sum(e.bytes - e.compulsory for e in crossed if e.inward) == r.reload_bytes
    assert sum(e.bytes - e.compulsory for e in crossed if not e.inward) == r.spill_bytes
    assert sum(e.unit.weights for e in ran) == r.weight_bytes
    assert max((e.live for e in events), default=0) == r.peak_bytes
    assert sorted(v for e in ran for v in e.unit.operators) == [op.id for op in plan.network.operators]
    assert [e.step for e in ran] == list(range(len(ran)))
    assert sum(e.used for e in events if isinstance(e, Reserved) and e.cause == "move") == (r.move_bytes or 0)
    there: list[Reserved] = []
    for event in events:
        if isinstance(event, Reserved):
            there.append(event)
        elif isinstance(event, Released):
            there.remove(event.range)
        taken = {(one.memory, byte) for one in there for byte in range(one.address, one.address + one.bytes)}
        assert event.live == len(taken)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=20)
def test_whoever_listens_changes_no_figure(seed: int) -> None:
    plan, told = legal_plan(Random(seed)), list[Event]()
    assert replay(plan, told.append) == interpret(plan)
    assert tuple(told) == events_of(plan)


def test_a_program_by_hand() -> None:
    cut = Section("one", 0, 3), Section("two", 3, 8)
    events = events_of(plan_of(PROGRAM, *cut))
    told = [(type(e).__name__, e.index, e.step, e.section, e.live) for e in events]
    assert told == [
        ("Reserved", 0, 0, 0, 10),
        ("Crossed", 0, 0, 0, 10),
        ("Reserved", 1, 0, 0, 16),
        ("Ran", 2, 0, 0, 16),
        ("Released", 3, 1, 1, 6),
        ("Reserved", 4, 1, 1, 16),
        ("Crossed", 4, 1, 1, 16),
        ("Reserved", 5, 1, 1, 20),
        ("Ran", 6, 1, 1, 20),
        ("Crossed", 7, 2, 1, 20),
    ]
    assert [e.kind for e in events if isinstance(e, Crossed)] == ["compulsory", "reload", "compulsory"]
    (freed,) = (e for e in events if isinstance(e, Released))
    assert (freed.range.name, freed.range.used, freed.cause, freed.needed) == ("x", 10, "free", True)


def test_an_illegal_program_is_told_as_far_as_it_is_legal() -> None:
    told: list[Event] = []
    with pytest.raises(IllegalPlan, match="instruction 3") as refusal:
        replay(plan_of([*PROGRAM[:3], Load("x", 0)]), told.append)
    assert refusal.value.rule == "already-resident"
    assert [e.index for e in told] == [0, 0, 1, 2]
    with pytest.raises(IllegalPlan, match="never ran"):
        events_of(plan_of(PROGRAM[:3]))


def test_events_belong_to_their_plan() -> None:
    plan = plan_of(PROGRAM)
    other = replace(plan, program=(*PROGRAM, Free("a")))
    assert events_of(plan) is events_of(plan)
    assert len(events_of(other)) == len(events_of(plan)) + 1


def test_a_copy_with_the_same_program_is_not_replayed_again() -> None:
    plan = plan_of(PROGRAM)
    events = events_of(plan)
    assert events_of(replace(plan, result=replace(NOTHING, seconds=1.0), options={"planner": "a"})) is events
    assert len(events_of(replace(plan, program=tuple(PROGRAM[:3] + PROGRAM[5:])))) < len(events)
    assert {e.section for e in events_of(replace(plan, sections=(Section("all", 0, 8),)))} == {0}
    assert events_of(plan) == events
    assert pickle.loads(pickle.dumps(plan)).kept == {}
