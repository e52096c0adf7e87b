"""Searches of a part of the partitions: the paper's own algorithm, and the spaces of earlier fusers.

All end in groups that can run one after the other; docs/fusion-algorithms.md states the promise of each. None
proves anything about the full space.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from onchip.base.errors import UsageError
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.reproduced.algorithm1 import (
    GroupCostFunction,
    Scheme,
    TooManyStates,
    bottom_up,
    top_down,
    untangled,
)
from onchip.planners.fusion.reproduced.dag import Dag
from onchip.planners.fusion.reproduced.spaces import best_intervals, dnnvm_lines, efficient_s_lines

__all__ = ["Restricted", "restricted"]


@dataclass(frozen=True, slots=True)
class Restricted:
    """Groups in an order that can run, their bytes, the number of groups priced, and a note.

    `note` is a sentence for the user if the search needed help, else empty.
    """

    groups: tuple[int, ...]
    dram_bytes: int
    evaluated: int
    note: str = ""


def restricted(problem: FusionProblem, cost: GroupCostFunction) -> Restricted:
    """Return the result of `options.search` algorithm1 or algorithm1-top-down, or of `options.space`, exact.

    `cost` is the model's bytes of a group; every operator alone must have some. Raises `UsageError` if the
    top-down search meets too many sub-problems.
    """
    search, space = problem.options.search, problem.options.space
    dag = Dag.of(problem.network)
    cost = cache(cost)
    if space != "full":
        return _space(dag, cost, space)
    match search:
        case "algorithm1":
            return _runnable(dag, cost, bottom_up(dag, cost))
        case "algorithm1-top-down":
            try:
                return _runnable(dag, cost, top_down(dag, cost))
            except TooManyStates as found:
                reason = f"meets {found} on this network; algorithm1 and exact do not"
                raise UsageError(reason, item=f"--search {search}") from None
    raise UsageError("is no restricted search", item=f"--search {search}")


def _space(dag: Dag, cost: GroupCostFunction, space: str) -> Restricted:
    asked: set[int] = set()

    def counted(group: int) -> int | None:
        asked.add(group)
        return cost(group)

    lines = dnnvm_lines(dag) if space == "dnnvm" else efficient_s_lines(dag)
    groups, total = best_intervals(lines, counted, counted)
    return Restricted(dag.in_order(groups), total, len(asked))


def _runnable(dag: Dag, cost: GroupCostFunction, scheme: Scheme) -> Restricted:
    """Return the scheme, cut where its groups wait for each other: such a scheme is never passed on."""
    knots = dag.knots(scheme.groups)
    if not knots:
        return Restricted(dag.in_order(scheme.groups), scheme.cost, scheme.evaluated)
    mended = untangled(dag, cost, scheme)
    caught = sum(map(len, knots))
    note = (
        f"{caught} of Algorithm 1's groups wait for each other in a cycle; cut to run, "
        f"{mended.cost - scheme.cost:,} bytes dearer"
    )
    return Restricted(mended.groups, mended.cost, mended.evaluated, note)
