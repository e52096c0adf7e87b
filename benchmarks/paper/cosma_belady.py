"""COSMA's sentence on Belady's rule by other readings of it: which of equals goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from typing import Literal

from cosma_arena import FITS, ORDERS, Reading, seen
from cosma_settings import BUDGETS, HUMAN, NAS, WEIGHTS

from onchip.comparison.baselines.replacement import Arena, Evictable, Rule, belady, least_traffic
from onchip.planners.placement import Problem, minimum_peak

__all__ = ["belady_readings", "counted"]

Held = Mapping[int, Evictable]


def of_equals_the_smallest(arena: Arena, size: int, evictable: Held) -> tuple[int, ...]:
    """Belady's rule, which knows no sizes: of equals the smallest goes."""
    here = [(evictable[h.item].next_use, -h.size, -h.address, h.item) for h in arena if h.item in evictable]
    return (max(here)[3],) if here else ()


def of_equals_the_first(arena: Arena, size: int, evictable: Held) -> tuple[int, ...]:
    """Belady's rule; of equals the one at the lowest address goes."""
    here = [(evictable[h.item].next_use, -h.address, h.item) for h in arena if h.item in evictable]
    return (max(here)[2],) if here else ()


def of_equals_what_costs_most(arena: Arena, size: int, evictable: Held) -> tuple[int, ...]:
    """Belady's rule; of equals the one whose eviction and return move the most goes."""
    known = ((h.item, evictable[h.item]) for h in arena if h.item in evictable)
    here = [(one.next_use, one.traffic, item) for item, one in known]
    return (max(here)[2],) if here else ()


def one_by_one(arena: Arena, size: int, evictable: Held) -> tuple[int, ...]:
    """The greedy rule without looking at windows: the one tensor whose eviction moves the least."""
    known = ((h.item, evictable[h.item]) for h in arena if h.item in evictable)
    here = [(one.traffic, -one.next_use, item) for item, one in known]
    return (min(here)[2],) if here else ()


READINGS: Mapping[str, tuple[Rule, Rule]] = {
    "as it is: of equals the largest goes": (belady, least_traffic),
    "of equals the smallest": (of_equals_the_smallest, least_traffic),
    "of equals the one at the lowest address": (of_equals_the_first, least_traffic),
    "of equals the one that moves the most": (of_equals_what_costs_most, least_traffic),
    "the greedy rule one by one, not by windows": (belady, one_by_one),
}


@cache
def problems() -> tuple[tuple[str, Problem, tuple[int, ...], int], ...]:
    """Every case of the comparison: network, problem, order and budget."""
    found = []
    human = product(HUMAN, ("fused", "op"), WEIGHTS)
    for name, graph, tensors in (*human, *product(NAS, ("fused", "op"), WEIGHTS[:1])):
        found += _of(name, graph, tensors)
    return tuple(found)


def _of(
    name: str, graph: str, tensors: Literal["streamed", "resident"]
) -> Iterator[tuple[str, Problem, tuple[int, ...], int]]:
    network = seen(name, graph, tensors)
    problem = Problem.of(network)
    peak = minimum_peak(problem)
    mr, mp = problem.minimum_budget, peak.value
    for _, budget in zip(BUDGETS, (mr, (mr + mp) // 2, mp), strict=True):
        for order in (network.order, peak.order):
            yield name, problem, tuple(order), budget


@cache
def moved(rule: Rule) -> tuple[int, ...]:
    """Traffic of each case by a rule in the comparison's own arena."""
    fit, key = FITS["best fit"], ORDERS["largest first"]
    return tuple(
        Reading(problem, order, budget, rule, fit, key).run().traffic
        for _, problem, order, budget in problems()
    )


def counted(text: str) -> tuple[int, int, int, float, int, int]:
    """Cases of less, equal, more by Belady's rule; bytes more in all; networks with more in all, and less."""
    theirs, greedy = (moved(rule) for rule in READINGS[text])
    pairs = list(zip(theirs, greedy, strict=True))
    names = [name for name, *_ in problems()]
    sums = dict.fromkeys(names, 0)
    for name, (b, g) in zip(names, pairs, strict=True):
        sums[name] += b - g
    return (
        sum(b < g for b, g in pairs),
        sum(b == g for b, g in pairs),
        sum(b > g for b, g in pairs),
        sum(theirs) / sum(greedy) - 1,
        sum(more > 0 for more in sums.values()),
        sum(more < 0 for more in sums.values()),
    )


def belady_readings() -> Iterator[str]:
    """A row for each reading of the two rules."""
    head = (
        "rule | less, equal, more than the greedy one | bytes in all | networks with more in all | with less"
    )
    yield f"| {head} |"
    yield "|---|---|--:|--:|--:|"
    for text in READINGS:
        less, equal, more, share, networks, fewer = counted(text)
        yield f"| {text} | {less}, {equal}, {more} | {100 * share:+.1f} % | {networks} of 14 | {fewer} |"
