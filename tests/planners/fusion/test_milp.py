"""Set partitioning and pricing against brute force and the exact search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from onchip import _core
from onchip.machines.chip import load_chip
from onchip.network import bits
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.copies import Copies
from onchip.planners.fusion.cost import GroupCost
from onchip.planners.fusion.milp import choose, circle, solve_large
from onchip.planners.fusion.pricing import relax
from onchip.planners.fusion.search import Fuser, Partition, best_partition
from onchip.planners.limits import Limits
from onchip.readers import load
from onchip.readers.source import ReadOptions
from oracles.fusion_cases import random_maps

Group = tuple[int, ...]

CHOICES = {
    "batch_weights": ("per-image", "held", "shared"),
    "isoa": ("channelwise", "channelwise", "paper", "off"),
    "halo": ("lines", "lines", "lines", "paper"),
    "residency": ("partial", "all", "none"),
    "weight_tile": (True, False),
}


def random_problem(rng: Random, most: int) -> FusionProblem:
    network = random_maps(rng, most)
    options = FusionOptions(
        channel_tile=rng.choice((2, 3, 4)), **{key: rng.choice(values) for key, values in CHOICES.items()}
    )
    problem = FusionProblem.of(network, load_chip("generic"), options, 1)
    problem = replace(problem, alignment=rng.choice((1, 4)), least_rows=rng.choice((1, 2)))
    largest = sum(t.bytes for t in network.tensors) // problem.batch + network.weight_bytes
    return replace(problem, budget=max(16, int(largest * rng.choice((0.1, 0.2, 0.3, 0.5, 0.8, 1.5)))))


def dear(problem: FusionProblem, members: int) -> GroupCost:
    """A price for operators alone, some of which fit in nothing: more than what they touch."""
    bytes_ = 3 * problem.crossing_bytes(members) + 1
    return GroupCost(members, 0, 1, 1, 0, 0, 0, bytes_, 0, 0, bytes_)


def pricer_of(problem: FusionProblem, fuser: Fuser, halo_percent: int) -> _core.Pricer:
    alone = []
    for v in problem.network.order:
        (found,) = fuser.dram_bytes([1 << v])
        other = dear(problem, 1 << v).dram_bytes
        alone.append(other if found is None else min(found, other))
    return _core.Pricer(fuser.core, problem.budget, alone, halo_percent)


def assert_runs(problem: FusionProblem, found: Partition) -> None:
    """The groups are the operators, each once, can run in their order, and cost what is said."""
    done = 0
    for group in found.groups:
        for v in bits(group.members):
            assert not done >> v & 1
            assert not problem.network.predecessors[v] & ~(done | group.members)
        done |= group.members
    assert done == (1 << len(problem.operators)) - 1
    assert found.lower_bound_bytes <= found.dram_bytes == sum(g.dram_bytes for g in found.groups)
    assert found.complete == (found.lower_bound_bytes == found.dram_bytes)


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("halo_percent", [-1, 0, 25])
def test_no_partition_costs_less_than_the_bound(seed: int, halo_percent: int) -> None:
    problem = random_problem(Random(seed), 9)
    fuser = Fuser(problem, alone=dear)
    optimum = fuser.best()
    assert optimum.complete
    pricer = pricer_of(problem, fuser, halo_percent)
    if not pricer.sound():
        return
    bounds: list[int] = []
    found = relax(pricer, len(problem.operators), keep=bounds.append)
    assert found.complete
    assert bounds == sorted(bounds)
    assert found.bound <= optimum.dram_bytes


@pytest.mark.parametrize("seed", range(60))
def test_pricing_finds_the_cheapest_group_there_is(seed: int) -> None:
    """With worths that no group from a later operator beats, against every convex group there is."""
    rng = Random(5000 + seed)
    problem = random_problem(rng, 8)
    fuser = Fuser(problem, alone=dear)
    pricer = pricer_of(problem, fuser, -1)
    n = len(problem.operators)
    if not pricer.sound():
        return
    copies = Copies(problem)
    groups = [tuple(bits(s)) for s in range(1, 1 << n)]
    cost = {g: c for g in groups if copies.convex(g) and (c := pricer.cost(g)) is not None}
    top = max(pricer.cost([v]) for v in range(n))
    worth = [rng.randint(0, top) for _ in range(n)]
    for first in range(n - 1, -1, -1):
        mine = [c - sum(worth[v] for v in g) for g, c in cost.items() if g[0] == first]
        found = pricer.price(first=first, worth=worth, tolerance=0, nodes=0, limits=_core.Limits())
        assert found.complete
        assert found.least == min(0, *mine)
        for members, price in found.columns:
            assert price == cost[tuple(members)]
        worth[first] += found.least


@pytest.mark.parametrize("seed", range(40))
def test_a_limit_leaves_a_bound(seed: int) -> None:
    rng = Random(7000 + seed)
    problem = random_problem(rng, 9)
    fuser = Fuser(problem, alone=dear)
    pricer = pricer_of(problem, fuser, -1)
    if not pricer.sound():
        return
    worth = [pricer.cost([v]) for v in range(len(problem.operators))]
    short, full = list(worth), list(worth)
    for v in range(len(worth) - 1, -1, -1):
        slack, unlimited = rng.choice((0, 50)), _core.Limits()
        short[v] += pricer.price(first=v, worth=short, tolerance=0, nodes=1, limits=unlimited).least
        full[v] += pricer.price(first=v, worth=full, tolerance=slack, nodes=0, limits=unlimited).least
    optimum = fuser.best().dram_bytes
    assert sum(short) <= optimum
    assert sum(full) <= optimum


@pytest.mark.parametrize("seed", range(60))
def test_a_partition_that_runs_and_its_bound(seed: int) -> None:
    problem = random_problem(Random(9000 + seed), 9)
    optimum = best_partition(problem, alone=dear)
    found = solve_large(problem, limits=Limits(time_limit=20), alone=dear)
    assert_runs(problem, found)
    assert found.lower_bound_bytes <= optimum.dram_bytes <= found.dram_bytes
    again = solve_large(problem, optimum, Limits(time_limit=20), alone=dear)
    assert again.complete
    assert again.dram_bytes == optimum.dram_bytes


@pytest.mark.parametrize("name", ["vgg16", "squeezenet1_0", "resnet50"])
def test_the_optimum_of_known_networks(name: str) -> None:
    network = load(f"zoo:{name}", ReadOptions(dtype="int16", batch=4)).network
    problem = FusionProblem.of(network, load_chip("optimus"), FusionOptions(), 131_072)
    found = solve_large(problem)
    assert_runs(problem, found)
    assert found.complete
    assert found.dram_bytes == best_partition(problem).dram_bytes


def test_nothing_is_lost_when_there_is_no_time() -> None:
    network = load("zoo:squeezenet1_0", ReadOptions(dtype="int16", batch=4)).network
    problem = FusionProblem.of(network, load_chip("optimus"), FusionOptions(), 131_072)
    assert_runs(problem, solve_large(problem, limits=Limits(time_limit=0)))
    known = best_partition(problem)
    found = solve_large(problem, replace(known, complete=False), Limits(cancelled=lambda: True))
    assert_runs(problem, found)
    assert found.dram_bytes == known.dram_bytes


CROSSED: list[tuple[int, ...]] = [(), (), (0,), (1,), (0, 3), (1, 2)]
"""Edges 0>2, 1>3, {0,3}>4, {1,2}>5: {0,2,4} and {1,3,5} wait for each other."""


def test_a_circle_of_groups_is_cut_off() -> None:
    alone: list[Group] = [(v,) for v in range(6)]
    cost: dict[Group, int] = dict.fromkeys(alone, 10)
    cost |= {(0, 2, 4): 1, (1, 3, 5): 1, (2, 5): 15}
    assert set(circle(CROSSED, [(0, 2, 4), (1, 3, 5)])) == {(0, 2, 4), (1, 3, 5)}
    chosen = choose(CROSSED, cost, alone)
    assert not circle(CROSSED, chosen)
    assert sum(cost[g] for g in chosen) == 31  # one of the two, and the rest alone


@pytest.mark.parametrize("seed", range(60))
def test_the_choice_among_groups_is_the_best_that_runs(seed: int) -> None:
    rng = Random(seed)
    n = rng.randint(4, 7)
    before = [tuple(u for u in range(v) if rng.random() < 0.35) for v in range(n)]
    cost: dict[Group, int] = {(v,): rng.randint(8, 12) for v in range(n)}
    for _ in range(14):
        members = tuple(sorted(rng.sample(range(n), rng.randint(2, 3))))
        cost[members] = rng.randint(3, 20)

    def partitions(left: Sequence[int]) -> list[list[Group]]:
        if not left:
            return [[]]
        return [
            [g, *rest]
            for g in cost
            if g[0] == left[0] and set(g) <= set(left)
            for rest in partitions([v for v in left if v not in g])
        ]

    least = min(sum(cost[g] for g in p) for p in partitions(range(n)) if not circle(before, p))
    chosen = choose(before, cost, [(v,) for v in range(n)])
    assert not circle(before, chosen)
    assert sum(cost[g] for g in chosen) == least
