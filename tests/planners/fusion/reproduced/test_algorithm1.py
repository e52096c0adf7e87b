"""Algorithms 1 and 2 as printed: what they find, and where they are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onchip.network import bits, mask
from onchip.papers.optimus.algorithm2 import independent_set, tree_dp
from onchip.planners.fusion.reproduced.algorithm1 import TooManyStates, bottom_up, top_down, untangled, valid
from onchip.planners.fusion.reproduced.dag import Dag
from onchip.planners.fusion.reproduced.groups import connected_groups
from oracles.fusion_schemes import Traffic, best_runnable, random_dag, random_traffic, runnable

TWO_CHAINS = Dag.from_edges(4, [(0, 2), (1, 3)])
CROSSED = Dag.from_edges(6, [(0, 2), (1, 3), (0, 4), (3, 4), (1, 5), (2, 5)])


def test_both_find_the_optimum_on_a_chain() -> None:
    chain = Dag.from_edges(7, [(i, i + 1) for i in range(6)])
    for seed in range(20):
        cost = random_traffic(Random(seed), chain, most=3)
        best = best_runnable(chain, cost)
        assert bottom_up(chain, cost).cost == top_down(chain, cost).cost == best


def test_a_chain_of_n_has_as_many_groups_as_intervals() -> None:
    """VGG16's 18 operators give 171: the paper's count."""
    chain = Dag.from_edges(18, [(i, i + 1) for i in range(17)])
    cost = Traffic(chain, (1,) * 36, (0,) * 18, 18)
    assert bottom_up(chain, cost).evaluated == top_down(chain, cost).evaluated == 171


def test_a_binary_tree_has_more_groups_than_the_bound() -> None:
    """Convex groups that hang together and contain the root, counted and by recurrence; every operator has
    two successors at most, so that O(2^max succ V^2) would be 4 V^2."""

    def with_root(depth: int) -> int:
        return 1 if depth == 1 else (1 + with_root(depth - 1)) ** 2

    for depth in (1, 2, 3):
        count = 2**depth - 1
        tree = Dag.from_edges(count, [((i - 1) // 2, i) for i in range(1, count)])
        groups = connected_groups(tree, lambda _: 0)
        assert sum(group & 1 for group in groups) == with_root(depth)
    assert with_root(5) == 458_329 > 4 * 31**2 == 3_844


def test_bottom_up_is_not_optimal_on_two_chains_side_by_side() -> None:
    """The set left by {0, 2} is no suffix of 0, 1, 2, 3, so the table has no cost for it."""
    cost = Traffic(TWO_CHAINS, (9, 9, 1, 1, 1, 1, 1, 1), (0,) * 4, 2)
    best = best_runnable(TWO_CHAINS, cost)
    assert bottom_up(TWO_CHAINS, cost).cost > best
    assert top_down(TWO_CHAINS, cost).cost == best


def test_bottom_up_is_optimal_on_them_one_chain_after_the_other() -> None:
    """The same chains visited as 0, 2, 1, 3."""
    dag = Dag.from_edges(4, [(0, 1), (2, 3)])
    cost = Traffic(dag, (9, 1, 9, 1, 1, 1, 1, 1), (0,) * 4, 2)
    assert bottom_up(dag, cost).cost == best_runnable(dag, cost)


def test_top_down_accepts_groups_that_wait_for_each_other() -> None:
    """{0, 2, 4} needs 3 for 4, and {1, 3, 5} needs 2 for 5: each is convex, together they cannot run."""

    def cost(group: int) -> int:
        liked = group in (mask([0, 2, 4]), mask([1, 3, 5]))
        return 1 if liked else 10 * group.bit_count()

    for v0, rest in ((0, mask([2, 4])), (1, mask([3, 5]))):
        assert valid(CROSSED, v0, rest)
    scheme = top_down(CROSSED, cost)
    assert set(scheme.groups) == {mask([0, 2, 4]), mask([1, 3, 5])}
    assert CROSSED.knots(scheme.groups)
    assert not runnable(CROSSED, scheme.groups)
    with pytest.raises(ValueError, match="cycle"):
        CROSSED.in_order(scheme.groups)

    repaired = untangled(CROSSED, cost, scheme)
    assert runnable(CROSSED, repaired.groups)
    assert repaired.cost == sum(cost(group) for group in repaired.groups)
    assert repaired.cost > scheme.cost


def test_validity_refuses_a_path_that_leaves_and_returns() -> None:
    diamond = Dag.from_edges(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    assert not valid(diamond, 0, mask([1, 3]))
    assert valid(diamond, 0, mask([1, 2, 3]))


@given(st.integers(0, 10**9), st.integers(2, 8), st.integers(1, 8))
def test_what_each_direction_promises(seed: int, nodes: int, most: int) -> None:
    """Bottom-up always runs; top-down is never dearer than the optimum, and exact whenever it can run."""
    random = Random(seed)
    dag = random_dag(random, nodes)
    cost = random_traffic(random, dag, most)
    best = best_runnable(dag, cost)
    up = bottom_up(dag, cost)
    assert runnable(dag, up.groups)
    assert up.cost == sum(cost(group) or 0 for group in up.groups) >= best
    down = top_down(dag, cost)
    assert down.cost == sum(cost(group) or 0 for group in down.groups) <= best
    assert all(dag.convex(group) for group in down.groups)
    assert bool(dag.knots(down.groups)) != runnable(dag, down.groups)
    if runnable(dag, down.groups):
        assert down.cost == best
        assert untangled(dag, cost, down).cost == best
    mended = untangled(dag, cost, down)
    assert runnable(dag, mended.groups)
    assert mended.cost == sum(cost(group) or 0 for group in mended.groups) >= best


def test_top_down_gives_up_by_name() -> None:
    dag = random_dag(Random(1), 8)
    with pytest.raises(TooManyStates, match="more than 3 sub-problems"):
        top_down(dag, random_traffic(Random(1), dag, 3), max_states=3)


def test_an_operator_without_a_cost_is_named() -> None:
    for search in (bottom_up, top_down):
        with pytest.raises(ValueError, match="operator 1"):
            search(TWO_CHAINS, lambda group: None if group >> 1 & 1 else 1)


# -- Algorithm 2 -----------------------------------------------------------------------------------------


def _best_set(readers: tuple[int, ...], full: list[int], slim: list[int]) -> int:
    n = len(readers)
    least = sum(full)
    for chosen in range(1 << n):
        if not any(readers[x] & chosen for x in bits(chosen)):
            least = min(least, sum(slim[x] if chosen >> x & 1 else full[x] for x in range(n)))
    return least


@given(st.integers(0, 10**9), st.integers(1, 9))
def test_the_independent_set_is_the_best_one(seed: int, nodes: int) -> None:
    random = Random(seed)
    readers = random_dag(random, nodes, 0.4).successors
    full = [random.randint(1, 30) for _ in readers]
    slim = [random.randint(1, size) for size in full]
    choice = independent_set(readers, full, slim)
    assert choice.claimed == choice.taken == _best_set(readers, full, slim)
    assert not any(readers[x] & choice.streamed for x in bits(choice.streamed))


@given(st.integers(0, 10**9), st.integers(1, 9))
def test_the_tree_dp_is_exact_where_no_map_has_two_parents(seed: int, nodes: int) -> None:
    random = Random(seed)
    tree = Dag.from_edges(nodes, [(random.randrange(v), v) for v in range(1, nodes)])
    full = [random.randint(1, 30) for _ in range(nodes)]
    slim = [random.randint(1, size) for size in full]
    choice = tree_dp(tree.successors, full, slim)
    assert not choice.torn
    assert not choice.clashes
    assert choice.claimed == choice.taken == independent_set(tree.successors, full, slim).taken


def test_the_tree_dp_contradicts_itself_where_branches_join() -> None:
    """Maps 0 and 1 both feed 2. Streaming 0 pays, so 0 wants 2 whole; 1 is kept whole, and lets 2 stream."""
    readers = Dag.from_edges(3, [(0, 2), (1, 2)]).successors
    full, slim = [20, 5, 12], [1, 4, 2]
    choice = tree_dp(readers, full, slim)
    assert choice.torn == mask([2])
    assert choice.claimed != choice.taken
    right = independent_set(readers, full, slim)
    assert right.taken == _best_set(readers, full, slim) <= choice.taken


# -- the paper's networks --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "count"), [("vgg16", 171), ("squeezenet1_0", 1057), ("resnet50", 3510), ("mobilenet_v1", 435)]
)
def test_as_many_groups_as_the_paper_evaluates(shared: Path, name: str, count: int) -> None:
    """Table 5 (VGG16 without its matrices, the others with every node of their graphs)."""
    rows = json.loads((shared / "bench" / "fusion" / f"{name}.json").read_text())["operators"]
    number = {row["name"]: i for i, row in enumerate(rows)}
    edges = [(number[r], i) for i, row in enumerate(rows) for r in row["reads"] if r in number]
    assert bottom_up(Dag.from_edges(len(rows), edges), int.bit_count).evaluated == count
