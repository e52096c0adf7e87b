"""Which partition an option asks for: the exact search, or one of the paper's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onchip.fusion.baselines import oracle_bytes
from onchip.fusion.cost import GroupCost
from onchip.fusion.dag import Dag
from onchip.fusion.downsets import best_scheme
from onchip.fusion.groups import connected_groups
from onchip.fusion.online import OnlineFuser
from onchip.fusion.problem import FusionProblem
from onchip.fusion.restricted import restricted
from onchip.fusion.search import Fuser

__all__ = ["Partition", "partition"]


@dataclass(frozen=True, slots=True)
class Partition:
    """Groups that can run one after the other, and a bound of the bytes of any partition allowed.

    `note` is a sentence for the user where the search had to be helped, else empty.
    """

    groups: tuple[GroupCost, ...]
    lower_bound_bytes: int
    complete: bool
    note: str = ""


def partition(problem: FusionProblem, price: Callable[[int], GroupCost | None]) -> Partition:
    """The partition that `options.search` asks for; every operator alone has a price."""

    def cost(members: int) -> int | None:
        found = price(members)
        return None if found is None else found.dram_bytes

    if problem.options.search == "online":
        plan = OnlineFuser.of(problem, alone=lambda _, members: price(members)).plan(problem.budget)
        return Partition(plan.groups, oracle_bytes(problem), False)
    if problem.options.search != "exact" or problem.options.space != "full":
        return _restricted(problem, price)
    dag = Dag.of(problem.network)
    scheme, complete = best_scheme(dag, connected_groups(dag, cost))
    groups = tuple(found for g in scheme.groups if (found := price(g)) is not None)
    total = sum(g.dram_bytes for g in groups)
    return Partition(groups, total if complete else 0, complete)


def _restricted(problem: FusionProblem, price: Callable[[int], GroupCost | None]) -> Partition:
    """Algorithm 1, or the best of another fuser's space, which is proved the best that is allowed."""
    fuser = Fuser(problem)

    def described(members: int) -> GroupCost | None:
        banded = fuser.cost(members)
        return price(members) if banded is None and members.bit_count() == 1 else banded

    def cost(members: int) -> int | None:
        found = described(members)
        return None if found is None else found.dram_bytes

    chosen = restricted(problem, cost)
    groups = tuple(found for g in chosen.groups if (found := described(g)) is not None)
    exact = problem.options.search == "exact"
    return Partition(groups, chosen.dram_bytes if exact else oracle_bytes(problem), exact, chosen.note)
