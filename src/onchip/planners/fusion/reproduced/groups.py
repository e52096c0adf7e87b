"""The candidate groups: convex, connected by data, grown until the cost function refuses.

A group needs at least as much buffer as any part of it, so growth stops at the first that does not fit. A
group of unconnected parts, none feeding another or sharing an input with it, saves nothing over them, and is
not tried.
"""

from __future__ import annotations

from collections.abc import Callable

from onchip.network import bits
from onchip.planners.fusion.reproduced.algorithm1 import GroupCostFunction
from onchip.planners.fusion.reproduced.dag import Dag

__all__ = ["all_or_none", "connected_groups"]


def connected_groups(
    dag: Dag,
    cost: GroupCostFunction,
    *,
    most: int | None = None,
    limit: int | None = None,
    closed: Callable[[int], int] | None = None,
    stop: Callable[[], bool] | None = None,
) -> dict[int, int]:
    """Return every group of at most `most` operators that `cost` accepts, with its cost, smaller ones first.

    At most `limit` of them; once `stop` returns true, those found up to then.
    `closed` maps a set to the least group that holds it (`Dag.closure`, unless a narrower family of groups is
    required). Every group of a family closed under intersection is reached: from any member, add a neighbour
    inside it, close, and go on; no step leaves it.
    """
    closed = closed or dag.closure
    most = len(dag) if most is None else min(most, len(dag))
    found: dict[int, int] = {}
    seen: set[int] = set()
    sizes: list[list[int]] = [[] for _ in range(len(dag) + 1)]
    sizes[1] = [1 << v for v in range(len(dag))] if len(dag) else []
    for size in range(1, most + 1) if len(dag) else ():
        for group in sizes[size]:
            if len(found) == limit or (size > 1 and stop is not None and stop()):
                return found
            moved = cost(group)
            if moved is None:
                continue
            found[group] = moved
            around = 0
            for v in bits(group):
                around |= dag.near[v]
            for u in bits(around & ~group):
                grown = closed(group | 1 << u)
                if grown not in seen and grown.bit_count() <= most:
                    seen.add(grown)
                    sizes[grown.bit_count()].append(grown)
        sizes[size].clear()
    return found


def all_or_none(dag: Dag, group: int) -> int:
    """Return the least convex group around `group` in which a member with one reader inside has all inside.

    Optimus section 6: a tensor written back for one reader anyway gains little from staying for another.
    """
    while True:
        grown = dag.closure(group)
        for v in bits(grown):
            if dag.successors[v] & grown:
                grown |= dag.successors[v]
        if grown == group:
            return group
        group = grown
