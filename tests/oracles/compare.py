"""The planner against the references, one case at a time: what the tests and the long campaign both run.

Every function asserts, and returns what was found so that a campaign can count the cases that were hard.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from itertools import product
from random import Random

from onchip.network import Network, bits
from onchip.placement import Problem, Rules, Step, minimum_peak, minimum_traffic
from oracles import ilp, states
from strategies import Case, minimum_requirement, peak_of_order, rounded

__all__ = ["ALL_RULES", "some_rules", "traffic_against_ilp", "traffic_against_states"]

ALL_RULES = tuple(Rules(*switches) for switches in product((True, False), repeat=len(fields(Rules))))
"""Every way to switch the pruning rules on and off."""


def some_rules(rng: Random, count: int) -> list[Rules]:
    """All rules, none, and `count` random combinations."""
    return [ALL_RULES[0], ALL_RULES[-1], *rng.sample(ALL_RULES, count)]


def replayed(network: Network, budget: int, alignment: int, steps: Iterable[Step]) -> int:
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
    network, budget, alignment = case.network, case.budget, case.alignment
    problem = Problem.of(network, alignment)
    assert problem.minimum_budget == minimum_requirement(network, alignment)
    least = states.least_traffic(network, budget, alignment)
    least_in_order = states.least_traffic(network, budget, alignment, order=network.order)
    peak = states.least_peak(network, alignment)
    assert (least == 0) == (budget >= peak)
    for chosen in rules:
        found = minimum_traffic(problem, budget, chosen)
        assert found.complete, chosen
        assert found.value == least, chosen
        assert replayed(network, budget, alignment, found.steps) == least, chosen
        fixed = minimum_traffic(problem.in_order(network.order), budget, chosen)
        assert (fixed.value, fixed.order) == (least_in_order, network.order), chosen
        assert fixed.complete, chosen
        order = minimum_peak(problem, chosen)
        assert order.complete, chosen
        assert order.value == peak == peak_of_order(network, order.order, alignment), chosen
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
