"""The capacity-only searches equal references that share nothing with them, whatever rules are switched on.

A few hundred cases in the quick run and over a thousand in the whole one; `benchmarks/oracle_campaign.py`
runs any number more.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings

from oracles.compare import ALL_RULES, some_rules, traffic_against_ilp, traffic_against_states
from oracles.hard import HARD, Hard
from strategies import Case, cases, random_case


@pytest.mark.parametrize("hard", HARD, ids=lambda h: str(h.broken))
def test_networks_that_catch_wrong_rules(hard: Hard) -> None:
    case = Case(hard.network, hard.alignment, hard.budget)
    assert traffic_against_states(case, ALL_RULES) == hard.traffic


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(cases(7))
def test_traffic_and_peak_equal_exact_states(case: Case) -> None:
    traffic_against_states(case, some_rules(Random(0), 2))


@pytest.mark.thorough
def test_traffic_and_peak_equal_exact_states_on_many() -> None:
    hard = 0
    for seed in range(300):
        rng = Random(seed)
        hard += traffic_against_states(random_case(rng, 8), some_rules(rng, 2)) > 0
    assert hard > 60  # cases with traffic, so that the comparison is one


@pytest.mark.slow
def test_traffic_and_peak_equal_exact_states_on_many_more() -> None:
    hard = 0
    for seed in range(10_000, 10_700):
        rng = Random(seed)
        case = random_case(rng, 8, min_operators=rng.choice((1, 6)))
        hard += traffic_against_states(case, some_rules(rng, 1)) > 0
    assert hard > 180


def test_traffic_equals_an_integer_program() -> None:
    assert sum(traffic_against_ilp(random_case(Random(s), 10, min_operators=8)) > 0 for s in range(12)) > 2


@pytest.mark.slow
def test_traffic_equals_an_integer_program_up_to_sixteen_operators() -> None:
    hard = 0
    for seed in range(1000, 1025):
        rng = Random(seed)
        hard += traffic_against_ilp(random_case(rng, 16, min_operators=9)) > 0
    assert hard > 7
