"""Whole plans, addresses included, equal exhaustive placement; their status is earned."""

from __future__ import annotations

from random import Random

import pytest

from oracles import addresses, states
from oracles.compare import plan_against_addresses, plan_against_states
from oracles.hard import MOVED, Moved
from strategies import SMALL_SIZES, Case, random_case, random_tight_case


@pytest.mark.parametrize("moved", MOVED, ids=range(len(MOVED)))
def test_where_capacity_is_not_enough(moved: Moved) -> None:
    assert states.least_traffic(moved.network, moved.budget) == moved.traffic
    assert addresses.least_traffic(moved.network, moved.budget) == moved.joint
    assert plan_against_addresses(Case(moved.network, 1, moved.budget)) == (moved.traffic, moved.joint)


def compared(seeds: range) -> tuple[int, int, int]:
    """Cases compared with exhaustive placement, how many of them had traffic, how many had to move."""
    count = paying = moved = 0
    for seed in seeds:
        rng = Random(seed)
        case = random_tight_case(rng) if seed % 2 else random_case(rng, 5, sizes=SMALL_SIZES)
        if case.budget > 14 * case.alignment:
            continue
        try:
            least, joint = plan_against_addresses(case)
        except addresses.Undecided:
            continue
        except AssertionError as difference:
            raise AssertionError(f"seed {seed}: {difference}") from difference
        count, paying, moved = count + 1, paying + (joint > 0), moved + (joint > least)
    return count, paying, moved


def test_plans_of_five_operators_equal_exhaustive_placement() -> None:
    count, paying, moved = compared(range(100))
    assert count > 80
    assert paying > 5
    assert moved > 0


@pytest.mark.slow
def test_plans_of_five_operators_equal_exhaustive_placement_on_many() -> None:
    count, paying, moved = compared(range(1000, 1500))
    assert count > 400
    assert paying > 50
    assert moved > 3


def test_a_plans_status_is_honest() -> None:
    for seed in range(40):
        plan_against_states(random_case(Random(seed), 8))


@pytest.mark.slow
def test_a_plans_status_is_honest_on_many() -> None:
    for seed in range(1000, 1150):
        rng = Random(seed)
        plan_against_states(random_tight_case(rng, 7) if seed % 3 == 0 else random_case(rng, 9))
