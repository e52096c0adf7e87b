"""The linear arena of COSMA's comparison in other readings, and NASNet-A in other orders of least peak.

The paper names the arena and leaves open how it is used, and its orders are another program's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Literal

from cosma_settings import TITLES, WEIGHTS

import onchip
from onchip.comparison.baselines.arena import Arena
from onchip.comparison.baselines.replacement import Evictable, Rule, belady, least_traffic
from onchip.comparison.baselines.stepwise import _Walk, stepwise
from onchip.network import Network
from onchip.planners.placement import Problem, minimum_peak, minimum_traffic

__all__ = ["ASKED", "FITS", "ORDERS", "at_peak", "orders", "orders_of_least_peak", "readings", "renumbered"]

ASKED = ("s3d", "fcn_resnet50", "vit_b_16")
"""Networks for which the paper's sentence on MP does not come out."""
RULES: Mapping[str, Rule] = {"Belady": belady, "greedy": least_traffic}


class FirstFit(Arena):
    """The lowest gap that is large enough."""

    def copy(self) -> Arena:
        return _copied(self, FirstFit(self.capacity))

    def fit(self, size: int) -> int | None:
        top = 0
        for held in self:
            if held.address - top >= size:
                return top
            top = max(top, held.end)
        return top if top + size <= self.capacity else None


class WorstFit(Arena):
    """The largest gap, the room at the end included."""

    def copy(self) -> Arena:
        return _copied(self, WorstFit(self.capacity))

    def fit(self, size: int) -> int | None:
        gaps, top = [], 0
        for held in self:
            gaps.append((held.address - top, -top))
            top = max(top, held.end)
        gap, at = max((*gaps, (self.capacity - top, -top)))
        return -at if gap >= size else None


def _copied(arena: Arena, other: Arena) -> Arena:
    for held in arena:
        other.hold(held.item, held.address, held.size)
    return other


FITS: Mapping[str, type[Arena]] = {"best fit": Arena, "first fit": FirstFit, "worst fit": WorstFit}
Key = Callable[[Mapping[int, int], int], tuple[int, ...]]
ORDERS: Mapping[str, Key] = {
    "largest first": lambda sizes, item: (-sizes[item], item),
    "smallest first": lambda sizes, item: (sizes[item], item),
    "as listed": lambda sizes, item: (item,),
}
"""In which order an operator's missing tensors are allocated."""


class Reading(_Walk):
    """The walk of the comparison with another fit, and another order of allocation."""

    def __init__(
        self, problem: Problem, order: Sequence[int], budget: int, rule: Rule, fit: type[Arena], key: Key
    ) -> None:
        super().__init__(problem, order, budget, rule)
        self.arena, self.key = fit(budget), key

    def attempt(
        self, sizes: Mapping[int, int], moved: Sequence[int], others: Mapping[int, Evictable]
    ) -> tuple[Arena, tuple[int, ...]] | None:
        arena, gone = self.arena.copy(), list(moved)
        for t in moved:
            arena.release(t)
        missing = [item for item in sizes if item not in arena]
        for item in sorted(missing, key=lambda item: self.key(sizes, item)):
            while (at := arena.fit(sizes[item])) is None:
                victims = self.rule(arena, sizes[item], others)
                if not victims:
                    return None
                for t in victims:
                    arena.release(t)
                gone += victims
            arena.hold(item, at, sizes[item])
        return arena, tuple(gone)


def at_peak(network: Network, fit: type[Arena], key: Key) -> list[int]:
    """Traffic at MP of both orders by both rules."""
    problem = Problem.of(network)
    peak = minimum_peak(problem)
    return [
        Reading(problem, order, peak.value, rule, fit, key).run().traffic
        for order in (network.order, peak.order)
        for rule in RULES.values()
    ]


def seen(name: str, graph: str, tensors: Literal["streamed", "resident"]) -> Network:
    """A network of the zoo as a comparison sees it."""
    network = onchip.load(f"zoo:{name}", granularity=graph).network
    return network if tensors == "streamed" else network.with_resident_weights()


def readings() -> Iterator[str]:
    """Least and most traffic at MP over orders and rules, by reading of the arena, in MB."""
    variants = [("best fit", key) for key in ORDERS] + [(fit, "largest first") for fit in FITS][1:]
    yield "| network | graph | tensors | " + " | ".join(f"{fit}, {key}" for fit, key in variants) + " |"
    yield "|---|---|---|" + "--:|" * len(variants)
    for name in ASKED:
        for graph in ("fused", "op"):
            for tensors in WEIGHTS:
                network = seen(name, graph, tensors)
                cells = []
                for fit, key in variants:
                    found = at_peak(network, FITS[fit], ORDERS[key])
                    cells.append(" to ".join(dict.fromkeys(f"{f(found) / 1e6:.1f}" for f in (min, max))))
                what = "activations" if tensors == "streamed" else "with parameters"
                yield f"| {TITLES[name]} | {graph} | {what} | " + " | ".join(cells) + " |"


# -- orders of least peak --------------------------------------------------------------------------------

SEEDS = 8
NASNET = "nasnetalarge"


def orders() -> Iterator[str]:
    """NASNet-A's traffic at MR and MH by its own order and by several of least peak."""
    problem = Problem.of(onchip.load(f"zoo:{NASNET}").network)
    own = onchip.load(f"zoo:{NASNET}").network.order
    peak = minimum_peak(problem)
    mr = problem.minimum_budget
    budgets = {"MR": mr, "MH": (mr + peak.value) // 2}
    columns = [f"{at}: {what}" for at in budgets for what in (*RULES, "least by sizes alone")]
    yield "| order | " + " | ".join(columns) + " |"
    yield "|---|" + "--:|" * len(columns)
    named = [("the network's own", own), ("least peak, as elsewhere here", peak.order)]
    named += [(f"least peak, {n + 1}", order) for n, order in enumerate(orders_of_least_peak(NASNET))]
    worse = dict.fromkeys(columns, 0)
    first: list[int] = []
    for name, order in named:
        cells = []
        for budget in budgets.values():
            cells += [stepwise(problem, order, budget, rule).traffic for rule in RULES.values()]
            cells.append(minimum_traffic(problem.in_order(order), budget).value)
        first = first or cells
        for column, cell, default in zip(columns, cells, first, strict=True):
            worse[column] += cell > default
        yield f"| {name} | " + " | ".join(f"{cell:,}" for cell in cells) + " |"
    counts = (f"{count} of {len(named) - 1}" for count in worse.values())
    yield "| orders of least peak that have more than the own | " + " | ".join(counts) + " |"


def orders_of_least_peak(
    name: str, graph: Literal["fused", "op"] = "fused", seeds: int = SEEDS
) -> Iterator[tuple[int, ...]]:
    """Orders of the least peak, from the search with operators numbered anew each time."""
    problem = Problem.of(onchip.load(f"zoo:{name}", granularity=graph).network)
    count = len(problem.inputs)
    for seed in range(seeds):
        new = list(range(count))
        Random(seed).shuffle(new)
        yield tuple(new[v] for v in minimum_peak(renumbered(problem, new)).order)


def renumbered(problem: Problem, old: Sequence[int]) -> Problem:
    """The problem whose operator v is the `old[v]` of this one."""
    return replace(
        problem,
        inputs=tuple(problem.inputs[v] for v in old),
        outputs=tuple(problem.outputs[v] for v in old),
        workspace=tuple(problem.workspace[v] for v in old),
    )
