"""Plans of the simple method, executed: modules on chip, joined concats, streamed stems, all compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from large_cases import with_campaign
from module_networks import random_module_network
from onchip.base.errors import IllegalPlan, Infeasible, Mismatch
from onchip.check import check
from onchip.machines.chip import load_chip
from onchip.planners.branches.options import BranchOptions
from onchip.planners.branches.plan import plan_branches
from onchip.plans import Alloc, Join, Load, Plan, Run, Scratch
from onchip.readers import ReadOptions, load
from onchip.readers.source import Source
from onchip.run import RunReport, run

RULES = ("paper", "ours")

ZOO = (
    "googlenet",
    "inception_resnet_v2",
    "inception_v3",
    "mnasnet1_0",
    "mobilenet_v2",
    "resnet18",
    "resnet50",
    "shufflenet_v2_x1_0",
    "squeezenet1_0",
)
LARGE = ("inception_resnet_v2", "resnet50")


def planned(source: Source, budget: int, rules: str) -> Plan:
    return plan_branches(source.network, load_chip("exynos-npu"), budget, BranchOptions(rules=rules)).plan


def executed(source: Source, plan: Plan) -> RunReport:
    """Checked and executed; what the report says must be what the program does."""
    report = run(plan, source)
    assert report.operators == len(plan.network.operators)
    assert report.relative_difference <= 1e-4
    assert not report.streamed_whole
    assert report.bit_exact or report.in_parts
    assert report.moved.traffic == plan.result.traffic_bytes
    assert report.joined == sum(isinstance(i, Join) for i in plan.program)
    sizes = {t.name: t.bytes for t in plan.network.tensors}
    named = [part for i in plan.program if isinstance(i, Alloc) for part in i.parts]
    assert report.in_place_bytes == sum(sizes[part] for part in named)
    streaming = {i.operator for i in plan.program if isinstance(i, Run) and i.streaming}
    assert streaming.issuperset(report.in_parts)
    return report


@pytest.mark.thorough
@pytest.mark.parametrize("rules", RULES)
def test_squeezenet_in_little_memory(rules: str) -> None:
    source = load("zoo:squeezenet1_0@64x64")
    reports = [executed(source, planned(source, size << 10, rules)) for size in (44, 64, 400)]
    assert reports[0].in_parts  # the least memory streams in parts what the most has room for
    assert reports[-1].in_place_bytes > reports[0].in_place_bytes
    assert reports[0].moved.traffic > reports[-1].moved.traffic


@pytest.mark.parametrize("seed", range(8))
def test_networks_made_of_modules_execute(seed: int, tmp_path: Path) -> None:
    _execute_random(Random(seed), tmp_path)


@pytest.mark.campaign
def test_many_networks_made_of_modules_execute(tmp_path: Path) -> None:
    reports = [r for seed in range(100, 125) for r in _execute_random(Random(seed), tmp_path)]
    assert sum(r.joined for r in reports) > 2
    assert sum(len(r.in_parts) for r in reports) > 12
    assert sum(r.in_place_bytes > 0 for r in reports) > 12


def _execute_random(random: Random, folder: Path) -> list[RunReport]:
    """Nested branches, concats, sums, gates and long skips; any element type, granularity and budget."""
    path = folder / "modules.onnx"
    random_module_network(random).write(path)
    granularity, dtype = random.choice(["fused", "op"]), random.choice(["int8", "file"])
    source = load(path, ReadOptions(granularity, dtype))  # type: ignore[arg-type]
    reports = []
    for rules in RULES:
        budget = random.choice([6_000, 10_000, 20_000, 40_000]) * (4 if dtype == "file" else 1)
        try:
            plan = planned(source, budget, rules)
        except Infeasible:
            continue
        reports.append(executed(source, plan))
    return reports


@pytest.mark.slow
@pytest.mark.parametrize("name", with_campaign(ZOO, LARGE))
def test_the_zoo_executes(name: str) -> None:
    source = load(f"zoo:{name}")
    for rules in RULES if name != "inception_resnet_v2" else RULES[:1]:
        executed(source, planned(source, 1 << 20, rules))


def test_one_address_moved_by_one_byte_is_noticed_without_the_checker(tmp_path: Path) -> None:
    """A part that is not in place, a neighbour's byte: whatever the checker refuses fails here as well."""
    path = tmp_path / "modules.onnx"
    random_module_network(Random(3), most_modules=2).write(path)
    source = load(path, ReadOptions("fused", "int8"))
    plan = planned(source, 20_000, "paper")
    harmed = set()
    for at, instruction in enumerate(plan.program):
        for step in (-1, 1):
            if not isinstance(instruction, Alloc | Load | Scratch):
                continue
            moved = replace(instruction, address=instruction.address + step)
            wrong = replace(plan, program=(*plan.program[:at], moved, *plan.program[at + 1 :]))
            try:
                check(wrong)
                rule = "result"
            except IllegalPlan as refusal:
                rule = refusal.rule
            if rule == "result":  # legal, even if its extent is another
                assert run(wrong, source, checked=False).relative_difference <= 1e-4
                continue
            harmed.add(rule)
            with pytest.raises((Mismatch, IllegalPlan)):
                run(wrong, source, checked=False)
    assert {"join-place", "range-not-free"} <= harmed
