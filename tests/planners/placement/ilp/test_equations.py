"""The literal equations: what they say, what they forbid, and Figure 1 of the paper."""

from __future__ import annotations

from onchip.network import Network
from onchip.planners.limits import Limits
from onchip.planners.placement import Problem
from onchip.planners.placement.ilp import AS_PRINTED, SENSIBLE, Reading, minimum_traffic
from onchip.planners.placement.ilp.formulation import Formulation, least_traffic
from onchip.planners.placement.ilp.solvers import Outcome, minimise
from strategies import network_of


def solved(problem: Problem, budget: int, reading: Reading = SENSIBLE) -> tuple[Formulation, Outcome]:
    formulation = least_traffic(problem, budget, reading)
    return formulation, minimise(formulation.model, "cp-sat", Limits())


# -- Figure 1 ------------------------------------------------------------------------------------------------

FIGURE_1 = network_of(
    {"a0": 1, "a1": 2, "a2": 4, "a3": 4, "a4": 4, "a5": 2, "a6": 1},
    ["-> a1 a2", "a1 -> a3", "a2 a0 -> a4", "a3 a0 -> a5", "a4 a5 -> a6"],
    "a6",
)
"""Figure 1 as far as the text tells it.

Node 1 makes a1 and a2; a1 is read by node 2, which makes a3; a2 is read by node 3 and not again; a0 is read
by both operators whose outputs node 5 makes a6 of; a2, a3 and a4 leave and come back. Its sizes are in the
picture alone: these make room for two large tensors, not for three.
"""

FIGURE_1_BUDGET = 9


def at_time(network: Network, name: str, t: int) -> tuple[int, int]:
    """(item, step) of a tensor at the paper's time, which counts from 1."""
    return network.tensor_id[name], t - 1


def test_figure_1_is_what_the_text_says() -> None:
    network = FIGURE_1
    problem = Problem.of(network).in_order(range(5))
    formulation, outcome = solved(problem, FIGURE_1_BUDGET)
    made, values = formulation.actions, outcome.values
    assert values is not None
    assert [item.tensor for item in formulation.lifetimes.items] == list(range(7))

    def actions_of(name: str) -> set[tuple[str, int]]:
        kinds = {"C": made.create, "P": made.preserve, "S": made.spill, "R": made.retrieve}
        return {
            (letter, t + 1)
            for letter, kind in kinds.items()
            for (i, t), x in kind.items()
            if i == network.tensor_id[name] and values[x]
        }

    assert actions_of("a2") == {("C", 1), ("S", 2), ("R", 3)}  # "and all other variables for a2 are 0"
    left = {name for name in network.tensor_id if any(letter == "R" for letter, _ in actions_of(name))}
    assert left == {"a2", "a3", "a4"}
    assert actions_of("a1") == {("C", 1), ("P", 2)}

    assert formulation.memory is not None
    low, high = (values[formulation.memory.address[at_time(network, name, 1)]] for name in ("a1", "a2"))
    assert low + 2 <= high or high + 4 <= low  # a1 and a2 share step 1 and no byte
    was, is_ = (values[formulation.memory.address[at_time(network, "a1", t)]] for t in (1, 2))
    assert was == is_  # V[a1, 2] = 1
    a0, a6 = (formulation.lifetimes.items[network.tensor_id[name]] for name in ("a0", "a6"))
    assert formulation.lifetimes.never_meet(a0, a6)  # III-F


def test_figure_1_costs_three_round_trips_and_less_with_more_room() -> None:
    problem = Problem.of(FIGURE_1).in_order(range(5))
    assert minimum_traffic(problem, FIGURE_1_BUDGET).value == 2 * (4 + 4 + 4)
    assert minimum_traffic(problem, FIGURE_1_BUDGET + 4).value == 0


# -- errata: each switch changes the optimum of a small network ----------------------------------------------


def test_eq_12_as_printed_charges_the_first_spill_of_an_input() -> None:
    network = network_of({"x": 3, "a": 3, "b": 3, "y": 1}, ["x -> a", "a -> b", "x b -> y"], "y")
    problem = Problem.of(network)
    assert minimum_traffic(problem, 7).value == 3  # x is read again
    assert minimum_traffic(problem, 7, Reading(inputs="literal")).value == 6


def test_eq_12_as_printed_charges_an_outputs_write_again() -> None:
    network = network_of(
        {"x": 1, "a": 3, "b": 3, "c": 3, "y": 1}, ["x -> a", "a -> b", "b -> c", "a c -> y"], "a y"
    )
    problem = Problem.of(network)
    assert minimum_traffic(problem, 7).value == 3
    assert minimum_traffic(problem, 7, Reading(outputs_written=False)).value == 6


def test_eq_1_as_printed_lets_no_tensor_move_between_two_operators_that_need_it() -> None:
    # a, b and c overlap like stairs, each read at every step of its life; what is made beside them leaves no
    # other byte. The order is free, as in eq. 1-12.
    network = network_of(
        {"a": 10, "b": 10, "c": 10, "d": 30, "k": 1, "e": 20, "w1": 41, "w2": 31, "w3": 21, "w5": 20},
        ["-> a w1", "a -> b w2", "a b -> c w3", "b c -> d k", "c k -> e w5"],
        "d e",
    )
    problem = Problem.of(network)
    assert problem.minimum_budget == 51
    assert minimum_traffic(problem, 51).value == 20  # one of them is spilled and retrieved at the same step
    assert minimum_traffic(problem, 51, Reading(relocations=False)).infeasible
    assert minimum_traffic(problem, 61, Reading(relocations=False)).value == 0


def test_eq_5_as_printed_lets_nothing_run_first() -> None:
    network = network_of({"x": 1, "y": 1}, ["x -> y"], "y")
    formulation = least_traffic(Problem.of(network), 9)
    assert minimise(formulation.model, "cp-sat", Limits()).optimal
    made = formulation.actions
    # C[y, t] <= P[x, t] + R[x, t], where x can be created at t at the earliest.
    here = [(x, 1) for x in (made.create[at_time(network, "x", 1)], made.operator[0, 0])]
    formulation.model.at_most("5 as printed", here, 1)
    assert minimise(formulation.model, "cp-sat", Limits()).infeasible


def test_everything_fits_as_printed_where_it_fits_at_all() -> None:
    network = network_of({"x": 1, "a": 2, "y": 1}, ["x -> a", "a x -> y"], "y")
    assert minimum_traffic(Problem.of(network), 4, AS_PRINTED).value == 0
