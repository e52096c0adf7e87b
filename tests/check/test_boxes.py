"""Groups in boxes: the checker's sums against every turn of the loops, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import IllegalPlan
from onchip.check import certify, check
from onchip.machines.chip import Chip
from onchip.network import Network, Reach, Side
from onchip.plans import Boxes, Group, Plan, Run, Scratch, from_json, from_text, to_json, to_text
from oracles.boxes import Turned, orders, random_operator, turned


def random_boxes(random: Random, network: Network) -> Boxes:
    reach = network.operators[0].reach
    assert reach is not None
    sizes = tuple(random.randint(1, n + 1) for n in reach.extents)
    return Boxes(sizes, random.choice(orders(reach)))


def plan_of(network: Network, boxes: Boxes, found: Turned, alignment: int, less: int = 0) -> Plan:
    """The plan of a network's one operator in boxes, with `less` bytes of scratch than it needs."""
    scratch = sum(-(-part // alignment) * alignment for part in found.parts) - less
    group = Group("g", ("f",), scratch, found.boxes, tiling=boxes)
    return certify(
        network,
        Chip("test", alignment),
        max(scratch, 1) + 64,
        (Scratch("g", 0), Run("g", streaming(network, found))),
        status="feasible",
        lower_bound_bytes=0,
        seconds=0.0,
        groups=(group,),
        options={},
    )


def streaming(network: Network, found: Turned) -> tuple[tuple[str, int], ...]:
    [op] = network.operators
    y = network.tensors[op.outputs[0]]
    names = [network.tensors[t].name for t in op.inputs]
    return (*zip(names, found.crossing, strict=True), (y.name, y.bytes))


@pytest.mark.thorough
@settings(max_examples=300)
@given(st.integers(0, 10**9))
def test_what_crosses_is_what_every_turn_of_the_loops_brings(seed: int) -> None:
    random = Random(seed)
    network = random_operator(random)
    boxes, alignment = random_boxes(random, network), random.choice((1, 1, 4))
    found = turned(network, boxes)
    plan = plan_of(network, boxes, found, alignment)
    assert plan.result.weight_bytes == found.weights
    assert plan.result.dram_bytes == found.weights + sum(found.crossing) + network.tensors[-1].bytes
    assert from_text(to_text(plan)) == plan == from_json(to_json(plan))
    check(plan)
    with pytest.raises(IllegalPlan) as refusal:
        plan_of(network, boxes, found, alignment, less=1)
    assert refusal.value.rule == "group-scratch"
    (group,) = plan.groups
    run = plan.program[-1]
    assert isinstance(run, Run)
    for i, (name, size) in enumerate(run.streaming):
        fewer = (*run.streaming[:i], (name, size - 1), *run.streaming[i + 1 :])
        refused(replace(plan, program=(plan.program[0], Run("g", fewer))), "streaming-bytes")
    refused(replace(plan, groups=(replace(group, subgroups=group.subgroups + 1),)), "tiling-subgroups")
    for wrong in (0, -1):
        refused(retiled(plan, replace(boxes, sizes=(wrong, *boxes.sizes[1:]))), "tiling-sizes")
    refused(retiled(plan, replace(boxes, order=(*boxes.order, 0))), "tiling-sizes")
    refused(retiled(plan, replace(boxes, sizes=(*boxes.sizes, 1))), "tiling-sizes")
    refused(replace(plan, groups=(replace(group, refills=(("f", 2),)),)), "tiling-blocks")


def retiled(plan: Plan, boxes: Boxes) -> Plan:
    return replace(plan, groups=(replace(plan.groups[0], tiling=boxes),))


def refused(plan: Plan, rule: str) -> None:
    with pytest.raises(IllegalPlan) as refusal:
        check(plan)
    assert refusal.value.rule == rule


def test_a_box_that_leaves_before_its_sum_is_complete_is_refused() -> None:
    reach = Reach((4, 6), ((Side(4, 0), Side(6, 2)),), sums=(6,))
    for order, legal in (((0, 1, 2), True), ((2, 0, 1), False), ((0, 2, 1), False)):
        network = rows(reach)
        boxes = Boxes((2, 3, 3), order)
        plan = plan_of(
            network, replace(boxes, order=(0, 1, 2)), turned(network, replace(boxes, order=(0, 1, 2))), 1
        )
        if legal:
            check(retiled(plan, boxes))
        else:
            refused(retiled(plan, boxes), "tiling-sizes")
    check(
        retiled(
            plan_of(
                network, replace(boxes, sizes=(2, 3, 6)), turned(network, Boxes((2, 3, 6), (0, 1, 2))), 1
            ),
            Boxes((2, 3, 6), (2, 0, 1)),
        )
    )


ROWS = Reach((4, 6), ((Side(4, 0), Side(6, span=6)),))


def rows(reach: Reach | None, weights: int = 0, size: int = 24) -> Network:
    from onchip.network import OperatorSpec

    return Network.build(
        "rows",
        [("x", size, "input"), ("y", 24, "activation")],
        [OperatorSpec("f", "Softmax", ["x"], ["y"], weights, reach=reach)],
        ["y"],
    )


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (rows(None), "states no reach"),
        (rows(replace(ROWS, reads=())), "has other operands than its reach"),
        (rows(ROWS, size=25), "does not have x in the sides of its reach"),
        (rows(ROWS, weights=3), "has other weights than its reach"),
    ],
)
def test_a_reach_that_is_not_the_operators_proves_nothing(network: Network, reason: str) -> None:
    plan = plan_of(rows(ROWS), Boxes((1, 6), (0, 1)), Turned((24,), 0, (6, 6), 4), 1)
    with pytest.raises(IllegalPlan, match=reason) as refusal:
        check(replace(plan, network=network))
    assert refusal.value.rule == "group-unproved"


def test_an_operand_that_is_not_streamed_is_refused() -> None:
    plan = plan_of(rows(ROWS), Boxes((1, 6), (0, 1)), Turned((24,), 0, (6, 6), 4), 1)
    refused(replace(plan, program=(plan.program[0], Run("g", (("y", 24),)))), "tiling-operands")


@pytest.mark.parametrize(
    "line",
    [
        "reach g output 4",  # of no operator
        "reach f read 4",  # without an output
        "reach f output 4 6 read 4,x",
        "reach f output 4 6 read 4,0,1",
        "reach f output 4 6 weight w",
        "reach f output 4 6" + 40 * " 1" + " read 4,0 6",  # more axes than any array has
        "reach f output 4 6 read 4,2 6",  # an axis that is not there
        "reach f output 4 6 read 4,0 6,0",  # one axis twice
        "reach f output 4 6 read 4,0,1,0,0,1 6",  # of no span
    ],
)
def test_a_reach_that_is_none_is_one_clear_line(line: str) -> None:
    from onchip.base.errors import InputError, OnchipError

    plan = plan_of(rows(ROWS), Boxes((1, 6), (0, 1)), Turned((24,), 0, (6, 6), 4), 1)
    text = "\n".join(line if row.startswith("reach ") else row for row in to_text(plan).splitlines())
    with pytest.raises((InputError, OnchipError)) as refusal:
        check(from_text(text))
    assert "\n" not in str(refusal.value)
