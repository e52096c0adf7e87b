"""Peak, latency and energy: legal, never worse than without, never below the bound, and the oracle agrees."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onchip
from onchip.base.errors import ChipError, NeedsTraffic, UsageError
from onchip.check import Clock, check, plan_chip_of
from onchip.machines.chip import Chip, Rates
from onchip.network import Network
from onchip.planners.placement import PlacementOptions, Problem, minimum_peak, plan
from onchip.planners.placement.objectives.bounds import latency_bound
from onchip.planners.placement.objectives.stays import Stays
from oracles import addresses, latencies
from strategies import SMALL_SIZES, Case, cases, network_of, random_case

Weights = st.sampled_from(("streamed", "resident"))


def working(network: Network, rng: Random) -> Network:
    """The network with work to do."""
    most = rng.choice((0, 10, 1000))
    return replace(
        network, operators=tuple(replace(op, macs=rng.randint(0, most)) for op in network.operators)
    )


def rated(rng: Random, alignment: int = 1) -> Chip:
    rates = Rates(
        dram_bytes_per_second=rng.choice((1.0, 3.0, 50.0)),
        dram_picojoules_per_byte=rng.choice((0.5, 160.0)),
        macs_per_second=rng.choice((1.0, 10.0, 1000.0)),
        scratchpad_bytes_per_second=rng.choice((None, 10.0)),
        mac_picojoules=rng.choice((None, 1.0)),
    )
    return Chip("test", alignment, rates=rates)


# -- latency ----------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("in_place", [False, True])
@given(st.randoms(use_true_random=False), Weights)
@settings(max_examples=40, deadline=None)
def test_prefetching_only_helps_and_never_beats_the_bound(in_place: bool, rng: Random, weights: str) -> None:
    case = random_case(rng, 9, in_place=in_place)
    network, chip = working(case.network, rng), rated(rng, case.alignment)
    budget = case.budget + (rng.choice((0, 10, 1000)))
    sized = network.with_resident_weights() if weights == "resident" else network
    budget = max(budget, Problem.of(sized, case.alignment, in_place=in_place).minimum_budget)
    options = PlacementOptions(weights="resident" if weights == "resident" else "streamed", in_place=in_place)
    before = plan(network, chip, budget, options)
    after = plan(network, chip, budget, replace(options, objective="latency"))
    assert check(after) == after.result
    fast, slow = after.result.latency_picoseconds, before.result.latency_picoseconds
    bound = after.result.latency_lower_bound_picoseconds
    assert fast is not None
    assert slow is not None
    assert bound is not None
    assert bound <= fast <= slow
    assert after.result.extent_bytes <= budget
    assert (after.result.status == "optimal") == (fast == bound)
    assert before.result.latency_lower_bound_picoseconds is not None
    assert before.result.latency_lower_bound_picoseconds <= fast


@pytest.mark.thorough
def test_small_networks_against_every_program_there_is() -> None:
    compared = reached = 0
    for seed in range(60):
        rng = Random(seed)
        case = random_case(rng, 3, sizes=SMALL_SIZES)
        if case.budget > 6 or len(case.network.tensors) > 5:
            continue
        network, chip = working(case.network, rng), rated(rng)
        budget = max(case.budget, Problem.of(network).minimum_budget)
        made = plan(network, chip, budget, PlacementOptions(objective="latency")).result
        clock = Clock(network, plan_chip_of(chip))
        assert made.latency_picoseconds is not None
        least = latencies.least_latency(network, clock, budget, made.latency_picoseconds)
        assert made.latency_lower_bound_picoseconds is not None
        assert made.latency_lower_bound_picoseconds <= least <= made.latency_picoseconds, seed
        compared += 1
        reached += least == made.latency_picoseconds
    assert compared > 15
    assert reached > 0.8 * compared


def test_a_copy_is_hidden_behind_a_run_that_does_not_need_it() -> None:
    """Two inputs, the second needed by the second operator only: its load goes on during the first."""
    network = network_of({"x": 4, "a": 1, "w": 4, "y": 1}, ["x -> a", "a w -> y"], "y")
    network = replace(network, operators=tuple(replace(op, macs=6) for op in network.operators))
    chip = Chip("c", 1, rates=Rates(dram_bytes_per_second=1.0, macs_per_second=1.0))
    late = plan(network, chip, 10).result
    early = plan(network, chip, 10, PlacementOptions(objective="latency")).result
    second = 10**12
    assert late.latency_picoseconds == (4 + 6 + 4 + 6 + 1) * second  # packed low: over the first input
    assert (early.status, early.latency_picoseconds) == ("optimal", (4 + 6 + 6 + 1) * second)
    # With bytes for one input at a time, the second can only come when the first has gone.
    tight = plan(network, chip, 6, PlacementOptions(objective="latency")).result
    assert tight.latency_picoseconds == (4 + 6 + 4 + 6 + 1) * second


def test_weights_are_fetched_ahead_where_there_is_room() -> None:
    network = network_of({"x": 1, "a": 1, "b": 1, "y": 1}, ["x -> a", "a -> b", "b -> y"], "y")
    network = replace(
        network, operators=tuple(replace(op, macs=5, weight_bytes=5) for op in network.operators)
    )
    chip = Chip("c", 1, rates=Rates(dram_bytes_per_second=1.0, macs_per_second=1.0))
    options = PlacementOptions(weights="resident", objective="latency")
    second = 10**12
    roomy, tight = plan(network, chip, 20, options).result, plan(network, chip, 7, options).result
    assert (roomy.status, roomy.latency_picoseconds) == ("optimal", (1 + 5 + 5 + 5 + 5 + 1) * second)
    assert (tight.status, tight.latency_picoseconds) == ("optimal", (1 + 3 * (5 + 5) + 1) * second)


@pytest.mark.thorough
@given(cases(8), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_stays_give_a_program_back_as_it_was_timed(case: Case, rng: Random) -> None:
    network, chip = working(case.network, rng), rated(rng, case.alignment)
    made = plan(network, chip, case.budget)
    clock = Clock(made.network, made.chip)
    stays = Stays.of(made.program, clock)
    assert stays is not None
    still = (0,) * len(stays.stays)
    again = stays.program(still, stays.late, [s.address for s in stays.stays])
    assert sorted(map(repr, again)) == sorted(map(repr, made.program))
    assert max(stays.load(still, stays.late)) == made.result.peak_bytes


def test_a_chip_without_rates_says_what_it_lacks() -> None:
    network = network_of({"x": 1, "y": 1}, ["x -> y"], "y")
    for objective, key in (("latency", "dram_bytes_per_second"), ("energy", "dram_picojoules_per_byte")):
        with pytest.raises(ChipError, match=key):
            plan(network, Chip("c", 1), 2, PlacementOptions(objective=objective))  # type: ignore[arg-type]
    with pytest.raises(ChipError, match="macs_per_second"):
        plan(
            network,
            Chip("c", 1, rates=Rates(dram_bytes_per_second=1.0)),
            2,
            PlacementOptions(objective="latency"),
        )


# -- peak -------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("in_place", [False, True])
@given(st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_least_scratchpad_needs_no_traffic_and_no_budget(in_place: bool, rng: Random) -> None:
    case = random_case(rng, 8, in_place=in_place)
    made = plan(case.network, case.chip, None, PlacementOptions(objective="peak", in_place=in_place))
    result = check(made)
    assert result == made.result
    assert (result.traffic_bytes, made.budget) == (0, result.extent_bytes)
    problem = Problem.of(case.network, case.alignment, in_place=in_place)
    assert result.peak_lower_bound_bytes == minimum_peak(problem).value
    assert (result.status == "optimal") == (result.extent_bytes == result.peak_lower_bound_bytes)


@pytest.mark.thorough
def test_small_scratchpads_are_least_addresses_included() -> None:
    compared = 0
    for seed in range(200):
        case = random_case(Random(seed), 4, sizes=SMALL_SIZES)
        made = plan(case.network, case.chip, None, PlacementOptions(objective="peak")).result
        if made.extent_bytes > 12:
            continue
        assert addresses.least_traffic(case.network, made.extent_bytes, case.alignment) == 0
        if made.status == "optimal" and made.extent_bytes - case.alignment >= case.budget:
            below = made.extent_bytes - case.alignment
            assert addresses.least_traffic(case.network, below, case.alignment) > 0
        compared += 1
    assert compared > 50


def test_a_budget_that_forces_traffic_is_refused_for_peak() -> None:
    network = network_of({"x": 5, "a": 5, "b": 5, "y": 1}, ["x -> a", "x -> b", "a b -> y"], "y")
    with pytest.raises(NeedsTraffic) as refusal:
        plan(network, Chip("c", 1), 14, PlacementOptions(objective="peak"))
    assert (refusal.value.needs, refusal.value.has) == (15, 14)
    with pytest.raises(UsageError):
        plan(network, Chip("c", 1), None)


# -- energy -----------------------------------------------------------------------------------------------


@pytest.mark.thorough
@given(cases(7), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_least_traffic_has_the_least_energy(case: Case, rng: Random) -> None:
    network, chip = working(case.network, rng), rated(rng, case.alignment)
    made = plan(network, chip, case.budget, PlacementOptions(objective="energy")).result
    least = plan(network, chip, case.budget).result
    assert made.energy_picojoules == least.energy_picojoules
    assert made.traffic_bytes == least.traffic_bytes
    assert made.energy_lower_bound_picojoules is not None
    assert made.energy_picojoules is not None
    assert made.energy_lower_bound_picojoules <= made.energy_picojoules
    if least.status == "optimal":
        assert made.status == "optimal"
        assert made.energy_lower_bound_picojoules == made.energy_picojoules


def test_the_bound_counts_weights_that_find_no_room() -> None:
    network = network_of({"x": 1, "a": 1, "y": 1}, ["x -> a", "a -> y"], "y")
    network = replace(
        network, operators=tuple(replace(op, macs=5, weight_bytes=5) for op in network.operators)
    ).with_resident_weights()
    chip = plan_chip_of(Chip("c", 1, rates=Rates(dram_bytes_per_second=1.0, macs_per_second=1.0)))
    clock = Clock(network, chip, weights_resident=True)
    problem = Problem.of(network)
    assert latency_bound(clock, problem, 7, 0) == (1 + 5 + 5 + 5 + 5 + 1) * 10**12
    assert latency_bound(clock, problem, 12, 0) == (1 + 5 + 5 + 5 + 1) * 10**12


@pytest.mark.slow
def test_a_prefetched_plan_of_a_real_network_is_executed_bit_for_bit() -> None:
    chip = Chip("edge", 64, rates=Rates(dram_bytes_per_second=6.4e9, macs_per_second=1e12))
    made = onchip.plan("zoo:squeezenet1_0", chip, "MR", weights="resident", objective="latency")
    late = onchip.plan("zoo:squeezenet1_0", chip, "MR", weights="resident")
    assert made.result.latency_picoseconds is not None
    assert late.result.latency_picoseconds is not None
    assert made.result.latency_picoseconds < late.result.latency_picoseconds
    made.run()  # raises Mismatch where a tensor differs
