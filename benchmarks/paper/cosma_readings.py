"""COSMA's sentences by all nine readings of the arena: which gap is taken, which tensor is placed first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from statistics import mean
from typing import Literal

from cosma_arena import FITS, NASNET, ORDERS, RULES, Reading, orders_of_least_peak, seen
from cosma_data import percent
from cosma_settings import BUDGETS, GENERIC, HUMAN, NAS, TITLES, WEIGHTS

import onchip
from onchip.comparison.baselines.replacement import Rule
from onchip.planners.placement import PlacementOptions, Problem, minimum_peak, plan

__all__ = ["Case", "all_readings", "idle", "idle_in_part", "less_equal_more", "removed"]

Arena = tuple[str, str]
"""A fit and an order."""
Graph = Literal["fused", "op"]
GRAPHS: tuple[Graph, ...] = ("fused", "op")
ARENAS: tuple[Arena, ...] = tuple(product(FITS, ORDERS))


@dataclass(frozen=True)
class Case:
    """A network in a graph and a setting at a budget: the exact plan's traffic, and by arena that of the
    four schemes, Belady's rule and the greedy one for the own order, then for that of least peak."""

    network: str
    graph: str
    tensors: str
    at: str
    exact: int
    schemes: dict[Arena, tuple[int, ...]]


@cache
def cases() -> tuple[Case, ...]:
    """All that the comparison has: the four networks found by search with activations only."""
    human = product(HUMAN, GRAPHS, WEIGHTS)
    nas = product(NAS, GRAPHS, WEIGHTS[:1])
    return tuple(case for asked in (*human, *nas) for case in _budgets(*asked))


def _budgets(name: str, graph: Graph, tensors: Literal["streamed", "resident"]) -> Iterator[Case]:
    network = seen(name, graph, tensors)
    problem = Problem.of(network)
    peak = minimum_peak(problem)
    mr, mp = problem.minimum_budget, peak.value
    for at, budget in zip(BUDGETS, (mr, (mr + mp) // 2, mp), strict=True):
        exact = 0
        if name in HUMAN and at != "MP":
            plain = onchip.load(f"zoo:{name}", granularity=graph).network
            exact = plan(plain, GENERIC, budget, PlacementOptions(weights=tensors)).result.traffic_bytes
        schemes = {
            arena: tuple(
                Reading(problem, order, budget, rule, FITS[arena[0]], ORDERS[arena[1]]).run().traffic
                for order in (network.order, peak.order)
                for rule in RULES.values()
            )
            for arena in ARENAS
        }
        yield Case(name, graph, tensors, at, exact, schemes)


def idle(found: Sequence[Case], arena: Arena, graph: str) -> dict[str, int]:
    """Of the ten networks those without traffic at MP in any of the four schemes, in how many settings."""
    at_peak = (case for case in found if case.at == "MP" and case.graph == graph)
    none = [case.network for case in at_peak if not any(case.schemes[arena])]
    return {name: none.count(name) for name in HUMAN if name in none}


def idle_in_part(found: Sequence[Case], arena: Arena, graph: str) -> dict[str, int]:
    """The same, where some of the four schemes have none and others have."""
    at_peak = (case for case in found if case.at == "MP" and case.graph == graph)
    some = [c.network for c in at_peak if any(c.schemes[arena]) and not all(c.schemes[arena])]
    return {name: some.count(name) for name in HUMAN if name in some}


def removed(found: Sequence[Case], arena: Arena, graph: str, budgets: Sequence[str] = BUDGETS[:1]) -> float:
    """The mean of the traffic removed at these budgets, by default at MR, ten networks in both settings."""
    pairs = [
        (case.exact, scheme)
        for case in _of_ten(found, graph, budgets)
        for scheme in case.schemes[arena]
        if scheme
    ]
    return mean(1 - ours / theirs for ours, theirs in pairs)


def removed_bytes(found: Sequence[Case], arena: Arena, graph: str, budgets: Sequence[str]) -> float:
    """The same of all bytes together: large networks count for more."""
    pairs = [
        (case.exact, scheme) for case in _of_ten(found, graph, budgets) for scheme in case.schemes[arena]
    ]
    return 1 - sum(ours for ours, _ in pairs) / sum(theirs for _, theirs in pairs)


def _of_ten(found: Sequence[Case], graph: str, budgets: Sequence[str]) -> list[Case]:
    return [case for case in found if case.network in HUMAN and case.graph == graph and case.at in budgets]


def less_equal_more(found: Sequence[Case], arena: Arena) -> tuple[int, int, int]:
    """In how many cases Belady's rule has less traffic than the greedy one, as much, more."""
    pairs = [case.schemes[arena][k : k + 2] for case in found for k in (0, 2)]
    return (
        sum(belady < greedy for belady, greedy in pairs),
        sum(belady == greedy for belady, greedy in pairs),
        sum(belady > greedy for belady, greedy in pairs),
    )


def _orders_with_more(arena: Arena, graph: Graph) -> str:
    """Of NASNet-A's orders of least peak those that have more than its own: at MR by Belady's rule and by the
    greedy one, then at MH."""
    network = onchip.load(f"zoo:{NASNET}", granularity=graph).network
    problem = Problem.of(network)
    peak = minimum_peak(problem)
    mr = problem.minimum_budget
    others = [peak.order, *_others(graph)]

    def traffic(order: Sequence[int], budget: int, rule: Rule) -> int:
        fit, key = FITS[arena[0]], ORDERS[arena[1]]
        return Reading(problem, order, budget, rule, fit, key).run().traffic

    counts = []
    for budget, rule in product((mr, (mr + peak.value) // 2), RULES.values()):
        own = traffic(network.order, budget, rule)
        counts.append(sum(traffic(order, budget, rule) > own for order in others))
    return ", ".join(map(str, counts))


@cache
def _others(graph: Graph) -> tuple[tuple[int, ...], ...]:
    return tuple(orders_of_least_peak(NASNET, graph))


def all_readings() -> Iterator[str]:
    """A row for each reading of the arena, the comparison's own first."""
    yield (
        "| arena | without traffic at MP by all four schemes; by some: fused | op |"
        " removed at MR, both settings: fused | op |"
        " Belady's rule: less, equal, more, ten networks | of these op | all fourteen |"
        " NASNet-A, of nine orders those with more: MR by Belady's rule, greedy, MH by both, fused | op |"
        " removed over three budgets: fused | op | by bytes, op: at MR | over three budgets |"
    )
    yield "|---|---|---|--:|--:|---|---|---|---|---|--:|--:|--:|--:|"
    found = cases()
    human = [case for case in found if case.network in HUMAN]
    apart = [case for case in human if case.graph == "op"]
    for arena in ARENAS:
        cells = [_without_traffic(found, arena, graph) for graph in GRAPHS]
        cells += [percent(removed(found, arena, graph)) for graph in GRAPHS]
        cells += [", ".join(map(str, less_equal_more(of, arena))) for of in (human, apart, found)]
        cells += [_orders_with_more(arena, graph) for graph in GRAPHS]
        cells += [percent(removed(found, arena, graph, BUDGETS)) for graph in GRAPHS]
        cells += [percent(removed_bytes(found, arena, "op", at)) for at in (BUDGETS[:1], BUDGETS)]
        yield f"| {', '.join(arena)} | " + " | ".join(cells) + " |"


def _without_traffic(found: Sequence[Case], arena: Arena, graph: str) -> str:
    counts = (idle(found, arena, graph), idle_in_part(found, arena, graph))
    every, some = (", ".join(f"{TITLES[name]} ({n} of 2)" for name, n in of.items()) for of in counts)
    return f"{every or 'none'}; {some or 'none'}"
