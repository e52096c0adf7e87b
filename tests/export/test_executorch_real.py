"""Onchip's memory planning in ExecuTorch itself, where it is installed: programs run by its runtime.

They compute what those planned by ExecuTorch's greedy compute, bit for bit, in no more bytes.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("executorch.exir", reason="pip install executorch")

from onchip.base.errors import Infeasible
from onchip.executorch import Bank, algorithm, planner
from onchip.plans import Plan

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]


def program(exported: Any, plan: Any = None) -> Any:
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.passes import MemoryPlanningPass

    config = ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(plan))
    return to_edge(exported).to_executorch(config)


def sizes(made: Any) -> list[int]:
    return list(made.executorch_program.execution_plan[0].non_const_buffer_sizes)


def outputs(made: Any, *inputs: Any) -> list[Any]:
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(made.buffer).load_method("forward")
    return [y.clone() for y in method.execute(list(inputs))]


def residual() -> tuple[Any, Any]:
    """Return a network with batch norms, a sum and two outputs, exported, and its input."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
            self.norm = torch.nn.BatchNorm2d(8)
            self.second = torch.nn.Conv2d(8, 8, 3, padding=1)

        def forward(self, x: Any) -> Any:
            a = torch.relu(self.norm(self.first(x)))
            b = torch.sigmoid(self.second(a) + a)
            return b.reshape(b.shape[0], -1), (b * 2).mean()

    torch.manual_seed(0)
    x = torch.randn(1, 3, 16, 16)
    return torch.export.export(Net().eval(), (x,)), x


def test_programs_compute_the_same_in_fewer_bytes() -> None:
    import torch
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, greedy

    exported, x = residual()
    theirs = program(exported)
    plans: list[Plan] = []
    apart = program(exported, planner(in_place=False))
    over = program(exported, planner(on_plan=plans.append))
    suite = program(exported, MemoryPlanningAlgorithmSuite([greedy, algorithm()]))
    assert sizes(over) == sizes(suite)
    assert sizes(over)[1] < sizes(apart)[1] <= sizes(theirs)[1]
    assert [plan.result.extent_bytes for plan in plans] == sizes(over)[1:]
    wanted = outputs(theirs, x)
    for made in (apart, over, suite):
        assert all(torch.equal(a, b) for a, b in zip(wanted, outputs(made, x), strict=True))


def test_two_memories_by_banks_of_either() -> None:
    import torch
    from executorch.exir import banked_memory_planning as banked

    exported, x = residual()
    theirs = program(exported)
    fast = sizes(theirs)[1] // 2 // 16 * 16
    rows = [banked.Bank("fast", fast, 1), banked.Bank("slow", 1 << 20, 2)]
    target = banked.TargetMemoryMap(rows)
    made = program(exported, planner(target))
    mine = program(exported, planner([Bank("fast", fast, 1), Bank("slow", 1 << 20, 2)]))
    assert sizes(made) == sizes(mine)
    assert sizes(made)[1] <= fast
    assert all(torch.equal(a, b) for a, b in zip(outputs(theirs, x), outputs(made, x), strict=True))
    with pytest.raises(Infeasible, match="memory slow has 64"):
        program(exported, planner([Bank("fast", fast, 1), Bank("slow", 64, 2)]))


def test_control_flow_has_its_bytes_while_it_runs() -> None:
    import torch

    class Net(torch.nn.Module):
        def forward(self, x: Any, flag: Any) -> Any:
            a = torch.sin(x @ x)
            b = torch.cond(flag, lambda a: (a @ a).exp() + a, lambda a: (a + 1) * 2, [a])
            return (b @ x) + a

    x = torch.randn(8, 8) / 4
    exported = torch.export.export(Net(), (x, torch.tensor(True)))
    theirs, made = program(exported), program(exported, planner())
    assert sizes(made)[1] <= sizes(theirs)[1]
    for flag in (True, False):
        given = (x, torch.tensor(flag))
        assert all(
            torch.equal(a, b) for a, b in zip(outputs(theirs, *given), outputs(made, *given), strict=True)
        )
