"""The search that the options ask for: the exact one, or one of the paper's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onchip.base.errors import UsageError
from onchip.planners.fusion.cost import GroupCost
from onchip.planners.fusion.least import least_alone, least_bytes
from onchip.planners.fusion.milp import solve_large
from onchip.planners.fusion.online import OnlineFuser
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.reproduced.restricted import restricted
from onchip.planners.fusion.search import Fuser, Partition
from onchip.planners.limits import NO_LIMITS, Limits

__all__ = ["Chosen", "Priced", "partition"]

MOST_SETS = 100_000
"""The most groups and states that the exact search lists; beyond, column generation takes over."""

PATIENCE = 60.0
"""Seconds of column generation if no limit is requested."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Groups that can run one after the other, and a bound of the bytes of every allowed partition.

    `complete`: the bound is reached. `note` is a sentence for the user, or empty.
    """

    groups: tuple[GroupCost, ...]
    lower_bound_bytes: int
    complete: bool
    note: str = ""


class Priced:
    """Prices of groups by bitset, each computed once."""

    def __init__(self, problem: FusionProblem) -> None:
        self.problem = problem
        self.fuser = Fuser(problem)
        self._known: dict[int, GroupCost | None] = {}

    @property
    def count(self) -> int:
        """The number of groups that were priced."""
        return len(self._known)

    def __call__(self, members: int) -> int | None:
        found = self.group(members)
        return None if found is None else found.dram_bytes

    def group(self, members: int) -> GroupCost | None:
        """Return the cheapest way to run a group, None if there is none."""
        if members not in self._known:
            self._known[members] = self.fuser.cost(members)
        return self._known[members]


def partition(problem: FusionProblem, price: Priced, limits: Limits = NO_LIMITS) -> Chosen:
    """Return the partition that `options.search` and `options.space` ask for.

    Every operator alone has a price. Raises `UsageError` for options that do not go together.
    """
    options = problem.options
    if options.space != "full" and options.search != "exact":
        raise UsageError(
            f"goes with --search exact only, not {options.search}", item=f"--space {options.space}"
        )
    if options.search == "online":
        plan = OnlineFuser.of(problem).plan(problem.budget)
        return Chosen(plan.groups, least_bytes(problem), False)
    if options.search == "exact" and options.space == "full":
        found = _exact(problem, price.fuser, limits)
        if name := _thinned(problem, found.groups):
            least = least_bytes(problem)
            reached = sum(g.dram_bytes for g in found.groups) == least
            return Chosen(found.groups, least, reached, f"of {name} not every size of boxes was tried")
        bound = (
            found.lower_bound_bytes if found.complete else max(found.lower_bound_bytes, least_bytes(problem))
        )
        return Chosen(found.groups, bound, found.complete)
    chosen = restricted(problem, price)
    groups = tuple(g for members in chosen.groups if (g := price.group(members)) is not None)
    note = chosen.note
    if options.space != "full":
        note = f"the best of the groups that {options.space} looks at; others were not tried"
    return Chosen(groups, least_bytes(problem), False, note)


def _thinned(problem: FusionProblem, groups: Iterable[GroupCost]) -> str:
    """Return the name of an operator that may have better boxes; empty if none has.

    It runs alone. Whole it may move more than in boxes, which skip elements that nothing needs.
    """
    for group in groups:
        v = group.members.bit_length() - 1
        if problem.operators[v].thinned and group.dram_bytes > least_alone(problem, v):
            return problem.network.operators[v].name
    return ""


def _exact(problem: FusionProblem, fuser: Fuser, limits: Limits) -> Partition:
    """Run the exact search, and column generation if that exceeds its limits."""
    found = fuser.best(limits=limits, most_groups=MOST_SETS, most_states=MOST_SETS)
    if found.complete or found.end in ("time", "stopped"):
        return found
    return solve_large(problem, found, limits.patient(PATIENCE), fuser=fuser)
