"""The traffic view lists every byte that crosses, once."""

from __future__ import annotations

from random import Random

import pytest
from fused_plans import diamond_plan
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.machines.chip import Chip
from onchip.plans import Plan
from onchip.report import timeline
from onchip.report.crossings import page_words
from run.planner import random_plan, roomy
from strategies import random_network


def adds_up(plan: Plan) -> None:
    words = page_words(timeline(plan))
    assert sum(row["total"] for row in words["tensors"]) + sum(row["total"] for row in words["weights"]) == (
        plan.result.dram_bytes
    )
    for kind in ("spill", "reload"):
        assert sum(row[kind] for row in words["tensors"]) == getattr(plan.result, f"{kind}_bytes")
    listed = [row["total"] for row in words["tensors"]]
    assert listed == sorted(listed, reverse=True)
    assert all(row["total"] > 0 for row in words["tensors"])


@pytest.mark.thorough
@given(st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_rows_of_random_plans_add_up_to_the_checkers_figures(rng: Random) -> None:
    network = random_network(rng)
    adds_up(random_plan(network, roomy(network), rng, Chip("c", 1)))


def test_halo_and_refilled_weights_of_groups_are_in_it() -> None:
    adds_up(diamond_plan())
