"""Every scheme's plan is legal and no better than the optimum; runtimes' planners never overlap two lives."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.check import check
from onchip.comparison.baselines import SCHEMES, DoesNotFit, solve
from onchip.comparison.baselines.whole_life import executorch, extent, lives, tflm
from onchip.machines.chip import Chip, load_chip
from onchip.network import Network, OperatorSpec
from onchip.network.json import read_network
from onchip.planners.packing import Buffer, fault, max_load
from onchip.planners.placement import Problem, budgets, minimum_traffic, plan
from onchip.plans import Run
from oracles.states import least_traffic
from planners.packing.instances import small_instances
from strategies import Case, cases, network_of

ARENA = [name for name in SCHEMES if name not in ("tflm", "executorch")]
STATIC = ("tflm", "executorch")


@pytest.mark.thorough
@pytest.mark.parametrize("name", ARENA)
@settings(max_examples=40)
@given(case=cases(max_operators=7), weights=st.sampled_from(("streamed", "resident")))
def test_a_scheme_is_legal_and_no_better_than_the_optimum(name: str, case: Case, weights: str) -> None:
    network = case.network if weights == "streamed" else case.network.with_resident_weights()
    problem = Problem.of(network, case.alignment)
    budget = max(case.budget, problem.minimum_budget)
    made = solve(name, case.network, case.chip, budget, weights=weights)  # type: ignore[arg-type]
    assert not isinstance(made, DoesNotFit)
    assert check(made) == made.result
    ran = tuple(network.operator_id[i.operator] for i in made.program if isinstance(i, Run))
    assert made.result.traffic_bytes >= minimum_traffic(problem.in_order(ran), budget).value
    if SCHEMES[name].order == "given":
        assert ran == network.order


@pytest.mark.thorough
@settings(max_examples=30)
@given(case=cases(max_operators=4))
def test_schemes_are_no_better_than_the_oracle_without_pruning(case: Case) -> None:
    least = least_traffic(case.network, case.budget, case.alignment)
    assert least is not None
    for name in ARENA:
        made = solve(name, case.network, case.chip, case.budget, bound=least)
        assert not isinstance(made, DoesNotFit)
        assert made.result.traffic_bytes >= least
        assert (made.result.status == "optimal") == (made.result.traffic_bytes == least)


@pytest.mark.thorough
@pytest.mark.parametrize("name", STATIC)
@settings(max_examples=40)
@given(case=cases(max_operators=8))
def test_a_runtime_s_plan_has_no_traffic_or_says_what_it_needs(name: str, case: Case) -> None:
    got = solve(name, case.network, case.chip, case.budget)
    if isinstance(got, DoesNotFit):
        assert got.needs > case.budget
        needs = got.needs
    else:
        assert check(got) == got.result
        assert got.result.traffic_bytes == 0
        assert got.result.status == "optimal"
        needs = got.result.extent_bytes
    with_room = solve(name, case.network, case.chip, needs)
    assert not isinstance(with_room, DoesNotFit)
    assert with_room.result.extent_bytes == needs
    if needs > Problem.of(case.network, case.alignment).minimum_budget:
        assert isinstance(solve(name, case.network, case.chip, needs - 1), DoesNotFit)


@pytest.mark.parametrize("planner", [tflm, executorch])
@given(instance=small_instances())
def test_offsets_of_runtimes_never_overlap(planner: object, instance: tuple[list[Buffer], int]) -> None:
    buffers, _ = instance
    offsets = planner(buffers)  # type: ignore[operator]
    needs = extent(buffers, offsets)
    assert fault(buffers, offsets, needs) is None
    assert needs >= max_load(buffers)


def test_tflm_by_hand() -> None:
    # Largest first: 8 at 0; 6 lives with it: above; 5 lives with the 6 only: below; 4 with the 5 and the 6.
    buffers = [Buffer(0, 2, 8), Buffer(1, 4, 6), Buffer(2, 4, 5), Buffer(3, 5, 4)]
    assert tflm(buffers) == (0, 8, 0, 14)
    # Of equals the one that was added last is placed first.
    assert tflm([Buffer(0, 1, 3), Buffer(0, 1, 3)]) == (3, 0)


def test_executorch_by_hand() -> None:
    # 8 founds an object. 6 lives with it and has no room behind: another. 5 finds the first empty: offset 0;
    # 3 lives with the 5 and fits behind it in the first object.
    buffers = [Buffer(0, 2, 8), Buffer(1, 4, 6), Buffer(2, 4, 5), Buffer(3, 5, 3)]
    assert executorch(buffers) == (0, 8, 0, 5)


def test_runtimes_hold_inputs_from_the_beginning_and_outputs_until_the_end() -> None:
    network = network_of(
        {"x": 1, "y": 2, "a": 3, "b": 4, "c": 5}, ["x -> a", "a y -> b", "b -> c + 7"], "a c"
    )
    buffers, items = lives(Problem.of(network), network.order)
    life = dict(zip(items, ((b.lower, b.upper, b.size) for b in buffers), strict=True))
    named = {network.tensors[i].name: v for i, v in life.items() if i < 5}
    assert named == {"x": (0, 1, 1), "y": (0, 2, 2), "a": (0, 3, 3), "b": (1, 3, 4), "c": (2, 3, 5)}
    assert life[5 + 2] == (2, 3, 7)


def test_fragmentation_costs_traffic() -> None:
    """There are bytes enough at every step, but in two places: b has to leave and come back elsewhere."""
    network = network_of({"x": 2, "a": 4, "b": 2, "c": 6}, ["x -> a", "a -> b", "b -> c"], "c")
    chip = load_chip("generic")
    assert plan(network, chip, 8).result.traffic_bytes == 0
    for name in ARENA:
        assert traffic(name, network, 8) == 2 * 2


def test_belady_evicts_the_furthest_even_where_another_would_have_cost_less() -> None:
    # For s (2 bytes) either p (4 bytes, read last) or q (2 bytes, read before) has to leave.
    network = network_of(
        {"x": 1, "p": 4, "q": 2, "r": 1, "s": 2, "t": 1, "u": 1, "v": 1},
        ["x -> p", "x -> q", "x -> r", "r -> s", "s -> t", "q t -> u", "p u -> v"],
        "v",
    )
    assert traffic("given-belady", network, 8) == 2 * 4
    assert traffic("given-greedy", network, 8) == 2 * 2


def traffic(name: str, network: Network, budget: int) -> int:
    made = solve(name, network, load_chip("generic"), budget)
    assert not isinstance(made, DoesNotFit)
    return made.result.traffic_bytes


def test_weights_with_a_scratchpad_of_their_own_take_no_room_from_tensors() -> None:
    network = Network.build(
        "n",
        [("x", 4, "input"), ("y", 4, "activation")],
        [OperatorSpec("op", "Conv", ["x"], ["y"], weight_bytes=100)],
        ["y"],
    )
    chip = Chip("two", 1, weight_scratchpad_bytes=128)
    for name in SCHEMES:
        made = solve(name, network, chip, 8, weights="resident")
        assert not isinstance(made, DoesNotFit)
        assert check(made) == made.result


def test_a_budget_that_nothing_fits_is_refused() -> None:
    network = network_of({"x": 2, "y": 2}, ["x -> y"], "y")
    with pytest.raises(ValueError, match="below"):
        solve("tflm", network, load_chip("generic"), 3)


@pytest.mark.slow
@pytest.mark.parametrize("network", ["densenet121.op", "transformer.fused", "nasnetalarge.fused"])
def test_schemes_on_real_networks(shared: Path, network: str) -> None:
    net = read_network(shared / "bench/networks" / f"{network}.json")
    chip = load_chip("generic")
    sizes = budgets(net, chip)
    for budget in (sizes.mr, sizes.mh, sizes.mp):
        best = minimum_traffic(Problem.of(net), budget).value
        for name in ARENA:
            made = solve(name, net, chip, budget, bound=best)
            assert not isinstance(made, DoesNotFit)
            assert check(made) == made.result
            assert made.result.extent_bytes <= budget
