"""Plans executed: every tensor bit for bit, every byte counted, whatever the order, addresses and spills."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from onchip.chip import Chip
from onchip.readers import ReadOptions
from onchip.run import run
from run.models import MODELS, source
from run.planner import random_plan, roomy

OPTIONS = [ReadOptions(g, d) for g in ("fused", "op") for d in ("file", "int8")]  # type: ignore[arg-type]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: f"{o.granularity}-{o.dtype}")
@pytest.mark.parametrize("name", MODELS)
def test_random_legal_plans_are_bit_exact_and_move_the_bytes_that_the_checker_says(
    name: str, options: ReadOptions, tmp_path: Path
) -> None:
    found = source(name, tmp_path, options)
    for seed in range(6):
        random = Random(seed)
        chip = Chip("test", random.choice([1, 4, 64]))
        budget = int(roomy(found.network, chip) * random.choice([1, 1.3, 3]))
        plan = random_plan(found.network, budget, random, chip)
        report = run(plan, found, seed=seed)
        assert report.bit_exact
        assert report.max_difference == 0
        assert report.operators == len(found.network.operators)
        assert report.tensors == len(found.network.tensors)
        assert report.moved.compulsory == plan.result.compulsory_bytes
        assert report.moved.reload == plan.result.reload_bytes
        assert report.moved.spill == plan.result.spill_bytes
        assert report.arena_bytes <= budget * report.scale
        if options.dtype == "file":
            assert report.scale == 1
