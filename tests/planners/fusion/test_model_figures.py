"""The known figures of the papers' networks: no fusion, exact and oracle, at 128 KB and batch 4."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from onchip.machines.chip import load_chip
from onchip.planners.fusion import FusionOptions, FusionProblem, group_cost
from onchip.planners.fusion.search import best_partition
from oracles.fusion import convex_groups, search_python

sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks"))
from fusion_graphs import fusion_graph

PAPER = FusionOptions(
    batch_weights="shared", isoa="paper", halo="paper", residency="all", weight_tile=False, blocks="fallback"
)
WHOLE = FusionOptions(
    batch_weights="per-image",
    isoa="paper",
    halo="paper",
    residency="all",
    weight_tile=False,
    blocks="fallback",
)
CHANNELWISE = FusionOptions(
    isoa="channelwise", halo="paper", residency="all", weight_tile=False, blocks="fallback"
)
BUDGET = 131_072


def problem_of(shared: Path, name: str, options: FusionOptions = PAPER) -> FusionProblem:
    network = fusion_graph(shared / "bench" / "fusion" / f"{name}.json", 4)
    return FusionProblem.of(network, load_chip("optimus"), options, BUDGET)


def words(size: int) -> float:
    return size / 2e6


@pytest.mark.parametrize(
    ("name", "none", "oracle"),
    [
        ("vgg16", 201.0, 15.4),
        ("mobilenet_v1", 46.7, 4.8),
        ("squeezenet1_0", 69.3, 1.9),
        ("googlenet", 66.6, 7.6),
        ("resnet50", 184.6, 26.1),
        ("resnet152", 403.4, 60.7),
    ],
)
def test_every_operator_alone(shared: Path, name: str, none: float, oracle: float) -> None:
    problem = problem_of(shared, name)
    network = problem.network
    alone = [group_cost(problem, 1 << op.id) for op in network.operators]
    assert words(sum(c.dram_bytes for c in alone if c)) == pytest.approx(none, abs=0.06)
    ends = sum(t.bytes for t in network.tensors if t.kind == "input")
    ends += sum(network.tensors[t].bytes for t in network.outputs)
    assert words(ends + network.weight_bytes) == pytest.approx(oracle, abs=0.06)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "options", "exact", "groups"),
    [
        ("vgg16", PAPER, 133.3, None),
        ("mobilenet_v1", PAPER, 15.7, None),
        ("squeezenet1_0", PAPER, 12.2, None),
        ("resnet50", PAPER, 110.8, 31),
        ("vgg16", WHOLE, 394.0, None),
        ("mobilenet_v1", WHOLE, 30.9, None),
        ("squeezenet1_0", WHOLE, 22.7, None),
        ("resnet50", WHOLE, 197.2, None),
        ("squeezenet1_0", CHANNELWISE, 14.2, None),
        pytest.param("resnet152", PAPER, 285.8, 99, marks=pytest.mark.slow),
        pytest.param("resnet152", WHOLE, 506.6, None, marks=pytest.mark.campaign),
    ],
)
def test_the_best_partition(
    shared: Path, name: str, options: FusionOptions, exact: float, groups: int | None
) -> None:
    found = search_python(problem_of(shared, name, options))
    assert found is not None
    assert words(sum(c.dram_bytes for c in found)) == pytest.approx(exact, abs=0.06)
    assert groups in (None, len(found))


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "count"), [("vgg16", 41), ("squeezenet1_0", 320)])
def test_feasible_groups(shared: Path, name: str, count: int) -> None:
    assert len(convex_groups(problem_of(shared, name))) == count


@pytest.mark.parametrize(("name", "groups"), [("resnet50", 31), ("resnet152", 99)])
def test_groups_of_the_paper_with_its_two_options_alone(shared: Path, name: str, groups: int) -> None:
    options = FusionOptions(batch_weights="shared", isoa="paper")
    assert options.halo == "paper"
    assert FusionOptions().halo == "lines"
    found = best_partition(problem_of(shared, name, options))
    assert (len(found.groups), found.complete) == (groups, True)
