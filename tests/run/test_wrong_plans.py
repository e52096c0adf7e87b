"""Wrong plans, executed with the checker switched off: they fail in one line that names the harm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp

import pytest

from onchip.base.errors import IllegalPlan, InputError, Mismatch, OnchipError
from onchip.check import check
from onchip.machines.chip import Chip
from onchip.plans import Alloc, Free, Instruction, Load, Plan, Run, Scratch, Store
from onchip.readers import ReadOptions
from onchip.readers.source import Source
from onchip.run import run
from run.models import source
from run.planner import random_plan, roomy

HARMLESS = {"misaligned", "free-loses-data", "result"}
"""Rules whose breach the bytes need not feel: what is lost may be computed before it is missed."""


@cache
def found(name: str) -> Source:
    return source(name, Path(mkdtemp()), ReadOptions("op", "int8"))


def verdict(plan: Plan) -> str:
    """The rule that the checker says is broken, or nothing."""
    try:
        check(plan)
    except IllegalPlan as refusal:
        return refusal.rule
    return ""


def moved_by_a_byte(plan: Plan) -> Iterator[tuple[int, Plan]]:
    """Every plan that differs in one address by one byte."""
    for i, instruction in enumerate(plan.program):
        if not isinstance(instruction, Load | Alloc | Scratch):
            continue
        for step in (-1, 1):
            other = replace(instruction, address=instruction.address + step)
            yield i, replace(plan, program=(*plan.program[:i], other, *plan.program[i + 1 :]))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["residual", "concat", "views", "attention"])
def test_one_address_moved_one_byte_into_a_live_neighbour_is_always_a_mismatch(name: str) -> None:
    harmed = 0
    for seed in range(2):
        network = found(name).network.with_resident_weights() if seed else found(name).network
        plan = random_plan(network, roomy(network), Random(seed))
        for index, wrong in moved_by_a_byte(plan):
            rule = verdict(wrong)
            if rule == "range-not-free":
                harmed += 1
                with pytest.raises(Mismatch, match=r"instruction \d+") as failure:
                    run(wrong, found(name), checked=False)
                message = str(failure.value)
                assert "\n" not in message
                assert any(t.name in message for t in network.tensors), message
                assert any(op.name in message for op in network.operators) or "freed" in message, message
            elif rule == "outside-budget":
                with pytest.raises(IllegalPlan, match="outside-budget") as refusal:
                    run(wrong, found(name), checked=False)
                assert refusal.value.index == index
            else:
                assert run(wrong, found(name), checked=False).bit_exact, rule
    assert harmed > 10


def mangled(plan: Plan, random: Random) -> Plan:
    """The plan with one to three instructions dropped, doubled, swapped, renamed or moved."""
    program: list[Instruction] = list(plan.program)
    names = [t.name for t in plan.network.tensors]
    for _ in range(random.randint(1, 3)):
        i, j = random.randrange(len(program)), random.randrange(len(program))
        instruction = program[i]
        match random.randrange(6):
            case 0 if len(program) > 1:
                del program[i]
            case 1:
                program.insert(j, instruction)
            case 2:
                program[i], program[j] = program[j], instruction
            case 3 if isinstance(instruction, Load | Alloc | Store | Free):
                program[i] = replace(instruction, tensor=random.choice([*names, "nobody\n"]))
            case 4 if isinstance(instruction, Load | Alloc | Scratch):
                address = random.choice([0, -1, plan.budget, 1 << 39, random.randrange(plan.budget)])
                program[i] = replace(instruction, address=address)
            case 5 if isinstance(instruction, Alloc):
                program[i] = replace(instruction, over=random.choice(names), by=random.randint(-9, 9))
            case _ if isinstance(instruction, Run):
                streamed = random.choice(plan.network.tensors)
                program[i] = replace(instruction, streaming=((streamed.name, streamed.bytes),))
    return replace(plan, program=tuple(program))


def outcome(plan: Plan, model: Source) -> OnchipError | None:
    """What executing it ends in; anything but these errors is a crash."""
    try:
        run(plan, model, checked=False)
    except (Mismatch, IllegalPlan, InputError) as failure:
        return failure
    return None


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["residual", "concat", "views", "outputs"])
def test_mangled_plans_end_in_one_line_and_legal_ones_run(name: str) -> None:
    random, network = Random(name), found(name).network
    outcomes = set()
    for _ in range(60):
        chip = Chip("test", random.choice([1, 4]))
        wrong = mangled(random_plan(network, roomy(network, chip) * 2, random, chip), random)
        rule, failure = verdict(wrong), outcome(wrong, found(name))
        if failure is None:
            assert not rule or rule in HARMLESS or rule.startswith("overlap"), rule
        else:
            assert rule, f"a legal plan failed: {failure}"
            assert "\n" not in str(failure)
        outcomes.add(type(failure))
    assert len(outcomes) >= 2


def hand_written(name: str, program: list[Instruction]) -> Plan:
    network = found(name).network
    plan = random_plan(network, roomy(network), Random(0))
    return replace(plan, program=tuple(program), budget=1 << 14)


def tensors(name: str) -> list[str]:
    return [t.name for t in found(name).network.tensors]


def test_reading_freed_bytes_is_named() -> None:
    plan = hand_written("concat", [Load("x", 0), Free("x"), Alloc("a", 200), Run("a")])
    first = found("concat").network.operators[0]
    program = (Load("x", 0), Free("x"), Alloc(tensors("concat")[first.outputs[0]], 200), Run(first.name))
    with pytest.raises(IllegalPlan, match="input-not-resident: x, read by") as failure:
        run(replace(plan, program=program), found("concat"), checked=False)
    assert failure.value.index == 3


def test_storing_bytes_that_nothing_wrote_is_named() -> None:
    with pytest.raises(IllegalPlan, match=r"instruction 0 \(store x\): not-resident"):
        run(hand_written("concat", [Store("x")]), found("concat"), checked=False)
    written = tensors("concat")[found("concat").network.operators[0].outputs[0]]
    with pytest.raises(IllegalPlan, match="not-produced"):
        run(hand_written("concat", [Alloc(written, 0), Store(written)]), found("concat"), checked=False)


def test_a_program_that_stops_early_is_named() -> None:
    with pytest.raises(IllegalPlan, match="operator-not-run"):
        run(hand_written("concat", [Load("x", 0)]), found("concat"), checked=False)


def test_an_output_that_stays_behind_is_named() -> None:
    network = found("concat").network
    plan = random_plan(network, roomy(network), Random(0))
    output = network.tensors[network.outputs[0]].name
    program = tuple(i for i in plan.program if not (isinstance(i, Store) and i.tensor == output))
    with pytest.raises(IllegalPlan, match=f"output-not-stored: output {output} has no copy in DRAM"):
        run(replace(plan, program=program), found("concat"), checked=False)
