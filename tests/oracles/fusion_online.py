"""The on-line variant by definition, slowly: groups that its rules allow, then the best scheme of those."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from onchip.planners.fusion.cost import group_cost
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.reproduced.algorithm1 import Scheme
from onchip.planners.fusion.reproduced.dag import Dag
from onchip.planners.fusion.reproduced.downsets import best_scheme
from onchip.planners.fusion.reproduced.groups import all_or_none, connected_groups
from onchip.planners.fusion.rows import bands_of
from onchip.planners.fusion.streams import candidates, smallest


def quartered(problem: FusionProblem) -> FusionProblem:
    """The problem with maps a quarter as wide: t_w = O_w / 4."""
    maps = tuple(None if m is None else replace(m, columns=-(-m.columns // 4)) for m in problem.maps)
    return replace(problem, maps=maps)


def quarter_bytes(problem: FusionProblem, members: int) -> int | None:
    """Buffer bytes of a group whose sub-groups are a quarter of its output high and wide."""
    bands = bands_of(problem, members)
    if bands is None:
        return None
    narrow = quartered(problem)
    t = -(-bands.longest // 4)
    found = smallest(narrow, bands, candidates(narrow, bands), t, 1, 1 << 60)
    assert found is not None
    return found[0]


def online_groups(problem: FusionProblem, most: int) -> list[int]:
    """Groups of at most `most` operators that fan out to all readers or none and hang together by data."""
    dag = Dag.of(problem.network)
    return list(connected_groups(dag, lambda _: 0, most=most, closed=lambda g: all_or_none(dag, g)))


def size_table(problem: FusionProblem, most: int) -> list[int | None]:
    """memo[1..]: the fewest buffer bytes of any group of n operators; None where there is no such group."""
    table: list[int | None] = []
    for n in range(1, most + 1):
        sizes = [
            size
            for group in online_groups(problem, n)
            if group.bit_count() == n and (size := quarter_bytes(problem, group)) is not None
        ]
        table.append(min(sizes, default=None))
    return table


def online_scheme(problem: FusionProblem, limit: int) -> Scheme:
    """The best scheme of groups of at most `limit` operators that follow the rules."""
    dag = Dag.of(problem.network)

    @cache
    def cost(members: int) -> int | None:
        found = group_cost(problem, members)
        return None if found is None else found.dram_bytes

    groups = connected_groups(dag, cost, most=limit, closed=lambda g: all_or_none(dag, g))
    return best_scheme(dag, groups)[0]
