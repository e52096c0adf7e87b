"""Joined concats leave onchip as a trace and in tables, and are refused by name where one cannot say them."""

from __future__ import annotations

import json

import pytest

from onchip.base.errors import UsageError
from onchip.check import certify
from onchip.export import export
from onchip.machines.chip import Chip, Rates
from onchip.network import Geometry, Network, OperatorSpec
from onchip.plans import Alloc, Free, Instruction, Join, Load, Plan, Run, Store

NETWORK = Network.build(
    "n",
    [("x", 2, "input"), ("a", 4, "activation"), ("b", 2, "activation"), ("y", 6, "activation")],
    [
        OperatorSpec("f", "F", ["x"], ["a"]),
        OperatorSpec("g", "G", ["x"], ["b"]),
        OperatorSpec("j", "Concat", ["a", "b"], ["y"],
                     geometry=Geometry("concat", (1, 4, 1, 1), (1, 6, 1, 1))),
    ],
    ["y"],
)  # fmt: skip
MADE: list[Instruction] = [Load("x", 0), Alloc("a", 2), Run("f"), Alloc("b", 6), Run("g"), Free("x")]
ON_CHIP = [*MADE, Alloc("y", 2, parts=("a", "b")), Run("j"), Store("y")]
IN_DRAM = [*MADE, Store("a"), Store("b"), Join("j"), Free("a"), Free("b"), Load("y", 0), Store("y")]


def plan_of(program: list[Instruction], **rates: float) -> Plan:
    chip = Chip("c", 1, rates=Rates(**rates))
    return certify(NETWORK, chip, 8, program, status="feasible", lower_bound_bytes=0, seconds=0)


@pytest.mark.parametrize("to", ["minimalloc"])
@pytest.mark.parametrize(
    ("program", "named"),
    [(ON_CHIP, "tensor y: .* over its parts"), (IN_DRAM, "operator j: .* joined in DRAM")],
)
def test_tables_say_that_they_cannot_say_it(program: list[Instruction], named: str, to: str) -> None:
    with pytest.raises(UsageError, match=named):
        export(plan_of(program), to)


def test_a_table_says_that_a_concat_lies_over_its_parts() -> None:
    table = json.loads(export(plan_of(ON_CHIP), "json"))
    rows = {r["tensor"]: r for r in table["residencies"]}
    assert rows["y"]["parts"] == ["a", "b"]
    assert {(rows[x]["first_step"], rows[x]["end_step"]) for x in "ab"} == {(0, 3), (1, 3)}
    assert "joined_steps" not in table


def test_a_table_says_which_step_only_joins_in_dram() -> None:
    plan = plan_of(IN_DRAM)
    table = json.loads(export(plan, "json"))
    assert [table["steps"][i] for i in table["joined_steps"]] == ["j"]
    assert sum(c["bytes"] for c in table["copies"]) == plan.result.dram_bytes
    assert "joined in DRAM" in export(plan, "c").decode()


@pytest.mark.parametrize("rates", [{}, {"dram_bytes_per_second": 1e12, "macs_per_second": 1e12}])
@pytest.mark.parametrize("program", [ON_CHIP, IN_DRAM])
def test_a_trace_counts_joined_bytes_once(program: list[Instruction], rates: dict[str, float]) -> None:
    plan = plan_of(program, **rates)
    events = json.loads(export(plan, "trace"))["traceEvents"]
    levels = [e["args"]["bytes"] for e in events if e["ph"] == "C"]
    assert max(levels) <= plan.result.peak_bytes
    moved = {kind: sum(e["args"]["bytes"] for e in events if e.get("cat") == kind)
             for kind in ("load", "store", "reload", "spill")}  # fmt: skip
    assert (moved["reload"], moved["spill"]) == (plan.result.reload_bytes, plan.result.spill_bytes)
    assert moved["load"] + moved["store"] == plan.result.compulsory_bytes
