"""Placement from end to end: legal, optimal addresses included, honest when it is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings

from large_cases import with_campaign
from onchip.base.errors import Infeasible
from onchip.check import check
from onchip.machines.chip import Chip
from onchip.network.json import read_network
from onchip.planners.placement import (
    PlacementOptions,
    Problem,
    budgets,
    combined,
    minimum_peak,
    minimum_traffic,
    plan,
)
from oracles import addresses
from strategies import SMALL_SIZES, Case, cases, network_of, random_case

GENERIC = Chip("generic", 1)

KNOWN: dict[str, dict[tuple[str, str], tuple[int, int]]] = {
    "amoebanet_d": {
        ("fused", "streamed"): (2_107_392, 1_204_224),
        ("fused", "resident"): (2_107_392, 1_605_632),
        ("op", "streamed"): (3_110_912, 2_107_392),
        ("op", "resident"): (2_107_392, 1_605_632),
    },
    "darts": {},
    "deeplabv3_mobilenet_v3_large": {
        ("fused", "resident"): (200_704, 100_352),
        ("op", "resident"): (200_704, 100_352),
    },
    "deeplabv3_resnet50": {
        ("fused", "resident"): (802_816, 401_408),
        ("op", "resident"): (802_816, 401_408),
    },
    "densenet121": {
        ("fused", "streamed"): (401_408, 200_704),
        ("fused", "resident"): (702_464, 401_408),
        ("op", "streamed"): (1_204_224, 602_112),
        ("op", "resident"): (1_204_224, 602_112),
    },
    "fcn_resnet50": {},
    "googlenet": {},
    "inception_v3": {},
    "lraspp_mobilenet_v3_large": {},
    "nasnetalarge": {
        ("fused", "streamed"): (7_231_200, 4_731_264),
        ("op", "streamed"): (7_231_200, 4_731_264),
    },
    "pnasnet5large": {
        ("fused", "streamed"): (7_438_176, 3_887_136),
        ("op", "streamed"): (7_438_176, 3_887_136),
    },
    "r2plus1d_18": {
        ("fused", "streamed"): (51_380_224, 51_380_224),
        ("fused", "resident"): (51_380_224, 51_380_224),
        ("op", "streamed"): (51_380_224, 51_380_224),
        ("op", "resident"): (51_380_224, 51_380_224),
    },
    "resnet50": {
        ("fused", "resident"): (602_112, 200_704),
        ("op", "resident"): (602_112, 200_704),
    },
    "resnext50_32x4d": {
        ("op", "resident"): (4_816_896, 4_816_896),
    },
    "s3d": {},
    "transformer": {
        ("fused", "streamed"): (4_915_200, 3_932_160),
        ("fused", "resident"): (4_915_200, 3_932_160),
        ("op", "streamed"): (4_915_200, 3_932_160),
        ("op", "resident"): (4_915_200, 3_932_160),
    },
    "vit_b_16": {
        ("fused", "streamed"): (3_631_104, 3_631_104),
        ("fused", "resident"): (3_631_104, 3_631_104),
        ("op", "streamed"): (3_631_104, 3_631_104),
        ("op", "resident"): (3_631_104, 3_631_104),
    },
}
"""Optimal traffic in bytes at (MR, MH) of the reference networks; what is absent is 0, as is all at MP."""


@pytest.mark.thorough
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


@pytest.mark.thorough
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


@pytest.mark.thorough
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


def test_a_cheapest_schedule_that_does_not_pack_is_not_called_optimal() -> None:
    rng = Random(0.07034236796057147)
    case = random_case(
        rng, 22, min_operators=14, views=False, sizes=("uniform", "mixture", "like r2", "powers")
    )
    problem = Problem.of(case.network, case.alignment)
    budget = minimum_peak(problem).value
    made = plan(case.network, case.chip, budget)
    assert check(made).lower_bound_bytes == minimum_traffic(problem, budget).value == 0
    assert made.result.status == ("optimal" if made.result.traffic_bytes == 0 else "feasible")


@pytest.mark.slow
@pytest.mark.parametrize("granularity", ["fused", "op"])
@pytest.mark.parametrize("weights", ["streamed", "resident"])
@pytest.mark.parametrize("name", with_campaign(sorted(KNOWN), ["nasnetalarge", "pnasnet5large"]))
def test_known_values(shared: Path, name: str, weights: str, granularity: str) -> None:
    """Every reference network at MR, MH and MP is planned to its proved optimum, addresses included."""
    if (name, weights, granularity) == ("pnasnet5large", "streamed", "op"):
        pytest.skip("half a minute: benchmarks/placement_known_values.py")
    network = read_network(shared / f"bench/networks/{name}.{granularity}.json")
    sizes = budgets(network.with_resident_weights() if weights == "resident" else network, GENERIC)
    options = PlacementOptions(weights="resident" if weights == "resident" else "streamed")
    assert sizes.mp_complete
    for budget, value in zip(
        (sizes.mr, sizes.mh, sizes.mp), (*KNOWN[name].get((granularity, weights), (0, 0)), 0), strict=True
    ):
        result = plan(network, GENERIC, budget, options).result
        assert (result.status, result.traffic_bytes) == ("optimal", value)
