"""The references agree with each other, and each weakened rule is caught: what makes the comparisons with the
planner worth anything."""

from __future__ import annotations

from random import Random

import pytest

from oracles import addresses, ilp, states, twin
from oracles.hard import HARD, Hard
from oracles.twin import WEAK, Rules
from strategies import SMALL_SIZES, minimum_requirement, network_of, random_case

SOUND = [
    Rules(r1, r2, r3)
    for r1 in (True, False)
    for r2 in (True, False, "plus", "chains")
    for r3 in (True, False)
]


def test_states_by_hand() -> None:
    # x feeds two branches; at 9 bytes one result must leave while the other is made: written and read, 2 x 4.
    network = network_of({"x": 3, "a": 4, "b": 4, "y": 1}, ["x -> a", "x -> b + 2", "a b -> y"], "y")
    assert minimum_requirement(network) == 9
    assert states.least_peak(network) == 11
    assert states.least_traffic(network, 8) is None
    assert states.least_traffic(network, 9) == 8
    assert states.least_traffic(network, 10) == 8
    assert states.least_traffic(network, 11) == 0
    a_first, b_first = (0, 1, 2), (1, 0, 2)
    assert states.least_traffic(network, 11, order=b_first) == 0
    assert states.least_traffic(network, 11, order=a_first) == 8


def test_an_output_and_an_input_are_cheaper_to_evict() -> None:
    wide = {"x": 1, "a": 4, "b": 4, "c": 6, "y": 1}
    lines = ["x -> a", "a -> b", "b -> c", "c a -> y"]
    assert states.least_traffic(network_of(wide, lines, "y"), 11) == 8
    assert states.least_traffic(network_of(wide, lines, "y a"), 11) == 4
    assert states.least_traffic(network_of(wide, lines[1:], "y"), 11) == 4


@pytest.mark.parametrize("hard", HARD, ids=lambda h: str(h.broken))
def test_hard_networks_break_the_rule_they_were_made_for(hard: Hard) -> None:
    least = states.least_traffic(hard.network, hard.budget, hard.alignment)
    assert least == hard.traffic == ilp.least_traffic(hard.network, hard.budget, hard.alignment)
    assert twin.least_traffic(hard.network, hard.budget, hard.alignment, hard.broken) != least
    for rules in SOUND:
        assert twin.least_traffic(hard.network, hard.budget, hard.alignment, rules) == least


def test_every_weakened_rule_has_a_hard_network() -> None:
    assert {h.broken for h in HARD} == set(WEAK)


@pytest.mark.thorough
def test_states_twin_and_ilp_agree() -> None:
    for seed in range(150):
        case = random_case(Random(seed), 7)
        what = (case.network, case.budget, case.alignment)
        least = states.least_traffic(*what)
        assert least == states.least_traffic(*what, idle_loads=False), seed
        for rules in SOUND:
            assert twin.least_traffic(*what, rules) == least, (seed, rules)
        if seed < 40:
            assert ilp.least_traffic(*what) == least, seed
        peak = states.least_peak(case.network, case.alignment)
        assert (least == 0) or case.budget < peak
        for rules in (Rules(), Rules(r4=False)):
            assert twin.least_peak(case.network, case.alignment, rules) == peak, seed


@pytest.mark.parametrize("r4", ["without size", "without peak"])
def test_a_weakened_peak_rule_is_caught(r4: str) -> None:
    wrong = 0
    for seed in range(100):
        case = random_case(Random(seed))
        weak = Rules(r4=r4)  # type: ignore[arg-type]
        wrong += twin.least_peak(case.network, rules=weak) > states.least_peak(case.network)
    assert wrong


def test_addresses_cost_no_less_than_capacity() -> None:
    for seed in range(60):
        case = random_case(Random(seed), 4, sizes=SMALL_SIZES)
        if case.budget > 12:
            continue
        what = (case.network, case.budget, case.alignment)
        joint, least = addresses.least_traffic(*what), states.least_traffic(*what)
        assert joint is not None, seed  # from MR on, storing and reloading everything always works
        assert least is not None, seed
        assert joint >= least, seed
