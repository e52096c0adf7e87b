"""The on-line variant: its table, its rules, and the same plan whatever was planned before."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import Infeasible, UsageError
from onchip.check import check
from onchip.machines.chip import load_chip
from onchip.network import Network, bits
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.fuse import PreparedFusion, fuse
from onchip.planners.fusion.online import OnlineFuser, size_table
from onchip.planners.fusion.reproduced.dag import Dag
from onchip.planners.fusion.search import best_partition
from onchip.planners.fusion.strategy import Priced, partition
from oracles.fusion_networks import convolutions
from oracles.fusion_online import online_groups, online_scheme
from oracles.fusion_online import size_table as slow_table
from oracles.fusion_schemes import random_dag, runnable

sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks"))
from fusion_graphs import fusion_graph

GENERIC = load_chip("generic")


def random_network(seed: int, nodes: int) -> Network:
    dag = random_dag(Random(seed), nodes, 0.4)
    return convolutions([(a, b) for a in range(nodes) for b in bits(dag.successors[a])], nodes, size=8)


def obeys(dag: Dag, group: int, limit: int) -> bool:
    """All readers or none, hanging together, convex, not too large."""
    fans = all(dag.successors[v] & group in (0, dag.successors[v]) for v in bits(group))
    part = group & -group
    while True:
        grown = part
        for v in bits(part):
            grown |= dag.near[v] & group
        if grown == part:
            break
        part = grown
    return fans and part == group and dag.convex(group) and group.bit_count() <= max(1, limit)


@pytest.mark.thorough
@settings(max_examples=20)
@given(st.integers(0, 10**9), st.integers(1, 6), st.lists(st.integers(3, 40), min_size=1, max_size=3))
def test_the_plan_is_the_best_within_the_rules(seed: int, nodes: int, kilobytes: list[int]) -> None:
    """At every budget, in any order, what the slow definition finds with the table's limit."""
    network = random_network(seed, nodes)
    dag = Dag.of(network)
    fuser = OnlineFuser(network, GENERIC, most=40 << 10)
    for budget in (k << 10 for k in kilobytes):
        problem = FusionProblem.of(network, GENERIC, FusionOptions(), budget)
        try:
            plan = fuser.plan(budget)
        except Infeasible:
            with pytest.raises(Infeasible):
                best_partition(problem)
            continue
        groups = tuple(g.members for g in plan.groups)
        assert plan.complete
        assert plan.limit == fuser.limit(budget)
        assert runnable(dag, groups)
        assert all(obeys(dag, group, plan.limit) for group in groups)
        assert all(g.scratch_bytes <= budget for g in plan.groups)
        assert plan.dram_bytes == online_scheme(problem, plan.limit).cost
        assert plan.dram_bytes >= best_partition(problem).dram_bytes


@settings(max_examples=20)
@given(st.integers(0, 10**9), st.integers(1, 6), st.integers(2, 40))
def test_the_table_is_what_the_paper_says(seed: int, nodes: int, kilobytes: int) -> None:
    """memo[n] ascends, and is the least over the groups of n operators as far as the budget reaches."""
    network = random_network(seed, nodes)
    problem = FusionProblem.of(network, GENERIC, FusionOptions(), kilobytes << 10)
    table = size_table(problem)
    slow = slow_table(problem, nodes)
    assert list(table) == sorted(table)
    assert all(size <= problem.budget for size in table)
    for n, least in enumerate(slow, 1):
        if least is not None and n <= len(table):
            assert table[n - 1] >= least
            if n == 1 or table[n - 2] <= least:
                assert table[n - 1] == least


def test_the_papers_table_for_vgg16(shared: Path) -> None:
    """128 KB allow five operators in a group, and so 80 groups: Table 5."""
    network = fusion_graph(shared / "bench" / "fusion" / "vgg16.json", 4)
    chip = load_chip("optimus")
    for isoa in ("channelwise", "paper"):
        options = FusionOptions(isoa=isoa)
        fuser = OnlineFuser(network, chip, options)
        limit = fuser.limit(128 << 10)
        assert limit == 5
        assert len(online_groups(FusionProblem.of(network, chip, options, 128 << 10), limit)) == 80
        assert fuser.limit(32 << 10) < 5


@pytest.mark.parametrize(
    ("quarter", "least", "limit"),
    [(lambda n: n / 4, 140_272, 4), (lambda n: math.ceil(n / 4), 158_720, 4), (lambda n: n // 4, 92_416, 5)],
    ids=["exact", "up", "down"],
)
def test_vgg16_with_the_halo_in_the_width(quarter: Callable[[int], float], least: int, limit: int) -> None:
    """The formula as printed, with R(l, t_h) x R(l, t_w) pixels: 80 groups if quarters are rounded down."""
    sizes = [least_with_halo(n, quarter) for n in range(1, 7)]
    assert math.floor(sizes[4]) == least
    assert sum(size <= 128 << 10 for size in sizes) == limit


def least_with_halo(n: int, quarter: Callable[[int], float]) -> float:
    """Bytes of 2 an element that the maps of n operators in a row of VGG16 take at the least."""
    layers, channels, side = [], 3, 224  # (channels read, channels made, window, stride, rows made)
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers.append((channels, width, 3, 1, side))
            channels = width
        side //= 2
        layers.append((channels, channels, 2, 2, side))
    found = []
    for first in range(len(layers) - n + 1):
        group = layers[first : first + n]
        pixels = [quarter(group[-1][4])]
        for _, _, window, stride, rows in reversed(group):
            pixels.insert(0, min(pixels[0] * stride + window - stride, rows * stride))
        wide = [group[0][0], *(made for _, made, *_ in group)]
        whole = [c * p * p for c, p in zip(wide, pixels, strict=True)]
        streamed = [min(16, c) * p * p for c, p in zip(wide, pixels, strict=True)]
        # Of two maps of one operator at most one is streamed: (bytes so far, the last map whole or streamed).
        last_whole, last_streamed = whole[0], streamed[0]
        for all_of, some in zip(whole[1:], streamed[1:], strict=True):
            last_whole, last_streamed = min(last_whole, last_streamed) + all_of, last_whole + some
        found.append(2 * min(last_whole, last_streamed))
    return min(found)


@pytest.mark.parametrize(("name", "most"), [("vgg16", 6), ("squeezenet1_0", 4)])
def test_the_least_of_each_size_grows_by_itself(shared: Path, name: str, most: int) -> None:
    """The paper's theorem on memo, of raw minima: `size_table` makes its own ascend."""
    network = fusion_graph(shared / "bench" / "fusion" / f"{name}.json", 4)
    problem = FusionProblem.of(network, load_chip("optimus"), FusionOptions(), 1 << 30)
    raw = [least for least in slow_table(problem, most) if least is not None]
    assert len(raw) > 2
    assert raw == sorted(set(raw))


@pytest.mark.parametrize("name", ["vgg16", "mobilenet_v1", "squeezenet1_0", "resnet50"])
def test_near_the_optimum_on_the_papers_networks(shared: Path, name: str) -> None:
    network = fusion_graph(shared / "bench" / "fusion" / f"{name}.json", 4)
    chip = load_chip("optimus")
    plan = OnlineFuser(network, chip).plan(128 << 10)
    best = best_partition(FusionProblem.of(network, chip, FusionOptions(), 128 << 10))
    assert best.complete
    assert best.dram_bytes <= plan.dram_bytes <= 1.06 * best.dram_bytes


def test_a_larger_budget_than_prepared_for_is_refused() -> None:
    fuser = OnlineFuser(random_network(1, 3), GENERIC, most=20 << 10)
    with pytest.raises(ValueError, match=r"prepared for 20,480 bytes, not for 20,481"):
        fuser.plan((20 << 10) + 1)


def test_a_search_cut_short_still_gives_groups_that_run() -> None:
    network = random_network(5, 6)
    fuser = OnlineFuser(network, GENERIC, most=40 << 10)
    plan = fuser.plan(40 << 10, most_states=1)
    assert not plan.complete
    assert runnable(Dag.of(network), tuple(g.members for g in plan.groups))


@pytest.mark.parametrize(
    "choice",
    [
        FusionOptions(search="online"),
        FusionOptions(search="algorithm1"),
        FusionOptions(search="algorithm1-top-down"),
        FusionOptions(space="dnnvm"),
        FusionOptions(space="efficient-s"),
    ],
    ids=lambda options: options.search if options.space == "full" else options.space,
)
def test_every_search_ends_in_groups_that_fuse_takes(choice: FusionOptions) -> None:
    """Never called the optimum: not all partitions were looked at, and a space says so."""
    network = random_network(3, 6)
    problem = FusionProblem.of(network, GENERIC, choice, 24 << 10)
    found = partition(problem, Priced(problem))
    total = sum(g.dram_bytes for g in found.groups)
    best = best_partition(FusionProblem.of(network, GENERIC, FusionOptions(), 24 << 10))
    assert runnable(Dag.of(network), tuple(g.members for g in found.groups))
    assert best.dram_bytes <= total
    assert not found.complete
    assert found.lower_bound_bytes <= best.dram_bytes
    assert (choice.space in found.note) == (choice.space != "full")


@settings(max_examples=10)
@given(st.integers(0, 10**9), st.integers(1, 5), st.lists(st.integers(3, 40), min_size=1, max_size=3))
def test_a_prepared_network_is_fused_for_each_budget(seed: int, nodes: int, kilobytes: list[int]) -> None:
    network = random_network(seed, nodes)
    prepared = PreparedFusion(network, GENERIC, 40 << 10)
    for budget in (k << 10 for k in kilobytes):
        try:
            anew = fuse(network, GENERIC, budget, FusionOptions(search="online"), beside=False)
        except Infeasible:
            with pytest.raises(Infeasible):
                prepared.fuse(budget)
            continue
        made = prepared.fuse(budget)
        assert made.plan is not None
        assert made.plan.budget == budget
        assert made.status == "feasible"
        assert check(made.plan).dram_bytes == made.dram_bytes
        # Prepared for more than is asked, its table may allow larger groups; never fewer.
        assert made.dram_bytes <= anew.dram_bytes
    with pytest.raises(UsageError, match="prepared for"):
        prepared.fuse((40 << 10) + 1)
