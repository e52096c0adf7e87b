"""Placement from end to end: legal, optimal addresses included, honest when it is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings

from onchip.check import check
from onchip.chip import Chip
from onchip.errors import Infeasible
from onchip.network_json import read_network
from onchip.placement import PlacementOptions, Problem, combined, minimum_traffic, plan
from oracles import addresses
from strategies import SMALL_SIZES, Case, cases, network_of, random_case

GENERIC = Chip("generic", 1)


@given(cases(9))
@settings(max_examples=150, deadline=None)
def test_every_plan_is_legal_and_keeps_its_word(case: Case) -> None:
    made = plan(case.network, case.chip, case.budget)
    assert check(made) == made.result
    bound = minimum_traffic(Problem.of(case.network, case.alignment), case.budget).value
    assert made.result.lower_bound_bytes >= bound
    assert made.result.extent_bytes <= case.budget
    if len(case.network.operators) <= combined.MOST_OPERATORS:
        assert made.result.status == "optimal"


def test_small_networks_are_optimal_addresses_included() -> None:
    compared = 0
    for seed in range(400):
        case = random_case(Random(seed), 5, sizes=SMALL_SIZES)
        if case.budget > 14:  # the reference tries every address
            continue
        result = plan(case.network, case.chip, case.budget).result
        least = addresses.least_traffic(case.network, case.budget, case.alignment)
        assert (result.status, result.traffic_bytes) == ("optimal", least)
        compared += 1
    assert compared > 100


def test_the_combined_model_alone_is_exact() -> None:
    compared = 0
    for seed in range(1000, 1060):
        case = random_case(Random(seed), 4, sizes=SMALL_SIZES)
        if case.budget > 12:
            continue
        problem = Problem.of(case.network, case.alignment)
        least = addresses.least_traffic(case.network, case.budget, case.alignment)
        solution, bound = combined.solve(
            problem, case.budget, case.alignment, at_least=0, below=1 << 40, time_limit=None
        )
        assert solution is not None
        assert (solution.traffic, bound) == (least, least)
        assert combined.solve(
            problem, case.budget, case.alignment, at_least=0, below=bound, time_limit=None
        ) == (None, bound)
        compared += 1
    assert compared > 15


def test_a_budget_too_small_is_refused_with_the_reason() -> None:
    network = network_of({"x": 3, "a": 4, "b": 4, "y": 1}, ["x -> a", "x -> b + 2", "a b -> y"], "y")
    with pytest.raises(Infeasible) as refusal:
        plan(network, GENERIC, 8)
    assert (refusal.value.needs, refusal.value.has) == (9, 8)
    assert refusal.value.operator == network.operators[1].name
    assert {"x", "b"} <= {name for name, _ in refusal.value.tensors}


def test_the_same_network_fits_with_its_weights_streamed_only() -> None:
    network = network_of({"x": 3, "y": 1}, ["x -> y"], "y")
    heavy = replace(network, operators=tuple(replace(op, weight_bytes=10) for op in network.operators))
    assert plan(heavy, GENERIC, 4).result.weight_bytes == 10
    with pytest.raises(Infeasible):
        plan(heavy, GENERIC, 13, PlacementOptions(weights="resident"))
    assert plan(heavy, GENERIC, 14, PlacementOptions(weights="resident")).result.peak_bytes == 14


@given(cases(7))
@settings(max_examples=60, deadline=None)
def test_fixing_the_order_never_helps(case: Case) -> None:
    free, given_, peak = (
        plan(case.network, case.chip, case.budget, PlacementOptions(order=order)).result
        for order in ("free", "given", "minpeak")
    )
    if free.status == "optimal":
        assert free.traffic_bytes <= min(given_.traffic_bytes, peak.traffic_bytes)


def test_a_plan_out_of_time_is_legal_and_says_so(shared: Path) -> None:
    network = read_network(shared / "bench/networks/nasnetalarge.fused.json")
    made = plan(network, GENERIC, 2_496_960, PlacementOptions(time_limit=0.0))
    assert check(made).status == "feasible"
    assert made.result.lower_bound_bytes <= 7_231_200 <= made.result.traffic_bytes


def test_a_known_network_is_planned_to_its_optimum(shared: Path) -> None:
    network = read_network(shared / "bench/networks/densenet121.fused.json")
    result = plan(network, GENERIC, 1_605_632).result
    assert (result.status, result.traffic_bytes) == ("optimal", 401_408)
