"""Fusion from end to end: a certified plan where there is one, figures where no machine could run it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from onchip.base.errors import Infeasible, UsageError
from onchip.check import check
from onchip.machines.chip import load_chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.planners.fusion import FusionOptions
from onchip.planners.fusion.fuse import fuse

sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks"))
from fusion_graphs import fusion_graph

certified = pytest.mark.skipif(
    find_spec("onchip.check.tiles") is None, reason="the checker proves nothing of tiles"
)


def chain(*, batch: int = 2, channels: int = 32, opaque: bool = False) -> Network:
    """conv 3x3, conv 3x3, pool 2x2 on maps of 8 x 8; opaque: the first convolution states no geometry."""
    shape = (batch, channels, 8, 8)
    conv = Geometry("conv", shape, shape, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1))
    pool = Geometry("pool", shape, (batch, channels, 4, 4), (2, 2), (2, 2), (0, 0, 0, 0), (1, 1))
    size, weights = batch * channels * 64 * 2, channels * channels * 9 * 2
    return Network.build(
        "chain",
        [
            ("x", size, "input"),
            *((name, size, "activation") for name in "ab"),
            ("y", size // 4, "activation"),
        ],
        [
            OperatorSpec("c1", "Conv", ["x"], ["a"], weights, geometry=None if opaque else conv),
            OperatorSpec("c2", "Conv", ["a"], ["b"], weights, geometry=conv),
            OperatorSpec("p", "MaxPool", ["b"], ["y"], geometry=pool),
        ],
        ["y"],
        element="int16",
    )


@certified
@pytest.mark.parametrize("opaque", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        FusionOptions(),
        FusionOptions(batch_weights="held"),
        FusionOptions(isoa="off", residency="none"),
        FusionOptions(halo="paper", isoa="off"),
    ],
)
def test_a_plan_is_certified(options: FusionOptions, opaque: bool) -> None:
    network = chain(opaque=opaque)
    found = fuse(network, load_chip("optimus"), 24_000, options)
    assert found.plan is not None
    assert check(found.plan).dram_bytes == found.dram_bytes
    assert found.status == "optimal"
    assert found.lower_bound_bytes == found.dram_bytes
    assert found.dram_bytes >= found.baselines["oracle"]
    assert found.dram_bytes <= found.baselines["none"]


@certified
@pytest.mark.parametrize("name", ["vgg16", "mobilenet_v1"])
def test_plans_of_real_networks_are_certified(shared: Path, name: str) -> None:
    network = fusion_graph(shared / "bench" / "fusion" / f"{name}.json", 4)
    found = fuse(network, load_chip("optimus"))
    assert found.plan is not None
    assert check(found.plan).dram_bytes == found.dram_bytes < found.baselines["none"]


@pytest.mark.parametrize(
    "options",
    [
        FusionOptions(batch_weights="shared"),
        FusionOptions(weight_tile=False),
        FusionOptions(halo="recompute"),
    ],
)
def test_what_no_machine_can_run_has_figures_only(options: FusionOptions) -> None:
    found = fuse(chain(), load_chip("optimus"), 24_000, options)
    assert found.plan is None
    assert not found.executable
    assert found.not_executable
    assert found.dram_bytes > 0


def test_an_operator_that_fits_in_nothing_is_named() -> None:
    with pytest.raises(Infeasible, match=r"operator c1 \(like 1 more\) needs") as refused:
        fuse(chain(opaque=True), load_chip("optimus"), 8_000)
    assert refused.value.needs == 2 * 2 * 32 * 64 * 2


def test_a_chip_without_scratchpad_needs_a_budget() -> None:
    with pytest.raises(UsageError, match="budget"):
        fuse(chain(), load_chip("generic"))
