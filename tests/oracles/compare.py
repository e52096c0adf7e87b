"""The planner against the references, one case at a time: what the tests and the long campaign both run.

Every function asserts, and returns what was found so that a campaign can count the cases that were hard.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from itertools import product
from random import Random

import pytest

from onchip.base.errors import Infeasible
from onchip.check import check
from onchip.network import Network, bits
from onchip.planners.placement import (
    PlacementOptions,
    Problem,
    Rules,
    Step,
    minimum_peak,
    minimum_traffic,
    plan,
)
from oracles import addresses, ilp, states
from strategies import Case, minimum_requirement, peak_of_order, rounded, written_over

__all__ = [
    "ALL_RULES",
    "plan_against_addresses",
    "plan_against_states",
    "some_rules",
    "traffic_against_ilp",
    "traffic_against_states",
]

ALL_RULES = tuple(Rules(*switches) for switches in product((True, False), repeat=len(fields(Rules))))
"""Every way to switch the pruning rules on and off."""


def some_rules(rng: Random, count: int) -> list[Rules]:
    """All rules, none, and `count` random combinations."""
    return [ALL_RULES[0], ALL_RULES[-1], *rng.sample(ALL_RULES, count)]


def replayed(
    network: Network, budget: int, alignment: int, steps: Iterable[Step], *, in_place: bool = False
) -> int:
    """The traffic of a schedule, bytes counted move by move; asserts that every move is possible."""
    sizes = [t.bytes for t in network.tensors]
    resident, copies, loaded, done, paid = 0, network.input_roots, 0, 0, 0
    for step in steps:
        v = step.operator
        for t in step.evict:
            assert resident >> t & 1, "evicts what is not resident"
            if not copies >> t & 1:
                paid += sizes[t]
            resident, copies = resident & ~(1 << t), copies | 1 << t
        for t in bits(network.reads[v] & ~resident):
            assert copies >> t & 1, "loads what has no copy"
            compulsory = network.input_roots >> t & 1 and not loaded >> t & 1
            paid += 0 if compulsory else sizes[t]
            loaded |= 1 << t
        resident |= network.reads[v] | network.writes[v]
        copies |= network.writes[v] & network.output_roots
        in_use = sum(rounded(sizes[t], alignment) for t in bits(resident))
        over = written_over(network, v, done) if in_place else None
        in_use -= 0 if over is None else rounded(sizes[over], alignment)
        assert in_use + rounded(network.operators[v].workspace, alignment) <= budget, "overflows"
        assert not done >> v & 1, "runs an operator twice"
        done |= 1 << v
        for t in bits(resident):
            if not network.readers[t] & ~done:
                resident &= ~(1 << t)
    assert done == (1 << len(network.operators)) - 1, "leaves operators out"
    return paid


def traffic_against_states(case: Case, rules: Iterable[Rules]) -> int:
    """Least traffic, in any order and in the given one, and least peak equal the exact states'."""
    network, budget, alignment, in_place = case.network, case.budget, case.alignment, case.in_place
    problem = Problem.of(network, alignment, in_place=in_place)
    given = problem.in_order(network.order)
    in_order = minimum_requirement(network, alignment, in_place=in_place, order=network.order)
    assert problem.minimum_budget == minimum_requirement(network, alignment, in_place=in_place)
    assert given.minimum_budget == in_order
    least = states.least_traffic(network, budget, alignment, in_place=in_place)
    least_in_order = states.least_traffic(network, budget, alignment, order=network.order, in_place=in_place)
    assert (least_in_order is None) == (budget < in_order)
    peak = states.least_peak(network, alignment, in_place=in_place)
    assert (least == 0) == (budget >= peak)
    for chosen in rules:
        found = minimum_traffic(problem, budget, chosen)
        assert found.complete, chosen
        assert found.value == least, chosen
        assert replayed(network, budget, alignment, found.steps, in_place=in_place) == least, chosen
        if least_in_order is not None:
            fixed = minimum_traffic(given, budget, chosen)
            assert (fixed.value, fixed.order) == (least_in_order, network.order), chosen
            assert fixed.complete, chosen
        order = minimum_peak(problem, chosen)
        assert order.complete, chosen
        assert order.value == peak, chosen
        assert peak == peak_of_order(network, order.order, alignment, in_place=in_place), chosen
    assert least is not None
    return least


def traffic_against_ilp(case: Case) -> int:
    """Least traffic equals CP-SAT's on a network too large for exact states; raises `ilp.Undecided`."""
    found = minimum_traffic(Problem.of(case.network, case.alignment), case.budget)
    assert found.complete
    assert replayed(case.network, case.budget, case.alignment, found.steps) == found.value
    least = ilp.least_traffic(case.network, case.budget, case.alignment)
    assert found.value == least
    return found.value


def plan_against_addresses(case: Case) -> tuple[int, int]:
    """A plan costs exactly what exhaustive placement finds and says so; returns (least by capacity, that).

    Raises `addresses.Undecided` where that is too much to enumerate.
    """
    network, budget, alignment, in_place = case.network, case.budget, case.alignment, case.in_place
    joint = addresses.least_traffic(network, budget, alignment, most_states=20_000, in_place=in_place)
    least = states.least_traffic(network, budget, alignment, idle_loads=False, in_place=in_place)
    assert joint is not None
    assert least is not None
    made = plan(network, case.chip, budget, PlacementOptions(in_place=in_place))
    result = made.result
    assert check(made) == result
    assert result.lower_bound_bytes <= joint <= result.traffic_bytes
    assert (result.status, result.traffic_bytes, result.lower_bound_bytes) == ("optimal", joint, joint)
    return least, joint


def plan_against_states(case: Case) -> int:
    """A plan's status is honest, its figures are its program's, and `order` means what it says.

    Returns how many of the plans cost more than the capacity alone explains.
    """
    network, budget, alignment, in_place = case.network, case.budget, case.alignment, case.in_place
    dearer = 0
    for options in (
        PlacementOptions(in_place=in_place),
        PlacementOptions(in_place=in_place, order="given"),
        PlacementOptions(in_place=in_place, weights="resident"),
    ):
        seen = network.with_resident_weights() if options.weights == "resident" else network
        order = network.order if options.order == "given" else None
        least = states.least_traffic(seen, budget, alignment, order=order, in_place=in_place)
        if least is None:
            with pytest.raises(Infeasible) as refused:
                plan(network, case.chip, budget, options)
            needs = minimum_requirement(seen, alignment, in_place=in_place, order=order)
            assert refused.value.needs == needs == sum(size for _, size in refused.value.tensors)
            assert refused.value.has == budget
            continue
        made = plan(network, case.chip, budget, options)
        result = made.result
        assert check(made) == result
        assert least <= result.lower_bound_bytes <= result.traffic_bytes
        assert (result.status == "optimal") == (result.lower_bound_bytes == result.traffic_bytes)
        assert max(result.peak_bytes, result.extent_bytes) <= budget
        dearer += result.traffic_bytes > least
    return dearer
