"""Prices of small subgraphs by a walk over every tile, at every tile, k and order line by line.

The closed form counts slices of two shapes apart, of one tensor or of one operator's strips. Where tile and k
make them the same, or one a part of the other, a step needs them once: the walk of the verifier sees that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, permutations, product
from math import fsum

from onchip.base.errors import IllegalSchedule
from onchip.contest.demand import Subgraph
from onchip.contest.law import Law
from onchip.contest.problem import Problem
from onchip.contest.solution import Step
from onchip.contest.statement import Group
from onchip.contest.verify import NOTHING, Left, Walk, walk_of

__all__ = ["Walked", "lines", "reordered", "small", "walked"]

MOST_WALKED = 20_000
"""The most steps of tiles, over all tiles and k, of a subgraph that is small."""

MOST_ORDERED = 4_000
"""The most steps of a tiling whose orders are walked over."""

MOST_ANY = 4
"""The most tiles of which every order is tried."""


@dataclass(frozen=True, slots=True)
class Walked:
    """The least latency of a subgraph, and the tile, k and order that have it."""

    latency: float
    width: int
    height: int
    depth: int
    order: tuple[int, ...]


def small(problem: Problem, law: Law, group: Group) -> bool:
    """Return whether all tiles and k of a group may be walked over, one by one."""
    tall, wide, deep = _sides(problem, law, group)
    tiles = [
        sum(-(-side // size) for size in range(1, most + 1))
        for side, most in zip(_output(problem, group), (tall, wide), strict=True)
    ]
    longest = max((problem.reduction(op) for op in group.operators if problem.is_matmul[op]), default=1)
    steps = sum(-(-longest // k) for k in range(1, deep + 1))
    return tiles[0] * tiles[1] * steps <= MOST_WALKED


def walked(problem: Problem, law: Law, group: Group, limit: float) -> Walked | None:
    """Return the best of all tiles, k and orders; None if none is below the limit."""
    best: Walked | None = None
    tall, wide, deep = _sides(problem, law, group)
    for height, width, depth in product(range(tall, 0, -1), range(wide, 0, -1), range(deep, 0, -1)):
        step = Step(group.operators, width, height, depth, tuple(sorted(group.retained)))
        try:
            latency, order = _best_order(walk_of(problem, step, law, group.residents))
        except IllegalSchedule:
            continue
        if latency < limit:
            limit, best = latency, Walked(latency, width, height, depth, order)
    return best


def reordered(problem: Problem, law: Law, step: Step, residents: frozenset[int]) -> Step:
    """Return a step with the best order of its tiles line by line, if these are few enough to walk over."""
    walk = walk_of(problem, step, law, residents)
    if walk.across * walk.down * walk.count > MOST_ORDERED:
        return step
    return replace(step, traversal=_best_order(walk)[1])


def _output(problem: Problem, group: Group) -> tuple[int, int]:
    tensor = Subgraph(problem, group.operators, 1).ends[0]
    return problem.heights[tensor], problem.widths[tensor]


def _sides(problem: Problem, law: Law, group: Group) -> tuple[int, int, int]:
    """Return the largest height and width of a tile, and the largest k."""
    height, width = _output(problem, group)
    depths = [problem.reduction(op) for op in group.operators if problem.is_matmul[op]]
    if law.k_capped and depths:
        depths.append(problem.native[2])
    return min(height, problem.native[1]), min(width, problem.native[0]), min(depths, default=1)


def _best_order(walk: Walk) -> tuple[float, tuple[int, ...]]:
    """Return the least latency of a walk and its order; a tile's depends on the one before it alone."""

    @cache
    def behind(tile: int, before: int) -> tuple[float, Left]:
        times, _, left = walk.tile(tile, NOTHING if before < 0 else behind(before, -1)[1])
        return fsum(times), left

    return min(
        (fsum(behind(tile, before)[0] for before, tile in pairwise((-1, *order))), order)
        for order in _orders(walk.across, walk.down)
    )


@cache
def _orders(across: int, down: int) -> tuple[tuple[int, ...], ...]:
    if across * down <= MOST_ANY:
        return tuple(permutations(range(across * down)))
    return tuple(dict.fromkeys(_all_lines(across, down)))


def _all_lines(across: int, down: int) -> Iterator[tuple[int, ...]]:
    for by_columns, from_right, from_bottom, turns in product((False, True), repeat=4):
        yield lines(
            across,
            down,
            by_columns=by_columns,
            from_right=from_right,
            from_bottom=from_bottom,
            turns=turns,
        )


def lines(
    across: int, down: int, *, by_columns: bool, from_right: bool, from_bottom: bool, turns: bool
) -> tuple[int, ...]:
    """Return the order of tiles along lines from a corner: there and back or, without `turns`, only there."""
    columns, rows = range(across), range(down)
    order = []
    all_lines, along = (columns, rows) if by_columns else (rows, columns)
    late_line = from_right if by_columns else from_bottom
    late_tile = from_bottom if by_columns else from_right
    for n, line in enumerate(reversed(all_lines) if late_line else all_lines):
        for at in reversed(along) if (n % 2 == 0 or not turns) == late_tile else along:
            order.append(at * across + line if by_columns else line * across + at)
    return tuple(order)
