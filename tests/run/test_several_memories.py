"""Plans in several memories, executed: a byte array for each, moves counted by the copies."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import msgspec
import pytest

from onchip.base.errors import IllegalPlan, Mismatch
from onchip.check import check
from onchip.machines.chip import Chip
from onchip.plans import Load, Move
from onchip.run import run
from run.models import MODELS, source
from run.planner import random_plan, roomy
from several_memories import in_memories


@pytest.mark.parametrize("name", MODELS)
def test_plans_in_several_memories_are_bit_exact_and_move_what_the_checker_says(
    name: str, tmp_path: Path
) -> None:
    found = source(name, tmp_path)
    for seed in range(4):
        random = Random(seed)
        chip = Chip("test", random.choice([1, 4, 64]))
        one = random_plan(found.network, roomy(found.network, chip), random, chip)
        plan = in_memories(random, one)
        report = run(plan, found, seed=seed)
        assert report.bit_exact
        assert set(report.moved.between) == set(plan.result.moves)
        assert json.loads(json.dumps(msgspec.to_builtins(report)))["moved"]["reload"] == report.moved.reload
        assert report.moved.traffic == one.result.traffic_bytes
        assert report.arena_bytes <= plan.budget * report.scale


@pytest.mark.thorough
def test_a_move_onto_another_tensor_or_out_of_a_memory_is_seen_without_the_checker(tmp_path: Path) -> None:
    found = source("residual", tmp_path)
    random, moved = Random(1), 0
    for _ in range(5):
        plan = in_memories(random, random_plan(found.network, roomy(found.network), random))
        for i, step in enumerate(plan.program):
            if not isinstance(step, Move):
                continue
            moved += 1
            size = {m.name: m.bytes for m in plan.chip.memories}[step.memory]
            for address in (size, -1):
                program = (*plan.program[:i], replace(step, address=address), *plan.program[i + 1 :])
                with pytest.raises(IllegalPlan, match="outside-budget"):
                    run(replace(plan, program=program), found, checked=False)
            there = (*plan.program[:i], replace(step, memory="m9"), *plan.program[i + 1 :])
            with pytest.raises(IllegalPlan, match="memory"):
                run(replace(plan, program=there), found, checked=False)
    assert moved


@pytest.mark.thorough
def test_the_same_addresses_of_two_memories_are_not_the_same_bytes(tmp_path: Path) -> None:
    # All ranges in one memory, where they met no other in two: bytes get lost, and the executor sees it.
    found = source("residual", tmp_path)
    random, refused = Random(2), 0
    for _ in range(20):
        plan = in_memories(random, random_plan(found.network, roomy(found.network), random))
        first = plan.chip.memories[0]
        loads = [i for i, step in enumerate(plan.program) if isinstance(step, Load)]
        step = plan.program[loads[0]]
        assert isinstance(step, Load)
        for address in range(0, first.bytes, 256):
            elsewhere = replace(step, memory=first.name, address=address)
            program = (*plan.program[: loads[0]], elsewhere, *plan.program[loads[0] + 1 :])
            changed = replace(plan, program=program)
            try:
                check(changed)
            except IllegalPlan as illegal:
                if illegal.rule == "range-not-free":
                    with pytest.raises((Mismatch, IllegalPlan)):
                        run(changed, found, checked=False)
                    refused += 1
    assert refused
