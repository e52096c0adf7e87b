"""The paper's algorithm and the older spaces on networks: groups that can run, whatever was found."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import UsageError
from onchip.machines.chip import load_chip
from onchip.network import bits, mask
from onchip.planners.fusion import FusionOptions, FusionProblem, group_cost
from onchip.planners.fusion.reproduced.algorithm1 import GroupCostFunction
from onchip.planners.fusion.reproduced.dag import Dag
from onchip.planners.fusion.reproduced.restricted import restricted
from onchip.planners.fusion.strategy import Priced, partition
from oracles.fusion_networks import convolutions
from oracles.fusion_schemes import random_dag, runnable

CROSSED = convolutions([(0, 2), (1, 3), (0, 4), (3, 4), (1, 5), (2, 5)], 6)
CHOICES = [
    {"search": "algorithm1"},
    {"search": "algorithm1-top-down"},
    {"space": "dnnvm"},
    {"space": "efficient-s"},
]


def problem_of(kilobytes: int, **options: str) -> FusionProblem:
    chosen = replace(FusionOptions(), **options)  # type: ignore[arg-type]
    return FusionProblem.of(CROSSED, load_chip("generic"), chosen, kilobytes << 10)


def priced(problem: FusionProblem) -> GroupCostFunction:
    @cache
    def cost(members: int) -> int | None:
        found = group_cost(problem, members)
        return None if found is None else found.dram_bytes

    return cost


def test_a_cycle_is_cut_and_said() -> None:
    """{0, 2, 4} and {1, 3, 5} are what this cost likes best, and neither can run before the other."""

    def cost(group: int) -> int:
        return 1 if group in (mask([0, 2, 4]), mask([1, 3, 5])) else 10 * group.bit_count()

    found = restricted(problem_of(64, search="algorithm1-top-down"), cost)
    assert runnable(Dag.of(CROSSED), found.groups)
    assert found.dram_bytes == sum(map(cost, found.groups)) > 2
    assert found.note.startswith("2 of Algorithm 1's groups wait for each other in a cycle")
    assert restricted(problem_of(64, search="algorithm1"), cost).note == ""


@pytest.mark.thorough
@settings(max_examples=15)
@given(st.integers(0, 10**9), st.integers(2, 5), st.integers(10, 40), st.sampled_from(CHOICES))
def test_whatever_is_found_can_run(seed: int, nodes: int, kilobytes: int, choice: dict[str, str]) -> None:
    dag = random_dag(Random(seed), nodes, 0.4)
    network = convolutions([(a, b) for a in range(nodes) for b in bits(dag.successors[a])], nodes, size=8)
    options = replace(FusionOptions(), **choice)  # type: ignore[arg-type]
    problem = FusionProblem.of(network, load_chip("generic"), options, kilobytes << 10)
    cost = priced(problem)
    if any(cost(1 << v) is None for v in range(nodes)):
        return
    found = restricted(problem, cost)
    assert runnable(Dag.of(network), found.groups)
    assert found.dram_bytes == sum(cost(group) or 0 for group in found.groups)
    assert found.evaluated >= nodes


def test_a_space_belongs_to_the_exact_search() -> None:
    for search in ("algorithm1", "online"):
        problem = problem_of(64, search=search, space="dnnvm")
        with pytest.raises(
            UsageError, match=rf"^--space dnnvm: goes with --search exact only, not {search}$"
        ):
            partition(problem, Priced(problem))


@pytest.mark.thorough
def test_too_many_sub_problems_are_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import onchip.planners.fusion.reproduced.algorithm1 as module

    monkeypatch.setattr(module.top_down, "__kwdefaults__", {"max_states": 2})
    problem = problem_of(64, search="algorithm1-top-down")
    with pytest.raises(UsageError, match=r"^--search algorithm1-top-down: meets more than 2 sub-problems"):
        restricted(problem, priced(problem))
