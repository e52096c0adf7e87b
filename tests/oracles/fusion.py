"""Fusion by brute force, and by a plain dynamic program over downsets."""

from __future__ import annotations

from collections.abc import Callable

from onchip.network import Network, bits
from onchip.planners.fusion.cost import GroupCost, group_cost
from onchip.planners.fusion.problem import FusionProblem

__all__ = ["convex_groups", "search_python"]


def convex_groups(
    problem: FusionProblem, cost: Callable[[int], GroupCost | None] | None = None
) -> dict[int, GroupCost]:
    """The feasible convex groups connected by an edge or a shared tensor, grown from single operators.

    Grown through feasible groups only: complete where need grows with the group.
    """
    network = problem.network
    cost = cost or (lambda members: group_cost(problem, members))
    below, above = _reach(network)
    beside = [0] * len(network.operators)
    for op in network.operators:
        for t in bits(network.reads[op.id] | network.writes[op.id]):
            users = network.readers[t]
            p = network.producer[t]
            beside[op.id] |= users | (1 << p if p is not None else 0)
    found: dict[int, GroupCost] = {}
    seen: set[int] = set()
    waiting = [1 << v for v in network.order]
    while waiting:
        members = waiting.pop()
        if members in seen:
            continue
        seen.add(members)
        priced = cost(members)
        if priced is None:
            continue
        found[members] = priced
        around = 0
        for v in bits(members):
            around |= beside[v]
        for u in bits(around & ~members):
            grown = members | 1 << u
            down = up = 0
            for v in bits(grown):
                down |= below[v]
                up |= above[v]
            waiting.append(grown | (down & up))
    return found


def _reach(network: Network) -> tuple[list[int], list[int]]:
    """For each operator the bitsets of its descendants and its ancestors."""
    above = [0] * len(network.operators)
    below = [0] * len(network.operators)
    for v in network.order:
        for p in bits(network.predecessors[v]):
            above[v] |= above[p] | 1 << p
    for v in reversed(network.order):
        for p in bits(network.predecessors[v]):
            below[p] |= below[v] | 1 << v
    return below, above


def search_python(
    problem: FusionProblem, groups: dict[int, GroupCost] | None = None
) -> tuple[GroupCost, ...] | None:
    """The cheapest partition into groups whose quotient graph is acyclic, by a search over downsets."""
    groups = convex_groups(problem) if groups is None else groups
    network = problem.network
    useful = []
    for g in groups.values():
        alone = [groups.get(1 << v) for v in bits(g.members)]
        priced = [a.dram_bytes for a in alone if a is not None]
        if len(alone) == 1 or len(priced) < len(alone) or g.dram_bytes < sum(priced):
            useful.append(g)
    needs = []
    for g in useful:
        before = 0
        for v in bits(g.members):
            before |= network.predecessors[v]
        needs.append((g, before & ~g.members))
    by_count: dict[int, tuple[int, GroupCost | None, int]] = {0: (0, None, 0)}
    layers: list[set[int]] = [set() for _ in range(len(network.operators) + 1)]
    layers[0].add(0)
    for layer in layers:
        for done in layer:
            spent = by_count[done][0]
            for g, before in needs:
                if g.members & done or before & ~done:
                    continue
                after = done | g.members
                total = spent + g.dram_bytes
                if after not in by_count or total < by_count[after][0]:
                    by_count[after] = (total, g, done)
                    layers[after.bit_count()].add(after)
    everything = (1 << len(network.operators)) - 1
    if everything not in by_count:
        return None
    chosen = []
    at = everything
    while at:
        _, last, at = by_count[at]
        assert last is not None
        chosen.append(last)
    return tuple(reversed(chosen))
