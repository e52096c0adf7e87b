"""Real networks, executed whole: the built-in ones and those inside the onnx wheel."""

from __future__ import annotations

from pathlib import Path
from random import Random

import onnx
import pytest

from onchip.machines.chip import Chip
from onchip.planners.placement import budgets, plan
from onchip.readers import load
from onchip.run import RunReport, run
from run.planner import random_plan, roomy

LARGE = {"light_inception_v1", "light_vgg19", "light_zfnet512"}
"""Whose like, or larger ones in fewer bytes, stand beside them."""
LIGHT = sorted(Path(onnx.__file__).parent.rglob("light_*.onnx"))


def execute(model: str | Path, **options: int) -> RunReport:
    """A random plan with spills, at the least budget there is, executed."""
    source = load(model)
    made = random_plan(source.network, roomy(source.network), Random(0))
    report = run(made, source, **options)
    assert report.bit_exact
    assert report.operators == len(source.network.operators)
    assert report.tensors == len(source.network.tensors)
    assert report.moved.traffic == made.result.traffic_bytes > 0
    return report


def test_squeezenet_executes_and_every_tensor_depends_on_the_input() -> None:
    one, other = (execute("zoo:squeezenet1_0@64x64", input_seed=i) for i in (1, 2))
    assert one.scale == 4
    assert not set(one.digests.items()) & set(other.digests.items())


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(path, marks=pytest.mark.campaign if path.stem in LARGE else (), id=path.stem)
        for path in LIGHT
    ],
)
def test_light_networks_run_as_planned_at_mr_and_mp_and_every_tensor_depends_on_the_input(
    model: Path,
) -> None:
    source, chip = load(model), Chip("test", 1)
    limits = budgets(source.network, chip)
    reports = []
    for budget, input_seed in ((limits.mr, 1), (limits.mp, 2)):
        planned = plan(source.network, chip, budget)
        reports.append(run(planned, source, input_seed=input_seed))
        assert reports[-1].bit_exact
        assert reports[-1].scale == 1
        assert reports[-1].arena_bytes <= budget
        assert reports[-1].moved.traffic == planned.result.traffic_bytes
    assert any("one constant in the file" in note for note in reports[0].notes)
    one, other = (set(report.digests.items()) for report in reports)
    assert len(one) == len(source.network.tensors)
    assert not one & other


def test_there_are_light_networks() -> None:
    assert len(LIGHT) >= 9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mobilenet_v2", "densenet121", "vit_b_16"])
def test_zoo_networks_execute(name: str) -> None:
    execute(f"zoo:{name}")
