"""Strategy `ilp`: the exact search's optimum, legal plans, honest answers when it is cut short."""

from __future__ import annotations

import os
import pickle
import signal
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip import api
from onchip.base.errors import Infeasible, UsageError
from onchip.check import check
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.network.json import read_network
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions, Problem, ilp, minimum_traffic, plan
from onchip.planners.placement import minimum_peak as exact_peak
from onchip.planners.placement.ilp.formulation import least_traffic
from onchip.planners.placement.ilp.rows import Model
from onchip.planners.placement.ilp.solvers import Outcome, Solver, math_opt, minimise
from onchip.planners.placement.ilp.solvers.outcome import MATH_OPT
from oracles import addresses
from run.models import source
from strategies import SMALL_SIZES, Case, cases, network_of, random_case, random_tight_case

GENERIC = Chip("generic", 1)
CONTENDED = network_of(
    {"x": 3, "a": 3, "b": 2, "c": 2, "d": 4, "y": 1},
    ["x -> a", "a -> b", "a -> c", "b c -> d", "d a -> y"],
    "y",
)
"""A network that spills at its minimum budget."""


def resident(network: Network) -> Network:
    """The same network with some weights, held while their operator runs."""
    heavy = tuple(replace(op, weight_bytes=op.weight_bytes or 1 + op.id % 3) for op in network.operators)
    return replace(network, operators=heavy)


@pytest.mark.thorough
@given(
    cases(6),
    st.sampled_from(("free", "given", "minpeak")),
    st.sampled_from(("streamed", "resident")),
)
@settings(max_examples=40)
def test_the_ilp_and_the_search_agree(
    case: Case, order: Literal["free", "given", "minpeak"], weights: Literal["streamed", "resident"]
) -> None:
    network, budget = case.network, case.budget
    if weights == "resident":
        network = resident(network)
        budget += 3 * case.alignment + max(op.weight_bytes for op in network.operators)
    options = PlacementOptions(order=order, weights=weights)
    made = plan(network, case.chip, budget, replace(options, strategy="ilp"))
    assert check(made) == made.result
    exact = plan(network, case.chip, budget, options).result
    assert made.result.status == exact.status == "optimal"
    assert made.result.traffic_bytes == exact.traffic_bytes


def compared(seeds: range) -> int:
    """Tight cases in which the ILP's optimum was found to be that of trying every address."""
    count = 0
    for seed in seeds:
        rng = Random(seed)
        case = random_tight_case(rng) if seed % 2 else random_case(rng, 5, sizes=SMALL_SIZES)
        if case.budget > 14 * case.alignment:
            continue
        try:
            least = addresses.least_traffic(case.network, case.budget, case.alignment)
        except addresses.Undecided:
            continue
        found = ilp.minimum_traffic(Problem.of(case.network, case.alignment), case.budget)
        assert (found.value, found.bound) == (least, least), f"seed {seed}"
        count += 1
    return count


def test_the_ilp_equals_exhaustive_placement() -> None:
    assert compared(range(12)) >= 8


@pytest.mark.slow
def test_the_ilp_equals_exhaustive_placement_on_many() -> None:
    assert compared(range(1000, 1060)) > 45


@pytest.mark.slow
def test_implied_rows_change_no_optimum() -> None:
    for seed in range(30):
        case = random_case(Random(seed), 5)
        problem = Problem.of(case.network, case.alignment)
        found = set()
        for implied in (True, False):
            formulation = least_traffic(problem, case.budget, implied=implied)
            outcome = minimise(formulation.model, "cp-sat", Limits())
            assert outcome.optimal
            found.add(outcome.bound)
        assert len(found) == 1


@pytest.mark.parametrize("solver", MATH_OPT)
def test_the_solvers_agree(solver: Literal["highs", "scip"]) -> None:
    for seed in range(6):
        case = random_case(Random(seed), 4)
        formulation = least_traffic(Problem.of(case.network, case.alignment), case.budget)
        other = math_opt.minimise(formulation.model, solver, None)
        default = minimise(formulation.model, "cp-sat", Limits())
        assert other.optimal
        assert default.optimal
        assert other.bound == default.bound


@pytest.mark.thorough
@pytest.mark.parametrize("solver", ["cp-sat", "highs", "scip"])
def test_every_solver_plans(solver: Solver) -> None:
    made = plan(CONTENDED, GENERIC, 8, PlacementOptions(strategy="ilp", solver=solver))
    assert check(made) == made.result
    best = plan(CONTENDED, GENERIC, 8).result.traffic_bytes
    assert (made.result.status, made.result.traffic_bytes) == ("optimal", best)
    assert best > 0
    assert made.options["solver"] == solver


@pytest.mark.thorough
def test_a_model_larger_than_a_pipe_reaches_the_other_process() -> None:
    model = Model()
    for _ in range(4_000):
        x = model.variable("x")
        model.at_most("at least 1", [(x, -1)], -1)
        model.objective.append((x, 1))
    assert len(pickle.dumps(model)) > 1 << 17
    assert minimise(model, "scip", Limits()) == Outcome((1,) * 4_000, 4_000, optimal=True)


@pytest.mark.thorough
@given(cases(7))
@settings(max_examples=25)
def test_the_least_peak_is_the_searchs(case: Case) -> None:
    problem = Problem.of(case.network, case.alignment)
    found = ilp.minimum_peak(problem)
    assert found.value == found.bound == exact_peak(problem).value
    assert found.order is not None
    assert exact_peak(problem.in_order(found.order)).value == found.value


# -- inputs literal ------------------------------------------------------------------------------------------


@pytest.mark.thorough
@given(cases(5), st.sampled_from(("free", "given")))
@settings(max_examples=25)
def test_both_strategies_charge_inputs_alike(case: Case, order: Literal["free", "given"]) -> None:
    literal = PlacementOptions(order=order, inputs="literal")
    exact, program = (
        plan(case.network, case.chip, case.budget, replace(literal, strategy=strategy))
        for strategy in ("exact", "ilp")
    )
    plain = plan(case.network, case.chip, case.budget, PlacementOptions(order=order)).result
    for made in (exact, program):
        assert check(made) == made.result
        assert made.result.lower_bound_bytes <= plain.traffic_bytes <= made.result.traffic_bytes
        assert int(str(made.options["literal_traffic_bytes"])) >= made.result.traffic_bytes
    assert exact.options["literal_traffic_bytes"] == program.options["literal_traffic_bytes"]


def test_a_charged_input_makes_another_tensor_leave() -> None:
    network = network_of(
        {"x": 3, "a": 2, "b": 4, "c": 1, "z": 1}, ["x -> a", "-> b", "b -> c", "x a c -> z"], "z"
    )
    sensible = plan(network, GENERIC, 8, PlacementOptions(order="given"))
    literal = plan(network, GENERIC, 8, PlacementOptions(order="given", inputs="literal"))
    assert sensible.result.traffic_bytes == 3
    assert literal.options["literal_traffic_bytes"] == 4
    assert literal.result.traffic_bytes == 4
    assert literal.result.status == "feasible"  # of the plan's own traffic the least is 3


@pytest.mark.parametrize("other", [{"strategy": "greedy"}, {"pin": ("x",)}, {"in_place": True}])
def test_literal_inputs_are_refused_where_nobody_charges_them(other: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="literal"):
        PlacementOptions(inputs="literal", **other)


# -- execution -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["residual", "concat", "views"])
def test_plans_execute(name: str, tmp_path: Path) -> None:
    made = api.plan(source(name, tmp_path), budget="MR", strategy="ilp")
    assert made.result.status == "optimal"
    made.run()


# -- when it cannot ------------------------------------------------------------------------------------------


def test_a_budget_too_small_is_infeasible() -> None:
    with pytest.raises(Infeasible):
        plan(CONTENDED, GENERIC, 7, PlacementOptions(strategy="ilp"))
    with pytest.raises(ValueError, match="below the minimum"):
        ilp.minimum_traffic(Problem.of(CONTENDED), 7)


@pytest.mark.thorough
@pytest.mark.parametrize("solver", ["cp-sat", "highs"])
def test_out_of_time_it_keeps_nothing_and_says_so(solver: Solver) -> None:
    made = plan(CONTENDED, GENERIC, 8, PlacementOptions(strategy="ilp", solver=solver, time_limit=0.0))
    assert check(made) == made.result
    assert made.result.lower_bound_bytes <= plan(CONTENDED, GENERIC, 8).result.traffic_bytes
    assert made.result.status == "feasible"


@pytest.mark.thorough
@pytest.mark.parametrize("solver", ["cp-sat", "scip"])
def test_a_cancelled_search_still_plans(solver: Solver) -> None:
    limits = Limits(cancelled=lambda: True)
    found = ilp.minimum_traffic(Problem.of(hard()), least(hard()), solver=solver, limits=limits)
    assert found.answer is None or found.value == found.answer.traffic
    assert not found.infeasible


@pytest.mark.thorough
def test_ctrl_c_ends_the_solver_and_not_the_program() -> None:
    pressed: list[str] = []

    def press(now: str) -> None:
        if not pressed:
            os.kill(os.getpid(), signal.SIGINT)
        pressed.append(now)

    options = PlacementOptions(strategy="ilp")
    made = plan(hard(), GENERIC, least(hard()), options, Limits(progress=press))
    assert check(made) == made.result
    assert pressed
    assert made.result.status == "feasible"


def test_a_network_too_large_is_refused_with_advice() -> None:
    wide = network_of(
        {"x": 1, **{f"a{i}": 1 for i in range(90)}, "y": 1},
        [*(f"x -> a{i}" for i in range(90)), " ".join(f"a{i}" for i in range(90)) + " -> y"],
        "y",
    )
    with pytest.raises(UsageError, match="`exact`"):
        plan(wide, GENERIC, 92, PlacementOptions(strategy="ilp"))


def hard() -> Network:
    """A network that keeps a solver busy for longer than a test waits."""
    return random_case(Random(7), 14, min_operators=14, sizes=("uniform",), views=False).network


def least(network: Network) -> int:
    return Problem.of(network).minimum_budget


def test_the_summary_prints_the_size_of_the_model() -> None:
    made = api.plan(CONTENDED, budget=8, strategy="ilp")
    found = made.options["ilp_variables"], made.options["ilp_constraints"]
    assert f"ILP: {found[0]:,} variables, {found[1]:,} constraints" in " ".join(str(made).split())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet50", "vit_b_16", "r2plus1d_18"])
def test_known_networks(shared: Path, name: str) -> None:
    problem = Problem.of(read_network(shared / f"bench/networks/{name}.fused.json"))
    budget = problem.minimum_budget
    assert ilp.minimum_traffic(problem, budget).value == minimum_traffic(problem, budget).value
