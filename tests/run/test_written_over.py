"""Plans whose outputs lie over inputs, executed: every tensor is still bit for bit the network's."""

from __future__ import annotations

import pytest

from large_cases import with_campaign
from onchip.machines.chip import Chip
from onchip.planners.placement import PlacementOptions, budgets, plan
from onchip.plans import Alloc
from onchip.readers import ReadOptions, load
from onchip.run import run

ZOO = (
    "amoebanet_d",
    "darts",
    "densenet121",
    "mobilenet_v3_large",
    "nasnetalarge",
    "resnet50",
    "shufflenet_v2_x1_0",
    "squeezenet1_0",
    "vit_b_16",
)
LARGE = ("amoebanet_d", "nasnetalarge", "vit_b_16")


def executed(model: str, granularity: str = "fused") -> int:
    """Plan at the least budget in place, execute, and say how many outputs were written over inputs."""
    source = load(model, ReadOptions(granularity=granularity))  # type: ignore[arg-type]
    chip, options = Chip("test", 1), PlacementOptions(in_place=True)
    made = plan(source.network, chip, budgets(source.network, chip, in_place=True).mr, options)
    report = run(made, source)
    assert report.bit_exact
    assert report.moved.traffic == made.result.traffic_bytes
    return sum(isinstance(i, Alloc) and i.over is not None for i in made.program)


def test_shortcuts_are_written_over_and_executed() -> None:
    assert executed("zoo:resnet50@64x64") > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", with_campaign(ZOO, LARGE))
def test_the_zoo_in_place_executes(name: str) -> None:
    executed(f"zoo:{name}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squeezenet1_0", "mobilenet_v3_large", "resnet18"])
def test_single_operators_in_place_execute(name: str) -> None:
    assert executed(f"zoo:{name}@96x96", "op") > 0
