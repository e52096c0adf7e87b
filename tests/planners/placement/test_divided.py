"""Large networks in pieces: nothing is lost at exact cuts, and no bound is above the optimum."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from test_search import replay

from onchip.check import check
from onchip.network import Network, bits
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions, Problem, minimum_traffic, plan
from onchip.planners.placement.cuts import break_points, exact_cuts, topological
from onchip.planners.placement.dnc import between, divide, quickly
from onchip.planners.placement.greedy import evictions, list_order
from onchip.planners.placement.partition import partition_bound, windows_bound
from onchip.planners.placement.stages import Stages
from strategies import Case, network_of, random_budget, random_case, random_chain, random_network

EVERYTHING = 1 << 30


def random_problem(seed: int) -> tuple[Problem, int]:
    """A problem and a budget: mostly networks with joints, now and then with a fixed order."""
    rng = Random(seed)
    network = random_chain(rng) if seed % 3 else random_network(rng, 9)
    alignment = rng.choice((1, 1, 2, 4))
    problem = Problem.of(network, alignment)
    if seed % 5 == 0:
        problem = problem.in_order(network.order)
    return problem, random_budget(rng, network, alignment)


def any_order(rng: Random, problem: Problem) -> list[int]:
    """Any order that respects the data."""
    if problem.order is not None:
        return list(problem.order)
    producer = {t: v for v, row in enumerate(problem.outputs) for t in row}
    needs = [{producer[t] for t in row if t in producer} for row in problem.inputs]
    order: list[int] = []
    while len(order) < len(needs):
        done = set(order)
        order.append(rng.choice([v for v, before in enumerate(needs) if v not in done and before <= done]))
    return order


def claims(seeds: range) -> tuple[int, int, int]:
    """Checks every claim on random problems; how many had traffic, cuts, and dearer orders between breaks."""
    paying = cut = dearer = 0
    for seed in seeds:
        problem, budget = random_problem(seed)
        rng = Random(seed)
        least = minimum_traffic(problem, budget).value
        exact = divide(problem, budget, Limits(), searched=EVERYTHING, shortest=1)
        assert exact.found.value == exact.found.bound == least, seed
        assert replay(problem, exact.found.steps, budget) == least, seed

        broken = divide(problem, budget, Limits(), searched=2, shortest=1)
        assert broken.found.bound <= least <= broken.found.value, seed
        assert replay(problem, broken.found.steps, budget) == broken.found.value, seed

        order, every = any_order(rng, problem), rng.randint(1, 4)
        assert windows_bound(problem, order, budget, every, Limits(), {}) <= least, seed
        assert partition_bound(problem, order, budget, Limits(), first=every) <= least, seed

        steps, value = evictions(problem, list_order(problem), budget)
        assert replay(problem, steps, budget) == value >= least, seed
        points = break_points(problem, [s.operator for s in steps], every)
        found = between(Stages(problem, budget), [s.operator for s in steps], points, Limits())
        assert found is not None
        assert replay(problem, found[0], budget) == found[1], seed
        assert least <= found[1] <= value, seed
        paying, cut, dearer = paying + (least > 0), cut + (exact.exact_cuts > 0), dearer + (found[1] > least)
    return paying, cut, dearer


@pytest.mark.thorough
def test_pieces_and_bounds_against_the_search() -> None:
    paying, cut, dearer = claims(range(150))
    assert paying > 30
    assert cut > 80
    assert dearer > 3


@pytest.mark.slow
def test_pieces_and_bounds_against_the_search_on_many() -> None:
    paying, cut, dearer = claims(range(1000, 1500))
    assert paying > 125
    assert cut > 250
    assert dearer > 12


def comparable_with_all(network: Network, operator: int) -> bool:
    """Whether every other operator comes before it in all orders, or after it in all."""

    def reached(step: dict[int, set[int]]) -> set[int]:
        found, todo = set[int](), [operator]
        while todo:
            for u in step[todo.pop()] - found:
                found.add(u)
                todo.append(u)
        return found

    up = {op.id: set(bits(network.predecessors[op.id])) for op in network.operators}
    down = {v: {u for u in up if v in up[u]} for v in up}
    return len(reached(up) | reached(down)) == len(network.operators) - 1


def test_exact_cuts_are_where_all_orders_agree() -> None:
    found = 0
    for seed in range(200):
        rng = Random(seed)
        network = random_chain(rng) if seed % 2 else random_network(rng, 8)
        problem = Problem.of(network)
        order = topological(problem)
        cuts = exact_cuts(problem, order, most_passengers=EVERYTHING)
        expected = [i + 1 for i, v in enumerate(order[:-1]) if comparable_with_all(network, v)]
        assert cuts == [*expected, len(order)]
        assert all(set(order[:i]) == set(any_order(rng, problem)[:i]) for i in cuts)
        found += len(expected)
    assert found > 100


def test_breaks_leave_pieces_of_about_the_size_asked_for() -> None:
    problem = Problem.of(random_network(Random(1), 60, min_operators=60))
    for every in (5, 8, 20):
        points = break_points(problem, topological(problem), every)
        assert points[-1] == 60
        assert all(0 < b - a <= every * 3 // 2 + 1 for a, b in pairwise([0, *points]))


STRATEGIES = ("exact", "dnc", "beam", "greedy")


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategys_plan_is_legal_and_within_its_bounds(name: str) -> None:
    for seed in range(30):
        case = random_case(Random(seed), 8)
        if seed % 2:
            network = random_chain(Random(seed))
            case = Case(network, 1, random_budget(Random(seed), network))
        options = PlacementOptions(strategy=name, beam_width=4)  # type: ignore[arg-type]
        made = plan(case.network, case.chip, case.budget, options)
        assert check(made) == made.result
        assert made.options["strategy"] == name
        problem = Problem.of(case.network, case.alignment)
        least = minimum_traffic(problem, case.budget).value
        assert made.result.lower_bound_bytes is not None
        assert made.result.lower_bound_bytes <= made.result.traffic_bytes
        assert least <= made.result.traffic_bytes
        if made.result.traffic_bytes > least:
            assert made.result.status == "feasible" or made.result.lower_bound_bytes > least


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("order", ["given", "minpeak"])
def test_every_strategy_keeps_a_fixed_order(name: str, order: str) -> None:
    for seed in range(8):
        case = random_case(Random(seed), 8)
        options = PlacementOptions(strategy=name, order=order)  # type: ignore[arg-type]
        made = plan(case.network, case.chip, case.budget, options)
        assert check(made) == made.result
        if order == "given":
            ran = [i.operator for i in made.program if type(i).__name__ == "Run"]
            assert ran == [case.network.operators[v].name for v in case.network.order]


@pytest.mark.parametrize("name", STRATEGIES)
def test_no_time_at_all_still_gives_a_legal_plan(name: str) -> None:
    network = random_network(Random(3), 60, min_operators=60)
    budget = Problem.of(network).minimum_budget
    options = PlacementOptions(strategy=name, time_limit=0.0)  # type: ignore[arg-type]
    made = plan(network, Case(network, 1, budget).chip, budget, options)
    assert check(made) == made.result


def test_equal_blocks_are_searched_once() -> None:
    sizes, lines = {"x0": 4}, []
    for i in range(40):
        sizes |= {f"a{i}": 3, f"b{i}": 5, f"x{i + 1}": 4}
        lines += [f"x{i} -> a{i}", f"x{i} -> b{i}", f"a{i} b{i} -> x{i + 1}"]
    problem = Problem.of(network_of(sizes, lines, "x40"))
    divided = divide(problem, problem.minimum_budget, Limits(), shortest=3)
    assert divided.found.complete
    assert divided.found.value == minimum_traffic(problem, problem.minimum_budget).value
    assert divided.exact_cuts > 30
    assert divided.pieces <= 4


def test_orders_that_need_no_search_are_left_out_where_they_do_not_fit() -> None:
    fits = too_large = 0
    for seed in range(60):
        case = random_case(Random(seed), 9, min_operators=4, in_place=True)
        problem = Problem.of(case.network, case.alignment, in_place=True)
        budget = problem.minimum_budget
        order = topological(problem)
        found = quickly(Stages(problem, budget), order, Limits())
        needed = min(problem.in_order(o).minimum_budget for o in (order, list_order(problem)))
        assert (found is None) == (needed > budget)
        if found is not None:
            assert found[1] >= minimum_traffic(problem, budget).value
        fits, too_large = fits + (found is not None), too_large + (found is None)
    assert fits > 20
    assert too_large > 0
