"""The bank map for ExecuTorch: what it says, what it refuses, and the example that hands it over.

ExecuTorch needs torch; the example is held against objects that have what its planning pass hands to an
algorithm (`TensorSpec`s in the nodes' meta, a result made of `SpecAllocResult`s), and its own check is done
again: no two tensors that live together share a byte.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from onchip.base.errors import UsageError
from onchip.export import export
from onchip.machines.chip import Chip, Memory
from onchip.planners.placement import PlacementOptions
from onchip.planners.placement.memories import plan_in_memories
from onchip.plans import Plan
from strategies import network_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "executorch_banks.py"
MEMORIES = (Memory("fast", 96, True, 1e12), Memory("slow", 400, True, 1e10))


def planned(**options: Any) -> Plan:
    network = network_of(
        {"x": 40, "a": 40, "b": 50, "c": 40, "y": 30},
        ["x -> a", "a -> b", "b -> c", "a c -> y"],
        "y",
    )
    chip = Chip("two", 8, memories=MEMORIES)
    return plan_in_memories(network, chip, MEMORIES, PlacementOptions(time_limit=4.0, **options))


def test_every_tensor_has_its_place_and_no_two_that_live_together_share_a_byte() -> None:
    plan = planned(moves=False)
    table = json.loads(export(plan, "executorch"))
    assert table["format"] == "onchip.executorch/1"
    assert table["memories"] == [{"mem_id": 1, "name": "fast"}, {"mem_id": 2, "name": "slow"}]
    assert {row["name"] for row in table["tensors"]} == {"x", "a", "b", "c", "y"}
    assert table["bufsizes"][0] == 0
    for mem_id, memory in enumerate(MEMORIES, 1):
        assert table["bufsizes"][mem_id] <= memory.bytes
    for a, b in itertools.combinations(table["tensors"], 2):
        together = a["lifetime"][0] <= b["lifetime"][1] and b["lifetime"][0] <= a["lifetime"][1]
        if together and a["mem_id"] == b["mem_id"]:
            low, high = sorted((a, b), key=lambda row: row["mem_offset"])
            assert low["mem_offset"] + low["allocated_memory"] <= high["mem_offset"]


def test_a_plan_that_moves_a_tensor_is_refused_with_what_to_do() -> None:
    plan = planned(moves=False)
    moving = next(p for p in (_with_a_visit(plan, i) for i in range(len(plan.program))) if p is not None)
    with pytest.raises(UsageError, match="a tensor has one place: plan with --no-moves"):
        export(moving, "executorch")


def _with_a_visit(plan: Plan, i: int) -> Plan | None:
    """The plan with a tensor that is moved to another memory for a while after a run."""
    from onchip.base.errors import IllegalPlan
    from onchip.check import certify
    from onchip.plans import Move, Run

    if not isinstance(plan.program[i], Run):
        return None
    for name in ("a", "b", "c"):
        program = (*plan.program[: i + 1], Move(name, 320, "slow"), *plan.program[i + 1 :])
        try:
            return certify(
                plan.network,
                plan.chip,
                plan.budget,
                program,
                status="feasible",
                lower_bound_bytes=0,
                seconds=0,
            )
        except IllegalPlan:
            continue
    return None


def test_what_executorch_cannot_say_is_refused_in_one_line() -> None:
    network = network_of({"x": 8, "y": 8}, ["x -> y + 8"], "y")
    chip = Chip("two", 8, memories=MEMORIES)
    plan = plan_in_memories(network, chip, MEMORIES, PlacementOptions(time_limit=4.0))
    with pytest.raises(UsageError, match="op0: has a workspace"):
        export(plan, "executorch")


@pytest.mark.parametrize("to", ["minimalloc", "c", "tflm"])
def test_formats_for_one_memory_refuse_several(to: str) -> None:
    with pytest.raises(UsageError):
        export(planned(moves=False), to)


# -- the example -------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Spec:
    size: int
    allocated_memory: int = 0
    mem_id: int | None = None
    mem_obj_id: int | None = None
    mem_offset: int | None = None

    def realign(self, alignment: int) -> int:
        self.allocated_memory = -(-self.size // alignment) * alignment
        return self.allocated_memory


@dataclass
class Node:
    name: str
    meta: dict[str, object]


@dataclass
class Module:
    nodes: list[Node] = field(default_factory=list)

    @property
    def graph(self) -> Module:
        return self


def banks(table: object, name_of: object) -> Any:
    spec = importlib.util.spec_from_file_location("executorch_banks", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Banks(table, name_of)


def test_the_example_gives_every_spec_the_place_of_its_tensor() -> None:
    table = json.loads(export(planned(moves=False), "executorch"))
    row = {r["name"]: r for r in table["tensors"]}
    specs = {name: Spec(r["allocated_memory"]) for name, r in row.items()}
    module = Module([Node(f"aten_{name}", {"spec": [s] if name == "a" else s}) for name, s in specs.items()])
    algorithm = banks(table, lambda node: node.name.removeprefix("aten_"))
    assert algorithm(8, set(specs.values()), module, None) == table["bufsizes"]
    for name, spec in specs.items():
        assert (spec.mem_id, spec.mem_offset) == (row[name]["mem_id"], row[name]["mem_offset"])
    specs["a"].size += 8
    with pytest.raises(ValueError, match="was planned with"):
        algorithm(8, set(specs.values()), module, None)
    with pytest.raises(ValueError, match="the plan has no tensor"):
        banks(table, lambda node: None)(8, set(specs.values()), module, None)
    with pytest.raises(ValueError, match="alignment"):
        algorithm(16, set(specs.values()), module, None)
