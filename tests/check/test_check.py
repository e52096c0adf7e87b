"""The checker on plans written by hand: what it accepts, what it counts, what it calls the fault."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onchip.base.errors import IllegalPlan
from onchip.check import certify, check
from onchip.machines.chip import Chip
from onchip.network import Network, OperatorSpec
from onchip.plans import Alloc, Free, Instruction, Load, Plan, Run, Scratch, Section, Store

DIAMOND = Network.build(
    "diamond",
    [("x", 10, "input"), ("a", 6, "activation"), ("b", 4, "activation"), ("y", 3, "activation")],
    [
        OperatorSpec("f", "Any", ["x"], ["a"], 100),
        OperatorSpec("g", "Any", ["x"], ["b"], 0, 5),
        OperatorSpec("h", "Any", ["a", "b"], ["y"], 7),
    ],
    ["y"],
)

SPILLED: list[Instruction] = [
    Load("x", 0), Alloc("a", 12), Run("f"), Store("a"), Free("a"),
    Alloc("b", 12), Scratch("g", 16), Run("g"), Free("x"),
    Load("a", 0), Alloc("y", 8), Run("h"), Store("y"),
]  # fmt: skip


def planned(program: list[Instruction], budget: int = 24, alignment: int = 4) -> Plan:
    return certify(
        DIAMOND, Chip("c", alignment), budget, program, status="feasible", lower_bound_bytes=0, seconds=0.5
    )


def test_figures_of_a_plan_with_a_spill() -> None:
    plan = planned(SPILLED)
    result = plan.result
    assert check(plan) == result
    assert (result.compulsory_bytes, result.spill_bytes, result.reload_bytes) == (13, 6, 6)
    assert (result.traffic_bytes, result.weight_bytes, result.dram_bytes) == (12, 107, 132)
    assert (result.peak_bytes, result.extent_bytes) == (24, 24)


def test_the_refusal_names_the_instruction_and_the_rule() -> None:
    program = [*SPILLED[:3], *SPILLED[4:]]
    with pytest.raises(IllegalPlan) as refusal:
        planned(program)
    assert (refusal.value.rule, refusal.value.index) == ("free-loses-data", 3)
    assert "free a" in str(refusal.value)


@pytest.mark.parametrize(
    "option",
    [
        {"weights": "sometimes"},
        {"weights": 1},
        {"mr_bytes": -5},
        {"mp_bytes": "many"},
        {"zero_traffic_bytes": 0.5},
    ],
)
def test_an_option_on_which_something_rests_means_something(option: dict[str, str | int | float]) -> None:
    plan = planned(SPILLED)
    plan = replace(plan, result=replace(plan.result, claim_sha256=""))  # which would tell of other options
    with pytest.raises(IllegalPlan, match=f"result: option {next(iter(option))} is") as refusal:
        check(replace(plan, options=option))
    assert refusal.value.index is None
    assert check(replace(plan, options={"weights": "streamed", "mr_bytes": 24})) == plan.result


def test_a_section_has_a_name() -> None:
    plan = planned(SPILLED)
    with pytest.raises(IllegalPlan, match="section: two sections are called , or one has no name"):
        check(replace(plan, sections=(Section("", 0, len(SPILLED)),)))
