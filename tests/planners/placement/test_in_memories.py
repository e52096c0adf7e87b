"""Placement in several memories against an oracle of elementary moves; its bounds, addresses and refusals."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import Infeasible, NegativeAnswer, UsageError
from onchip.check import check
from onchip.machines.chip import Chip, Memory
from onchip.network import Network
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions
from onchip.planners.placement.memories import Levels, MemoryProblem, plan_in_memories
from onchip.planners.placement.memories.assign import along, least_picoseconds
from onchip.planners.placement.memories.search import search
from onchip.planners.placement.memories.steps import cost_of
from onchip.planners.placement.problem import Problem
from oracles.memories import least_cost
from strategies import minimum_requirement, network_of, random_network

QUICK = PlacementOptions(time_limit=4.0)


def random_memories(rng: Random, network: Network, alignment: int) -> tuple[Memory, ...]:
    """A fast and one or two slower memories, tight; the last may hold nothing that an operator touches."""
    need = minimum_requirement(network, alignment)
    total = sum(t.bytes for t in network.tensors)
    fast = Memory("fast", rng.randint(max(1, need // 2), need + 6), True, 1e12)
    slow = Memory("slow", rng.randint(1, max(2, total)), rng.random() < 0.7, rng.choice((5e11, 1e11, 1e12)))
    bank = Memory("bank", rng.randint(1, need), True, 1e12)
    return (fast, slow) if rng.random() < 0.8 else (fast, bank, slow)


def problem_of(network: Network, memories: tuple[Memory, ...], alignment: int) -> MemoryProblem:
    chip = Chip("test", alignment, memories=memories)
    return MemoryProblem.of(network, Problem.of(network, alignment), Levels.of(chip, memories))


def tiny(rng: Random) -> Network:
    """A network with few enough tensors for the oracle, which prunes nothing."""
    while True:
        network = random_network(rng, rng.choice((2, 3)))
        if len([t for t in network.tensors if network.root[t.id] == t.id]) <= 5:
            return network


@pytest.mark.thorough
@given(rng=st.randoms(use_true_random=True))
@settings(max_examples=40)
def test_the_complete_search_costs_what_the_oracle_says(rng: Random) -> None:
    network, alignment = tiny(rng), rng.choice((1, 1, 2, 4))
    memories = random_memories(rng, network, alignment)
    expected = least_cost(network, memories, alignment)
    found = search(problem_of(network, memories, alignment), Limits(600), states=10**6)
    if expected is None:
        assert found.steps is None
        return
    assert found.steps is not None
    assert found.cost == expected
    assert cost_of(problem_of(network, memories, alignment), found.steps) == expected


@pytest.mark.thorough
@given(rng=st.randoms(use_true_random=True))
@settings(max_examples=25)
def test_plans_are_legal_never_below_the_oracle_and_optimal_only_there(rng: Random) -> None:
    network, alignment = tiny(rng), rng.choice((1, 1, 2, 4))
    memories = random_memories(rng, network, alignment)
    chip = Chip("test", alignment, memories=memories)
    expected = least_cost(network, memories, alignment)
    try:
        plan = plan_in_memories(network, chip, memories, QUICK)
    except NegativeAnswer:
        assert expected is None
        return
    assert expected is not None
    result = check(plan)
    cost = result.traffic_bytes, result.memory_picoseconds or 0
    bound = result.lower_bound_bytes, result.memory_lower_bound_picoseconds or 0
    assert cost >= expected
    assert bound[0] <= expected[0]
    if cost[0] == expected[0]:
        assert bound[1] <= expected[1]
    if result.status == "optimal":
        assert cost == expected == bound


@pytest.mark.thorough
@given(rng=st.randoms(use_true_random=True))
@settings(max_examples=40)
def test_the_bound_on_all_orders_is_below_the_oracle(rng: Random) -> None:
    network, alignment = random_network(rng, rng.choice((2, 3, 4))), rng.choice((1, 1, 2))
    memories = random_memories(rng, network, alignment)
    problem = problem_of(network, memories, alignment)
    found = search(problem, Limits(5), states=20_000)
    if found.steps is None:
        return
    limits = Limits(10.0)
    assert least_picoseconds(problem, limits, traffic=True) <= found.cost[1]
    if found.cost[0] == 0:
        assert least_picoseconds(problem, limits, traffic=False) <= found.cost[1]


@given(rng=st.randoms(use_true_random=True))
@settings(max_examples=25)
def test_memories_along_an_order_are_a_program_that_fits(rng: Random) -> None:
    network, alignment = random_network(rng, 6), rng.choice((1, 1, 2))
    memories = random_memories(rng, network, alignment)
    problem = problem_of(network, memories, alignment)
    found = along(problem, network.order, problem.levels.capacity, Limits(5.0), spills=rng.random() < 0.5)
    if found is None:
        return
    base, left, at = problem.problem, list(problem.levels.capacity), dict[int, int]()
    held: dict[int, int] = {}
    for step in found.steps(problem):
        if step.kind in ("load", "alloc", "move"):
            left[step.memory] -= base.size[step.what]
            assert left[step.memory] >= 0
            if step.kind == "move":
                left[at[step.what]] += base.size[step.what]
            at[step.what] = step.memory
        elif step.kind == "scratch":
            left[step.memory] -= base.workspace[step.what]
            assert left[step.memory] >= 0
            held[step.what] = step.memory
        elif step.kind == "run" and step.what in held:
            left[held.pop(step.what)] += base.workspace[step.what]
        elif step.kind == "free":
            left[at.pop(step.what)] += base.size[step.what]


def test_with_room_for_all_in_the_fast_memory_nothing_is_elsewhere() -> None:
    network = network_of({"x": 40, "a": 60, "b": 40, "y": 40}, ["x -> a", "x -> b", "a b -> y"], "y")
    memories = (Memory("slow", 1000, True, 1e9), Memory("fast", 180, True, 1e12))
    plan = plan_in_memories(network, Chip("two", 1, memories=memories), memories, QUICK)
    assert plan.result.status == "optimal"
    assert plan.result.move_bytes == 0
    assert plan.result.memories[0].accessed_bytes == 0


def test_what_only_waits_moves_out_of_the_way_where_that_is_cheaper() -> None:
    # a waits while b, which fills the fast memory, is made and read four times over.
    network = network_of(
        {"x": 10, "a": 20, "b": 60, "c": 10, "y": 10},
        ["x -> a", "x -> b", "b b -> c", "a c -> y"],
        "y",
    )
    memories = (Memory("fast", 80, True, 1e12), Memory("slow", 40, False, 5e11))
    plan = plan_in_memories(network, Chip("two", 1, memories=memories), memories, QUICK)
    assert plan.result.status == "optimal"
    assert plan.result.traffic_bytes == 0
    assert plan.result.move_bytes in (0, 40)
    assert (plan.result.traffic_bytes, plan.result.memory_picoseconds) == least_cost(network, memories)


@pytest.mark.thorough
@given(rng=st.randoms(use_true_random=True))
@settings(max_examples=20)
def test_without_moves_every_tensor_stays_in_the_memory_it_comes_to(rng: Random) -> None:
    network, alignment = random_network(rng, 4), rng.choice((1, 1, 2))
    memories = random_memories(rng, network, alignment)
    chip = Chip("test", alignment, memories=memories)
    try:
        plan = plan_in_memories(network, chip, memories, replace(QUICK, moves=False))
        free = plan_in_memories(network, chip, memories, QUICK)
    except NegativeAnswer:
        return
    assert check(plan).move_bytes == 0
    if free.result.status == plan.result.status == "optimal":
        cost, least = ((p.result.traffic_bytes, p.result.memory_picoseconds or 0) for p in (plan, free))
        assert least <= cost


def test_resident_weights_and_a_given_order_are_kept() -> None:
    network = network_of({"x": 10, "a": 20, "b": 6, "y": 10}, ["x -> a + 4", "x -> b", "a b -> y"], "y")
    memories = (Memory("fast", 36, True, 1e12), Memory("slow", 40, True, 1e11))
    chip = Chip("two", 1, memories=memories)
    plan = plan_in_memories(network, chip, memories, replace(QUICK, order="given", weights="resident"))
    ran = [step.operator for step in plan.program if type(step).__name__ == "Run"]
    assert ran == [network.operators[v].name for v in network.order]


def test_an_operator_that_fits_no_memory_is_named_with_what_it_needs() -> None:
    network = network_of({"x": 10, "y": 30}, ["x -> y"], "y")
    chip = Chip("two", 1)
    small = (Memory("fast", 20, True, 1e12), Memory("slow", 100, False, 1e11))
    with pytest.raises(Infeasible, match=r"operator op0 needs 40 bytes, memory fast has 20"):
        plan_in_memories(network, chip, small, QUICK)
    split = (Memory("a", 20, True, 1e12), Memory("b", 20, True, 1e12))
    with pytest.raises(Infeasible, match=r"operator op0 needs 30 bytes, memory a has 20 .* y \(30 B\), x"):
        plan_in_memories(network, chip, split, QUICK)


@pytest.mark.parametrize(
    "change",
    [
        {"strategy": "beam"},
        {"objective": "latency"},
        {"in_place": True},
        {"pin": ("x",)},
        {"inputs": "literal"},
    ],
)
def test_what_several_memories_do_not_have_is_refused(change: dict[str, object]) -> None:
    network = network_of({"x": 10, "y": 30}, ["x -> y"], "y")
    memories = (Memory("fast", 20, True, 1e12), Memory("slow", 100, True, 1e11))
    with pytest.raises(UsageError):
        plan_in_memories(network, Chip("two", 1), memories, PlacementOptions(**change))  # type: ignore[arg-type]
