"""The formal page's example is run, in both forms, and says what the checker computes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from onchip.base.errors import IllegalPlan
from onchip.check import check, plain_concat, streaming_scratch
from onchip.network.repeats import folded
from onchip.planners.placement import Problem, minimum_traffic
from onchip.plans import from_json, from_text, to_json, to_text
from repeated_plans import PLAN

PAGE = Path(__file__).resolve().parents[2] / "docs" / "plan-program.md"


def test_the_example_is_legal_and_the_same_in_both_forms() -> None:
    text, json, *_ = examples()
    plan = from_text(text)
    assert from_json(json) == plan
    assert check(plan) == plan.result
    assert from_text(to_text(plan)) == from_json(to_json(plan)) == plan


def test_the_example_of_joined_concats_is_legal_and_has_not_a_byte_to_spare() -> None:
    plan = from_text(examples()[3])
    assert check(plan) == plan.result
    assert from_text(to_text(plan)) == from_json(to_json(plan)) == plan
    assert [plain_concat(plan.network, op.id) for op in plan.network.operators].count(True) == 2
    with pytest.raises(IllegalPlan, match="outside-budget"):
        check(replace(plan, budget=plan.budget - 1))
    pool = plan.network.operators[-1]
    assert streaming_scratch(plan.network, pool.id, [pool.inputs[0]]) == pool.workspace


def test_the_example_in_tiles_is_legal_and_has_not_a_byte_to_spare() -> None:
    plan = from_text(examples()[4])
    assert check(plan) == plan.result
    assert from_text(to_text(plan)) == from_json(to_json(plan)) == plan
    (group,) = plan.groups
    with pytest.raises(IllegalPlan, match="group-scratch"):
        check(replace(plan, groups=(replace(group, scratch_bytes=group.scratch_bytes - 1),)))


def test_the_example_in_tiles_may_have_its_input_whole() -> None:
    (program,) = (text for text in blocks() if text.startswith("program\n"))
    text = examples()[4]
    changed = text[: text.index("program\n")] + program
    for was, now in (("scratch 37", 21), ("peak_bytes 37", 45), ("budget 40", 45), ("extent_bytes 37", 45)):
        assert was in changed
        changed = changed.replace(was, f"{was.split()[0]} {now}")
    plan = from_text(changed)
    assert check(plan) == plan.result
    (group,) = plan.groups
    with pytest.raises(IllegalPlan, match="group-scratch"):
        check(replace(plan, groups=(replace(group, scratch_bytes=20),)))


def test_the_example_in_rings_is_legal_and_has_not_a_byte_to_spare() -> None:
    plan = from_text(examples()[5])
    assert check(plan) == plan.result
    assert from_text(to_text(plan)) == from_json(to_json(plan)) == plan
    (group,) = plan.groups
    with pytest.raises(IllegalPlan, match="group-scratch"):
        check(replace(plan, groups=(replace(group, scratch_bytes=group.scratch_bytes - 1),)))
    with pytest.raises(IllegalPlan, match="macs"):
        check(replace(plan, result=replace(plan.result, macs=0)))


def test_the_example_in_two_memories_is_legal_and_has_not_a_byte_to_spare_in_the_fast_one() -> None:
    plan = from_text(examples()[2])
    assert check(plan) == plan.result
    assert from_text(to_text(plan)) == from_json(to_json(plan)) == plan
    fast, slow = plan.chip.memories
    less = replace(plan.chip, memories=(replace(fast, bytes=fast.bytes - 1), slow))
    with pytest.raises(IllegalPlan, match="outside-budget"):
        check(replace(plan, chip=less, budget=plan.budget - 1))


def examples() -> list[str]:
    return [text for text in blocks() if text.startswith(("onchip.plan/1", "{"))]


def blocks() -> list[str]:
    return re.findall(r"^```(?:text|json)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_example_that_runs_again_is_legal_and_moves_less_than_any_without() -> None:
    (text,) = (text for text in blocks() if text.startswith("onchip.plan/2") and "\nrepeats " in text)
    plan = from_text(text)
    assert plan == PLAN
    assert check(plan) == plan.result
    assert from_text(to_text(plan)) == from_json(to_json(plan)) == plan
    once = minimum_traffic(Problem.of(folded(plan.network).network, 1), plan.budget)
    assert once.value == 24
    again = minimum_traffic(Problem.of(plan.network, 1), plan.budget)
    assert again.value == plan.result.traffic_bytes == 0
