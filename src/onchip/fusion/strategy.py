"""Which partition an option asks for: the exact search, or one of the paper's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onchip.errors import UsageError
from onchip.fusion.algorithm1 import bottom_up
from onchip.fusion.cost import GroupCost
from onchip.fusion.dag import Dag
from onchip.fusion.downsets import best_scheme
from onchip.fusion.groups import connected_groups
from onchip.fusion.problem import FusionProblem

__all__ = ["Partition", "partition"]


@dataclass(frozen=True, slots=True)
class Partition:
    """Groups that can run one after the other, and a bound of the bytes of any partition allowed."""

    groups: tuple[GroupCost, ...]
    lower_bound_bytes: int
    complete: bool


def partition(problem: FusionProblem, price: Callable[[int], GroupCost | None]) -> Partition:
    """The partition that `options.search` asks for; every operator alone has a price."""

    def cost(members: int) -> int | None:
        found = price(members)
        return None if found is None else found.dram_bytes

    dag = Dag.of(problem.network)
    match problem.options.search:
        case "exact":
            scheme, complete = best_scheme(dag, connected_groups(dag, cost))
        case "algorithm1":
            scheme, complete = bottom_up(dag, cost), False
        case other:
            raise UsageError(f"{other} is not there yet", item="search")
    groups = tuple(found for g in scheme.groups if (found := price(g)) is not None)
    total = sum(g.dram_bytes for g in groups)
    return Partition(groups, total if complete else 0, complete)
