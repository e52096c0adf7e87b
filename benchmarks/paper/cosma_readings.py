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
from onchip.planners.placement import PlacementOptions, Problem, minimum_peak, plan

__all__ = ["Case", "all_readings", "idle", "less_equal_more", "removed"]

Arena = tuple[str, str]
"""A fit and an order."""
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
    human = product(HUMAN, ("fused", "op"), WEIGHTS)
    nas = product(NAS, ("fused", "op"), WEIGHTS[:1])
    return tuple(case for asked in (*human, *nas) for case in _budgets(*asked))


def _budgets(name: str, graph: str, tensors: Literal["streamed", "resident"]) -> Iterator[Case]:
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


def idle(found: Sequence[Case], arena: Arena) -> dict[str, int]:
    """Of the ten networks those without traffic at MP in any of the four schemes, in how many cases."""
    none = [case.network for case in found if case.at == "MP" and not any(case.schemes[arena])]
    return {name: none.count(name) for name in HUMAN if name in none}


def removed(found: Sequence[Case], arena: Arena, graph: str) -> float:
    """The mean of the traffic removed at MR, ten networks in both settings."""
    pairs = [
        (case.exact, scheme)
        for case in found
        if case.network in HUMAN and case.graph == graph and case.at == "MR"
        for scheme in case.schemes[arena]
        if scheme
    ]
    return mean(1 - ours / theirs for ours, theirs in pairs)


def less_equal_more(found: Sequence[Case], arena: Arena) -> tuple[int, int, int]:
    """In how many cases Belady's rule has less traffic than the greedy one, as much, more."""
    pairs = [case.schemes[arena][k : k + 2] for case in found for k in (0, 2)]
    return (
        sum(belady < greedy for belady, greedy in pairs),
        sum(belady == greedy for belady, greedy in pairs),
        sum(belady > greedy for belady, greedy in pairs),
    )


def _greedy_at_mh(arena: Arena) -> str:
    """Of NASNet-A's orders of least peak those that have more at MH than its own, by the greedy rule."""
    network = onchip.load(f"zoo:{NASNET}").network
    problem = Problem.of(network)
    peak = minimum_peak(problem)
    budget = (problem.minimum_budget + peak.value) // 2

    def traffic(order: Sequence[int]) -> int:
        fit, key = FITS[arena[0]], ORDERS[arena[1]]
        return Reading(problem, order, budget, RULES["greedy"], fit, key).run().traffic

    others = [peak.order, *_others()]
    return f"{sum(traffic(order) > traffic(network.order) for order in others)} of {len(others)}"


@cache
def _others() -> tuple[tuple[int, ...], ...]:
    return tuple(orders_of_least_peak(NASNET))


def all_readings() -> Iterator[str]:
    """A row for each reading of the arena, the comparison's own first."""
    yield (
        "| arena | no other scheme has traffic at MP | removed at MR, both settings: fused | op |"
        " Belady's rule: less, equal, more, ten networks | all fourteen |"
        " NASNet-A at MH by the greedy rule: orders with more |"
    )
    yield "|---|---|--:|--:|---|---|--:|"
    found = cases()
    for arena in ARENAS:
        none = ", ".join(f"{TITLES[name]} ({n} of 4)" for name, n in idle(found, arena).items()) or "never"
        shares = " | ".join(percent(removed(found, arena, graph)) for graph in ("fused", "op"))
        human = [case for case in found if case.network in HUMAN]
        counts = " | ".join(", ".join(map(str, less_equal_more(of, arena))) for of in (human, found))
        yield f"| {', '.join(arena)} | {none} | {shares} | {counts} | {_greedy_at_mh(arena)} |"
