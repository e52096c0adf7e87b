"""The groups that each fuser looks at, and the best scheme out of them."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from onchip.network import bits, mask
from onchip.planners.fusion.reproduced.dag import Dag
from onchip.planners.fusion.reproduced.downsets import best_scheme
from onchip.planners.fusion.reproduced.groups import all_or_none, connected_groups
from onchip.planners.fusion.reproduced.spaces import barriers, best_intervals, dnnvm_lines, efficient_s_lines
from oracles.fusion_schemes import best_runnable, random_dag, random_traffic, runnable

BRANCHES = Dag.from_edges(8, [(0, 1), (1, 2), (1, 3), (2, 4), (3, 5), (4, 6), (5, 6), (6, 7)])


def test_barriers_are_where_branches_part_and_meet() -> None:
    assert barriers(BRANCHES) == mask([1, 6])


def test_dnnvm_fuses_along_branches_only() -> None:
    assert set(dnnvm_lines(BRANCHES)) == {(0,), (1,), (2, 4), (3, 5), (6,), (7,)}


def test_efficient_s_may_fuse_across_branches() -> None:
    (line,) = efficient_s_lines(BRANCHES)
    assert sorted(line) == list(range(8))
    assert all(line.index(a) < line.index(b) for a in range(8) for b in bits(BRANCHES.successors[a]))


@given(st.integers(0, 10**9), st.integers(1, 8), st.integers(1, 4))
def test_intervals_are_partitions_and_no_better_than_the_full_space(seed: int, nodes: int, most: int) -> None:
    random = Random(seed)
    dag = random_dag(random, nodes)
    cost = random_traffic(random, dag, most)
    best = best_runnable(dag, cost)
    for lines in (dnnvm_lines(dag), efficient_s_lines(dag)):
        groups, total = best_intervals(lines, cost, cost)
        assert runnable(dag, groups)
        assert total == sum(cost(group) or 0 for group in groups) >= best


@given(st.integers(0, 10**9), st.integers(1, 8), st.integers(1, 8))
def test_the_walk_over_downsets_is_the_best_of_all_schemes(seed: int, nodes: int, most: int) -> None:
    random = Random(seed)
    dag = random_dag(random, nodes)
    cost = random_traffic(random, dag, most)
    costs = connected_groups(dag, cost)
    assert all(dag.convex(group) for group in costs)
    scheme, complete = best_scheme(dag, costs)
    assert complete
    assert runnable(dag, scheme.groups)
    assert scheme.cost == sum(cost(group) or 0 for group in scheme.groups) == best_runnable(dag, cost)
    narrow, _ = best_scheme(dag, costs, width=1)
    assert runnable(dag, narrow.groups)
    assert narrow.cost == sum(cost(group) or 0 for group in narrow.groups) >= scheme.cost


@given(st.integers(0, 10**9), st.integers(1, 8), st.integers(1, 8))
def test_grown_groups_are_all_there_are(seed: int, nodes: int, most: int) -> None:
    """Convex, connected by an edge or a shared input, and, where asked for, all readers inside or none."""
    dag = random_dag(Random(seed), nodes)

    def connected(group: int) -> bool:
        part = group & -group
        while True:
            grown = part
            for v in bits(part):
                grown |= dag.near[v] & group
            if grown == part:
                return part == group
            part = grown

    def whole(group: int) -> bool:
        return all(dag.successors[v] & group in (0, dag.successors[v]) for v in bits(group))

    every = [g for g in range(1, 1 << nodes) if g.bit_count() <= most and dag.convex(g) and connected(g)]
    assert set(connected_groups(dag, lambda group: 1, most=most)) == set(every)
    narrow = connected_groups(dag, lambda group: 1, most=most, closed=lambda g: all_or_none(dag, g))
    assert set(narrow) == {g for g in every if whole(g)}
