"""The contest's search against brute force, and what it claims of itself."""

from __future__ import annotations

import random
from math import inf
from pathlib import Path

import pytest

from onchip import _core
from onchip.base.errors import NegativeAnswer, UsageError
from onchip.contest import LAWS, Law, SolveOptions, read_problem, solve, verify
from onchip.contest.cost import Costs
from onchip.contest.covers import best_cover, candidates, least_cover
from onchip.contest.groups import sinks
from onchip.contest.statement import Group, statement_of
from onchip.contest.verify import price_step
from oracles.contest import graph, least_price, optimum, reused, tree
from oracles.contest_cases import SQUARE, problem, product, product_and_sum

ABOVE = 1 + 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_trees_are_solved_and_bounded(seed: int) -> None:
    given = tree(seed)
    found = solve(given)
    least = optimum(given, LAWS["ruled"], found.latency * ABOVE)
    assert found.bound <= least * ABOVE
    assert least <= found.latency * ABOVE
    assert found.latency <= least * ABOVE


@pytest.mark.parametrize("seed", [0, 5, 9, 110, 265])
def test_graphs_are_solved_and_bounded(seed: int) -> None:
    """Steps of several outputs and residents; slices of one tensor that are a part of another (110, 265)."""
    given = graph(seed)
    found = solve(given)
    least = optimum(given, LAWS["ruled"], found.latency * ABOVE)
    assert found.bound <= least * ABOVE
    assert least <= found.latency * ABOVE
    assert found.latency <= least * ABOVE
    assert found.optimal or "all subgraphs" in found.claim


@pytest.mark.thorough
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < 102 else pytest.mark.campaign) for n in range(100, 106)]
)
def test_graphs_are_bounded_under_every_law(seed: int, law: str) -> None:
    """Under the law that writes what others read, the search has no steps of several outputs."""
    given = graph(seed, (3, 4))
    found = solve(given, SolveOptions(law=law))
    least = optimum(given, LAWS[law], found.latency * ABOVE)
    assert found.bound <= least * ABOVE
    assert least <= found.latency * ABOVE
    assert not found.optimal or found.latency <= least * ABOVE
    assert verify(given, found.steps, LAWS[law]).latency == found.latency


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(6))
def test_what_the_oracle_leaves_out_changes_nothing(seed: int) -> None:
    for given in (tree(seed), graph(seed, (3,))):
        least = optimum(given, LAWS["ruled"])
        assert optimum(given, LAWS["ruled"], least * ABOVE) == least


def test_no_tile_is_below_the_bound_of_a_subgraph_that_reads_a_tensor_twice() -> None:
    """Slices of two shapes are the same in a few steps, and count once there. Not all subgraphs fit."""
    fitting = tight = 0
    for seed in range(40):
        given, law = reused(seed), LAWS["ruled"]
        least = least_price(given, law, given.order, frozenset(), frozenset())
        core = statement_of(given, law, Group(given.order), bound=True).core(given, law)
        bound = _core.contest_price(subgraph=core, bound=True, limit=1e18, seconds=None).latency
        assert bound <= least * ABOVE, seed
        fitting += least < inf
        tight += bound * ABOVE >= least
    assert fitting > 10
    assert tight > 3


@pytest.mark.parametrize("seed", range(20))
def test_steps_of_a_cover_come_in_an_order(seed: int) -> None:
    """At random prices: what is chosen has an order, and costs no less than what is said to be least."""
    given, rnd = graph(seed), random.Random(seed)
    steps = candidates(given, LAWS["ruled"], 20_000)
    assert steps is not None
    prices = [float(rnd.randrange(1, 30)) for _ in steps]
    useful = [at for at, step in enumerate(steps) if not step.group.retained.intersection(given.results)]
    found = best_cover(given, [steps[at] for at in useful], [prices[at] for at in useful], lambda: None)
    assert found is not None
    total, resident, slow = 0.0, frozenset[int](), set[int]()
    priced = {step.group: (step, price) for step, price in zip(steps, prices, strict=True)}
    for group in found:
        step, price = priced[group]
        assert group.residents == resident
        assert step.loads <= slow
        total, resident = total + price, group.retained
        slow |= step.stores
    assert slow.issuperset(given.results)
    least = least_cover(given, steps, prices, None)
    assert least is not None
    assert least <= total * ABOVE


def test_a_claim_names_law_and_space() -> None:
    found = solve(product(bandwidth=1))
    assert found.optimal
    assert found.claim == "optimal under the law ruled, among all schedules (bound: search)"
    hurried = solve(product_and_sum(bandwidth=1), SolveOptions(law="winner", time_limit=0))
    assert not hurried.optimal
    assert hurried.claim.startswith("feasible under the law winner, at most ")
    assert "searched: subgraphs of one output" in hurried.claim


def test_what_fits_at_no_tile_is_said() -> None:
    with pytest.raises(NegativeAnswer, match="operator 0 fits at no tile"):
        solve(product(capacity=2))


def test_options_are_checked() -> None:
    with pytest.raises(UsageError, match="no law"):
        SolveOptions(law="mine")
    with pytest.raises(UsageError, match="seconds"):
        SolveOptions(time_limit=-1)


def test_a_last_step_that_is_shorter_makes_room() -> None:
    """K = 16 in steps of 7, 7, 2: the last one has room for the epilogue's operand; steps of 8 do not fit."""
    given = product_and_sum(capacity=64 + 112, bandwidth=1, native=(8, 8, 8))
    found = solve(given)
    assert found.steps[-1].operators == (0, 1)
    assert found.steps[-1].depth == 7
    assert found.optimal


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_closed_form_is_the_verifiers_price(law: Law) -> None:
    """For every subgraph of many trees; the law that keeps strips may price them lower."""
    compared = 0
    for seed in range(40):
        given = tree(seed)
        costs = Costs(given, law)
        for operators in (group for groups in sinks(given, law, 50).groups for group in groups):
            made = {given.outputs[op] for op in operators}
            read = {t for op in operators for t in given.inputs[op]} - made
            retained = frozenset({given.outputs[operators[-1]]} if seed % 2 == 0 else ())
            for residents in (frozenset[int](), *(frozenset({t}) for t in read if t in given.maker)):
                group = Group(operators, residents, retained)
                latency = costs.latency(group)
                if latency == inf:
                    continue
                priced = price_step(given, costs.step(group), law, residents)
                assert costs.least(group) <= priced * ABOVE
                assert priced <= latency * ABOVE
                assert law.strips == "kept" or latency <= priced * ABOVE
                compared += 1
    assert compared > 200


def test_matmuls_of_two_depths_share_a_tile() -> None:
    operators = [("MatMul", (0, 1), 2, 1), ("MatMul", (3, 4), 5, 1), ("Pointwise", (2, 5), 6, 1)]
    shapes = [SQUARE, SQUARE, SQUARE, (16, 8), (8, 16), SQUARE, SQUARE]
    given = problem(shapes, operators, capacity=320, bandwidth=1)
    group = Group((0, 1, 2))
    assert Costs(given, LAWS["ruled"]).latency(group) == 4 * (256 + 128 + 64)


def test_a_tensor_of_two_readers_is_made_once_inside() -> None:
    operators = [("Pointwise", (0,), 1, 9), ("Pointwise", (1,), 2, 9), ("Pointwise", (1,), 3, 9)]
    given = problem([SQUARE] * 5, [*operators, ("Pointwise", (2, 3), 4, 9)], capacity=250)
    found = solve(given)
    assert [step.operators for step in found.steps] == [(0, 1, 2, 3)]
    assert found.optimal


@pytest.mark.parametrize("number", [1, 2, 3, 4, 7])
def test_problems_of_the_contest_are_solved_to_optimality(number: int, shared: Path) -> None:
    given = read_problem(shared / f"bench/contest/mlsys-2026-{number}.json")
    found = solve(given)
    assert found.optimal
    assert verify(given, found.steps, LAWS["ruled"]).latency == found.latency
