"""Bounds of a problem's schedules: work, traffic, and the dynamic program where it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from onchip.contest.groups import barrier
from onchip.contest.law import Law
from onchip.contest.problem import Problem
from onchip.contest.tree import Choice, Tree

__all__ = ["least_traffic", "least_work", "option_bound", "shared_tensors"]

MOST_SHARED = 8
"""The most tensors of several readers of which every subset is tried."""


def least_work(problem: Problem, law: Law) -> float:
    """Return the time of every operator once, at the largest tiles.

    An operator that some MatMul may have stand before it makes strips, whose cost is their part of a native
    tile; others pay for whole tiles.
    """
    return sum(_work(problem, law, op) for op in range(len(problem.outputs)))


def _work(problem: Problem, law: Law, op: int) -> float:
    output, native = problem.outputs[op], problem.native
    height, width = problem.heights[output], problem.widths[output]
    tiles = float(-(-height // native[1]) * -(-width // native[0]))
    share = 1.0
    if problem.is_matmul[op] and law.product_step == "native":
        share = problem.reduction(op) / native[2]
    if problem.readers[output]:
        share = min(share, 1.0)
        if width % native[0] or height % native[1] or len(set(native)) > 1:
            tiles = min(tiles, height / max(native) * width / max(native))
    return problem.base[op] * tiles * share


def least_traffic(problem: Problem) -> float:
    """Return the time of reading every input of the graph and writing every result once."""
    inputs = [t for t, readers in enumerate(problem.readers) if readers and t not in problem.maker]
    return sum(map(problem.size, (*inputs, *problem.results))) / problem.bandwidth


def shared_tensors(problem: Problem) -> tuple[int, ...]:
    """Return the tensors that are made and have several readers."""
    return tuple(tensor for tensor in problem.outputs if len(problem.readers[tensor]) > 1)


def option_bound(
    problem: Problem, law: Law, known: Sequence[Sequence[Choice]], over: Callable[[], bool]
) -> float | None:
    """Return the least over which shared tensors are written; None where that bounds nothing.

    It holds where every subgraph has one output: no tensor has two readers that may stand with its maker. The
    choices must be all subgraphs, at costs that nothing is below.
    """

    def behind(tensor: int, op: int) -> bool:
        return barrier(problem, law, tensor, op)

    shared = shared_tensors(problem)
    inside = [sum(not behind(tensor, op) for op in problem.readers[tensor]) for tensor in shared]
    if (
        max(inside, default=0) > 1
        or len(shared) > MOST_SHARED
        or (shared and law.read_elsewhere == "written")
    ):
        return None
    least: float | None = None
    for count in range(len(shared) + 1):
        for written in combinations(shared, count):
            if over():
                return None
            total = Tree(problem, law, known, frozenset(written), behind).total
            least = total if least is None else min(least, total)
    return least
