"""Baselines: their spaces, their cost, and the figures they give on the papers' networks."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import Infeasible
from onchip.machines.chip import load_chip
from onchip.network import bits
from onchip.planners.fusion.cost import group_cost
from onchip.planners.fusion.options import FusionOptions
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.reproduced.algorithm1 import GroupCostFunction
from onchip.planners.fusion.reproduced.baselines import NAMES, baseline, baselines, oracle_bytes, repriced
from onchip.planners.fusion.reproduced.costs import Published
from onchip.planners.fusion.reproduced.dag import Dag
from onchip.planners.fusion.reproduced.downsets import best_scheme
from onchip.planners.fusion.reproduced.groups import connected_groups
from oracles.fusion_networks import convolutions
from oracles.fusion_schemes import random_dag, runnable

sys.path.append(str(Path(__file__).resolve().parents[4] / "benchmarks"))
from fusion_graphs import fusion_graph

PAPER = FusionOptions(
    batch_weights="shared", isoa="paper", halo="paper", residency="all", weight_tile=False, blocks="fallback"
)
"""The paper's own model, as far as it can be told."""


def priced(problem: FusionProblem) -> GroupCostFunction:
    @cache
    def cost(members: int) -> int | None:
        found = group_cost(problem, members)
        return None if found is None else found.dram_bytes

    return cost


def test_what_fits_at_once_crosses_once() -> None:
    """A chain whose weights and bands fit: everything between its ends stays on chip in both older fusers."""
    network = convolutions([(0, 1), (1, 2)], 3)
    chip = load_chip("generic")
    problem = FusionProblem.of(network, chip, FusionOptions(), 3 * 9216 + 4 * 32 * 16 * 7)
    cost = priced(problem)
    ends = 2 * 32 * 16 * 16
    for name in ("dnnvm", "efficient-s", "without-model"):
        found = baseline(problem, name, cost)
        assert found.groups == (0b111,)
        assert found.dram_bytes == ends + 3 * 9216 == oracle_bytes(problem)
        assert repriced(found, cost) == found.dram_bytes
    assert baseline(problem, "none", cost).dram_bytes == 3 * (ends + 9216)


def test_a_barrier_keeps_dnnvm_from_fusing() -> None:
    network = convolutions([(0, 1), (0, 2), (1, 3), (2, 3)], 4)
    problem = FusionProblem.of(network, load_chip("generic"), FusionOptions(), 1 << 20)
    cost = priced(problem)
    assert baseline(problem, "dnnvm", cost).dram_bytes == baseline(problem, "none", cost).dram_bytes
    assert baseline(problem, "efficient-s", cost).groups == (0b1111,)


@pytest.mark.thorough
@settings(max_examples=15)
@given(st.integers(0, 10**9), st.integers(2, 5), st.integers(3, 40))
def test_no_baseline_moves_less_than_ours_for_its_groups(seed: int, nodes: int, kilobytes: int) -> None:
    random = Random(seed)
    dag = random_dag(random, nodes, 0.4)
    network = convolutions([(a, b) for a in range(nodes) for b in bits(dag.successors[a])], nodes, size=8)
    dag = Dag.of(network)  # first operators share the input
    problem = FusionProblem.of(network, load_chip("generic"), FusionOptions(), kilobytes << 10)
    cost = priced(problem)
    if any(cost(1 << v) is None for v in range(nodes)):
        with pytest.raises(Infeasible, match="operator n"):
            baselines(problem, cost)
        return
    best, _ = best_scheme(dag, connected_groups(dag, cost))
    for name in NAMES:
        found = baseline(problem, name, cost)
        again = repriced(found, cost)
        assert runnable(dag, found.groups)
        assert again is not None
        assert best.cost <= again <= found.dram_bytes
    every = baselines(problem, cost)
    assert every.incomplete == ()
    assert baselines(problem, cost, lambda: True).incomplete == ("without_model",)
    table = every.dram_bytes
    assert set(table) == {"none", "dnnvm", "efficient_s", "without_model", "oracle"}
    assert table["oracle"] <= min(best.cost, *table.values())


@settings(max_examples=20)
@given(st.integers(0, 10**9), st.integers(1, 5), st.integers(1, 60))
def test_the_fast_price_is_the_published_one(seed: int, nodes: int, kilobytes: int) -> None:
    dag = random_dag(Random(seed), nodes, 0.4)
    network = convolutions([(a, b) for a in range(nodes) for b in bits(dag.successors[a])], nodes, size=8)
    problem = FusionProblem.of(network, load_chip("optimus"), FusionOptions(), kilobytes << 10)
    model = Published(problem)
    for group in connected_groups(Dag.of(network), lambda _: 0):
        need = model.need(group)
        weights = sum(network.operators[v].weight_bytes for v in bits(group))
        fits = need is not None and need <= problem.budget
        assert model(group) == (problem.crossing_bytes(group) + weights if fits else None)


def test_too_many_groups_give_the_best_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """No dearer than Efficient-S, and not called complete."""
    network = convolutions([(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)], 5, size=8)
    problem = FusionProblem.of(network, load_chip("generic"), FusionOptions(), 64 << 10)
    cost = priced(problem)
    full = baseline(problem, "without-model", cost)
    assert full.complete
    monkeypatch.setattr("onchip.planners.fusion.reproduced.baselines.MOST_GROUPS", 6)
    some = baseline(problem, "without-model", cost)
    assert not some.complete
    assert runnable(Dag.of(network), some.groups)
    assert full.dram_bytes <= some.dram_bytes <= baseline(problem, "efficient-s", cost).dram_bytes


@pytest.mark.parametrize(
    ("name", "none", "dnnvm", "efficient_s", "oracle"),
    [
        ("vgg16", 201.0, 201.0, 201.0, 15.4),
        ("mobilenet_v1", 46.7, 27.4, 27.4, 4.8),
        ("squeezenet1_0", 69.3, 59.7, 35.2, 1.9),
        ("googlenet", 66.6, 52.5, 50.5, 7.6),
        ("resnet50", 184.6, 184.6, 158.1, 26.1),
    ],
)
def test_megawords_of_the_papers_networks(
    shared: Path, name: str, none: float, dnnvm: float, efficient_s: float, oracle: float
) -> None:
    """Batch 4, 128 KiB, 16 bits, weights of a band fetched once for the batch: figures worked out before."""
    graph = fusion_graph(shared / "bench" / "fusion" / f"{name}.json", 4)
    problem = FusionProblem.of(graph, load_chip("optimus"), PAPER, 128 << 10)
    cost = priced(problem)
    for which, megawords in (("none", none), ("dnnvm", dnnvm), ("efficient-s", efficient_s)):
        assert baseline(problem, which, cost).dram_bytes / 2e6 == pytest.approx(megawords, rel=0.005)
    assert oracle_bytes(problem) / 2e6 == pytest.approx(oracle, rel=0.03)
