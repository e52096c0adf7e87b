"""The joint search against elementary moves priced by the checker, and its rules against each other."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from onchip.machines.chip import load_chip
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.least import least_bytes
from onchip.planners.fusion.search import Fuser
from onchip.planners.joint.search import ALL_RULES, JointSearch, Rules, compulsory_bytes
from onchip.planners.limits import Limits
from onchip.planners.placement.overwriting import overwritable
from oracles.fusion_cases import random_maps
from oracles.joint import least_dram_bytes

Over = tuple[tuple[int, ...], ...]


def case(rng: Random, most: int) -> tuple[FusionProblem, Over]:
    network = random_maps(rng, most, 1)
    total = sum(t.bytes for t in network.tensors)
    chip = replace(load_chip("generic"), alignment_bytes=rng.choice((1, 1, 1, 8)))
    options = FusionOptions(channel_tile=rng.choice((1, 2, 4)))
    budget = int(total * rng.choice((0.15, 0.25, 0.4, 0.6, 0.8)))
    return FusionProblem.of(network, chip, options, budget), (
        overwritable(network) if rng.random() < 0.5 else ()
    )


def against_moves(seed: int, most: int) -> None:
    problem, over = case(Random(seed), most)
    expected = least_dram_bytes(problem, over)
    search = JointSearch(problem, over)
    if expected is None:
        assert search.misfits
        return
    found = search.best()
    assert found.complete
    assert found.dram_bytes == found.lower_bound_bytes == expected
    assert least_bytes(problem) <= expected


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(12))
def test_nothing_moves_less_than_what_is_found(seed: int) -> None:
    against_moves(seed, 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [100, 102, 103])
def test_nothing_moves_less_on_larger_networks(seed: int) -> None:
    against_moves(seed, 6)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=pytest.mark.campaign if n in (15, 16, 27) else ()) for n in range(30)]
)
def test_no_rule_changes_what_is_found(seed: int) -> None:
    problem, over = case(Random(1000 + seed), 7)
    if JointSearch(problem, over).misfits:
        return
    values = {
        JointSearch(problem, over, rules=Rules(*on)).best(widths=(0,)).dram_bytes
        for on in product((True, False), repeat=4)
    }
    assert len(values) == 1


@pytest.mark.parametrize("seed", range(30))
def test_a_bound_by_worth_of_operators_is_one(seed: int) -> None:
    """What operators are worth where sets of them are too many bounds the optimum, and prunes no optimum."""
    from onchip.planners.joint.bound import worths

    problem, over = case(Random(2000 + seed), 7)
    search = JointSearch(problem, over)
    if search.misfits:
        return
    best = search.best().dram_bytes
    again = JointSearch(problem, over)
    worth = worths(again._core, len(problem.operators), Limits())
    assert best is not None
    assert again._core.floor() <= sum(worth) <= best - compulsory_bytes(problem)
    again._core.worth(worth)
    pruned = JointSearch(problem, over, rules=replace(ALL_RULES, ahead=False))
    pruned._core.worth(worth)
    assert pruned.best(widths=(0,)).dram_bytes == best


@pytest.mark.parametrize("seed", range(20))
def test_any_width_gives_steps_and_a_bound(seed: int) -> None:
    problem, over = case(Random(3000 + seed), 8)
    search = JointSearch(problem, over)
    if search.misfits:
        return
    best = search.best()
    narrow = JointSearch(problem, over).best(widths=(1,))
    assert best.dram_bytes is not None
    assert narrow.dram_bytes is not None
    assert narrow.lower_bound_bytes <= best.dram_bytes <= narrow.dram_bytes


@pytest.mark.parametrize("seed", range(20))
def test_never_more_than_the_best_partition(seed: int) -> None:
    problem, over = case(Random(4000 + seed), 8)
    search = JointSearch(problem, over)
    if search.misfits:
        return
    found = search.best().dram_bytes
    opaque = any(op.form == "opaque" for op in problem.operators)
    assert found is not None
    if not opaque or not Fuser(problem).core.misfits(problem.budget):
        assert found <= Fuser(problem).best().dram_bytes


def test_a_search_that_is_stopped_at_once_still_finds_steps() -> None:
    problem, over = case(Random(5), 8)
    search = JointSearch(problem, over, limits=Limits(cancelled=lambda: True))
    found = search.best(limits=Limits(time_limit=0.0, cancelled=lambda: True))
    assert found.steps
    assert not found.complete or found.dram_bytes == found.lower_bound_bytes
