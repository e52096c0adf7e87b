"""The older fusers' cost in tiles of T_h x T_w: against section 2.3, and on the papers' networks."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.machines.chip import load_chip
from onchip.network import bits
from onchip.planners.fusion.options import FusionOptions
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.reproduced.baselines import TILED, baseline
from onchip.planners.fusion.reproduced.costs import Published
from onchip.planners.fusion.reproduced.dag import Dag
from onchip.planners.fusion.reproduced.groups import connected_groups
from onchip.planners.fusion.reproduced.tiles import Tiled
from onchip.planners.fusion.strategy import Priced
from oracles.fusion_networks import convolutions
from oracles.fusion_schemes import random_dag

sys.path.append(str(Path(__file__).resolve().parents[4] / "benchmarks"))
from fusion_graphs import fusion_graph, papers_network

PAPER = FusionOptions(
    batch_weights="shared", isoa="paper", halo="paper", residency="all", weight_tile=False, blocks="fallback"
)


@pytest.mark.parametrize(
    ("windows", "sides"),
    [
        # From the last map back: t S + K - S, in rows from T_h = 1, in columns from T_w = 16.
        ([(3, 1), (3, 1)], [(1, 16), (3, 18), (5, 20)]),
        ([(3, 1), (2, 2), (5, 1)], [(1, 16), (5, 16), (10, 32), (12, 32)]),
        ([(3, 2), (3, 2), (3, 2), (3, 2)], [(1, 2), (3, 4), (7, 8), (15, 16), (31, 32)]),  # maps end
    ],
)
def test_the_text_s_recursion(windows: list[tuple[int, int]], sides: list[tuple[int, int]]) -> None:
    """sum of C * R_h * R_w and of parameters, to the byte, is what a group needs."""
    size, rows = 32, []
    for i, (kernel, stride) in enumerate(windows):
        size //= stride
        rows.append(
            {
                "name": f"n{i}", "kind": "conv", "c_in": 8, "c_out": 8, "kernel": kernel, "stride": stride,
                "out_h": size, "out_w": size, "weight_words": 64 * kernel * kernel,
                "reads": [f"n{i - 1}" if i else "input"],
            }
        )  # fmt: skip
    graph = {"name": "chain", "input_chw": [8, 32, 32], "operators": rows}
    chip = load_chip("optimus")
    assert chip.tile[:2] == (1, 16)
    group = (1 << len(rows)) - 1
    need = 2 * sum(8 * high * wide for high, wide in sides) + 2 * sum(row["weight_words"] for row in rows)
    enough = FusionProblem.of(fusion_graph(graph, 1), chip, PAPER, need)
    assert Tiled(enough).need(group) == need
    assert Tiled(enough)(group) is not None
    assert Tiled(FusionProblem.of(fusion_graph(graph, 1), chip, PAPER, need - 2))(group) is None


@settings(max_examples=20)
@given(st.integers(0, 10**9), st.integers(1, 5), st.integers(1, 60))
def test_a_tile_needs_no_more_than_a_band_and_moves_as_much(seed: int, nodes: int, kilobytes: int) -> None:
    dag = random_dag(Random(seed), nodes, 0.4)
    network = convolutions([(a, b) for a in range(nodes) for b in bits(dag.successors[a])], nodes, size=24)
    problem = FusionProblem.of(network, load_chip("optimus"), FusionOptions(), kilobytes << 10)
    tiles, bands = Tiled(problem), Published(problem)
    for group in connected_groups(Dag.of(network), lambda _: 0):
        narrow, wide = tiles.need(group), bands.need(group)
        assert narrow is not None
        assert wide is not None
        assert narrow <= wide
        assert (tiles(group) is None) == (narrow > problem.budget)
        if bands(group) is not None:
            assert tiles(group) == bands(group)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "none", "dnnvm", "efficient_s", "without_model"),
    [
        ("alexnet", 68.80, 66.48, 66.48, 66.48),
        ("alexnet_features", 10.07, 7.74, 7.74, 7.74),
        ("vgg16", 201.04, 149.66, 149.66, 149.66),
        ("mobilenet_v1", 46.69, 25.81, 25.81, 25.81),
        ("squeezenet1_0", 69.31, 59.68, 26.67, 21.45),
        ("resnet50", 184.61, 179.79, 144.46, 144.46),
        ("resnet152", 403.35, 398.53, 363.21, 363.21),
    ],
)
def test_dnnvm_moves_less_than_no_fusion(
    name: str, none: float, dnnvm: float, efficient_s: float, without_model: float
) -> None:
    """128 KiB, batch 4, the paper's options: as in its figure 14, where whole rows fuse nothing."""
    problem = FusionProblem.of(papers_network(name, 4), load_chip("optimus"), PAPER, 128 << 10)
    price = Priced(problem)
    found = [baseline(problem, which, price).dram_bytes / 2e6 for which in ("none", *TILED)]
    assert found == pytest.approx([none, dnnvm, efficient_s, without_model], abs=0.005)
    assert found[1] < found[0]
