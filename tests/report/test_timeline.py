"""The timeline against the checker, which counts the same bytes by other means, and against plans by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from greedy import greedy
from hypothesis import given, settings

from onchip.base.errors import IllegalPlan
from onchip.check import certify
from onchip.network import Geometry, Network, OperatorSpec, bits
from onchip.plans import Alloc, Free, Group, Instruction, Load, Plan, PlanChip, Run, Scratch, Store
from onchip.report import Timeline, timeline
from onchip.report.findings import absences
from strategies import Case, cases

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


def planned(
    network: Network, program: list[Instruction], budget: int, groups: tuple[Group, ...] = ()
) -> Plan:
    return certify(
        network,
        PlanChip("c"),
        budget,
        program,
        status="feasible",
        lower_bound_bytes=0,
        seconds=0,
        groups=groups,
    )


def agree(plan: Plan) -> Timeline:
    line, result, t = timeline(plan), plan.result, timeline(plan).traffic
    assert (line.peak_bytes, line.extent_bytes) == (result.peak_bytes, result.extent_bytes)
    assert (t.compulsory, t.spill, t.reload, t.weights, t.total) == (
        result.compulsory_bytes,
        result.spill_bytes,
        result.reload_bytes,
        result.weight_bytes,
        result.dram_bytes,
    )
    return line


@pytest.mark.thorough
@given(cases())
@settings(max_examples=100, deadline=None)
def test_figures_are_the_checkers(case: Case) -> None:
    line = agree(greedy(case.network, case.budget, alignment=case.alignment))
    assert sum(n for _, _, n in line.peak_live) == line.peak_bytes


@pytest.mark.thorough
@given(cases())
@settings(max_examples=50, deadline=None)
def test_residencies_never_share_bytes_and_hold_every_operand(case: Case) -> None:
    line = timeline(greedy(case.network, case.budget, alignment=case.alignment))
    for step in line.steps:
        here = sorted((r for r in line.residencies if r.start <= step.index < r.end), key=lambda r: r.address)
        assert all(a.address + a.size <= b.address for a, b in pairwise(here))
        assert {*step.inputs, *step.outputs} <= {r.tensor for r in here}
        assert sum(r.size for r in here) <= step.occupancy_bytes <= case.budget


@pytest.mark.thorough
@given(cases())
@settings(max_examples=50, deadline=None)
def test_absences_account_for_every_byte_of_traffic(case: Case) -> None:
    line = timeline(greedy(case.network, case.budget, alignment=case.alignment))
    assert sum(a.written for a in absences(line)) == line.traffic.spill
    assert sum(a.reloaded for a in absences(line)) == line.traffic.reload
    for a in absences(line):
        for stay in line.stays[a.tensor]:
            assert stay.end <= a.left or stay.start >= a.back


def test_a_spill_by_hand() -> None:
    line = agree(planned(DIAMOND, SPILLED, 24))
    assert [s.name for s in line.steps] == ["f", "g", "h", ""]
    assert [s.occupancy_bytes for s in line.steps] == [16, 19, 13, 13]
    (away,) = absences(line)
    assert (away.name, away.left, away.back, away.crowded) == ("a", 1, 2, 1)
    assert (away.live_bytes, away.written, away.reloaded) == (19, 6, 6)


def test_an_overlapped_tensor_ends_with_its_operator_and_shared_bytes_count_once() -> None:
    relu = Geometry("elementwise", (1, 8), (1, 8))
    network = Network.build(
        "inplace",
        [("x", 8, "input"), ("y", 8, "activation"), ("z", 8, "activation")],
        [OperatorSpec("f", "Relu", ["x"], ["y"], geometry=relu), OperatorSpec("g", "Any", ["y"], ["z"])],
        ["z"],
    )
    program = [Load("x", 0), Alloc("y", 0, "x", 0), Run("f"), Alloc("z", 8), Run("g"), Store("z")]
    line = agree(planned(network, program, 16))
    assert [s.occupancy_bytes for s in line.steps[:2]] == [8, 16]
    assert [(r.name, r.start, r.end) for r in line.residencies if r.name == "x"] == [("x", 0, 1)]


def test_a_group_and_streamed_operands() -> None:
    group = Group("fg", ("f", "h"), 40)
    network = Network.build(
        "chain",
        [("x", 10, "input"), ("a", 6, "activation"), ("y", 3, "activation"), ("z", 5, "activation")],
        [
            OperatorSpec("f", "Any", ["x"], ["a"], 100),
            OperatorSpec("h", "Any", ["a"], ["y"], 7),
            OperatorSpec("k", "Any", ["y"], ["z"], 0, 8),
        ],
        ["z"],
    )
    program: list[Instruction] = [
        Scratch("fg", 0), Run("fg", (("x", 10), ("y", 3))),
        Scratch("k", 0), Run("k", (("y", 3), ("z", 5))),
    ]  # fmt: skip
    line = agree(planned(network, program, 40, (group,)))
    fused = line.steps[0]
    assert [network.tensors[t].name for t in (*fused.inputs, *fused.outputs)] == ["x", "y"]
    assert (line.traffic.compulsory, line.traffic.spill, line.traffic.reload) == (15, 3, 3)


@pytest.mark.parametrize("program", [[Free("x")], [Run("nobody")], [Load("nothing", 0)], [Store("none")]])
def test_a_program_that_cannot_be_followed_is_refused_by_instruction(program: list[Instruction]) -> None:
    plan = planned(DIAMOND, SPILLED, 24)
    broken = Plan(plan.network, plan.chip, plan.budget, tuple(program), plan.result)
    with pytest.raises(IllegalPlan, match="instruction 0"):
        timeline(broken)


def test_steps_follow_the_program_not_the_network() -> None:
    line = timeline(greedy(DIAMOND))
    ran = [op for s in line.steps for op in s.operators]
    assert sorted(ran) == [op.id for op in DIAMOND.operators]
    for s in line.steps:
        assert set(s.outputs) == {t for op in s.operators for t in bits(DIAMOND.writes[op])}
