"""The on-line variant (Optimus section 6, Algorithm 3): prepared once, planned again for every buffer size.

Three rules keep the space small enough to search while a network waits. If one member reads the output of
another, all its readers are in the group: a tensor that is written back for one reader gains little by
staying for another. Members are connected: each feeds another or shares an input with it. And a group has at
most n operators, where n comes from a table made beforehand: memo[n] is the fewest bytes of the feature maps
of any group of n operators whose sub-groups are a quarter of the output high and wide; smaller ones would
fetch the weights more than 16 times. With a budget between memo[n] and memo[n + 1], larger groups are not
tried.

Our reading where the listing is missing: `memo` counts feature maps alone, of the groups that obey the other
two rules; t_w is applied to every map's width (without its halo); phi is the streamed set with the fewest
bytes. Within the rules the search is exact, unlike Algorithm 1, which the paper builds on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.fusion.cost import GroupCost
from onchip.planners.fusion.options import FusionOptions
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.search import Alone, Fuser, Space
from onchip.planners.limits import NO_LIMITS, Limits

__all__ = ["OnlineFuser", "OnlinePlan"]

GROUPS_PER_OPERATOR = 20
"""The most groups that are prepared; with more, the table ends at a smaller group."""

MOST_STATES = 2_000
"""The most sets of finished operators that a plan follows before it keeps only the most promising ones."""

LARGEST = 12
"""The table's largest group: larger ones bring nothing on our networks."""


@dataclass(frozen=True, slots=True)
class OnlinePlan:
    """Groups in an order that can run, for one budget.

    `limit` is the table's n: no group has more operators. `complete`: the search within the rules was
    complete. It does not cover groups that break the rules, so a plan is never called optimal.
    """

    groups: tuple[GroupCost, ...]
    budget: int
    limit: int
    complete: bool
    seconds: float

    @property
    def dram_bytes(self) -> int:
        """Bytes of all groups together."""
        return sum(group.dram_bytes for group in self.groups)


class OnlineFuser:
    """A network prepared for one chip: its size table and the groups that the rules allow.

    `most` is the largest budget in bytes that will be asked for (by default the chip's scratchpad).
    """

    def __init__(
        self,
        network: Network,
        chip: Chip,
        options: FusionOptions | None = None,
        *,
        most: int | None = None,
        alone: Alone | None = None,
    ) -> None:
        budget = int(chip.require("scratchpad_bytes", "fusion")) if most is None else most
        self._prepare(FusionProblem.of(network, chip, options or FusionOptions(), budget), alone)

    @classmethod
    def of(cls, problem: FusionProblem, *, alone: Alone | None = None) -> OnlineFuser:
        """Prepare a problem; its budget is the largest that will be asked for."""
        made = cls.__new__(cls)
        made._prepare(problem, alone)
        return made

    def _prepare(self, problem: FusionProblem, alone: Alone | None) -> None:
        self.most = problem.budget
        self.table = size_table(problem)
        self._fuser = Fuser(problem, Space(largest=max(1, len(self.table)), whole_fan_out=True), alone=alone)
        self._fuser.list_groups(self.most)

    def limit(self, budget: int) -> int:
        """Return n: the most operators of a group at `budget` bytes, at least 1."""
        return max((n for n, least in enumerate(self.table, 1) if least <= budget), default=1)

    def plan(self, budget: int, *, limits: Limits = NO_LIMITS, most_states: int = MOST_STATES) -> OnlinePlan:
        """Return the best groups within the rules for `budget` bytes.

        Raises `ValueError` for more than `most` bytes, `Infeasible` naming an operator that fits nowhere.
        """
        if budget > self.most:
            raise ValueError(f"prepared for {self.most:,} bytes, not for {budget:,}")
        began = time.perf_counter()
        limit = self.limit(budget)
        found = self._fuser.best(budget, largest=limit, limits=limits, most_states=most_states)
        return OnlinePlan(found.groups, budget, limit, found.complete, time.perf_counter() - began)


def size_table(problem: FusionProblem) -> tuple[int, ...]:
    """Return memo[1], memo[2], ...: the bytes of a group of that many operators, up to the budget.

    Ascending, for a group takes no less than the groups in it; a size without a group takes the next one's.
    Ends before the first that needs more than the problem's budget, at `LARGEST`, and at more than
    `GROUPS_PER_OPERATOR` groups for every operator.
    """
    most_groups = GROUPS_PER_OPERATOR * len(problem.operators)
    narrow = _quarter_wide(problem)
    table: list[int] = []
    for n in range(1, min(LARGEST, len(narrow.operators)) + 1):
        fuser = Fuser(narrow, Space(largest=n, whole_fan_out=True))
        if n == 1:
            groups = [1 << v for v in range(len(narrow.operators))]
        else:
            found = fuser.prepare(narrow.budget, most_groups=most_groups)
            if not found.complete:
                break
            groups = [group for group, _ in found.groups if group.bit_count() == n]
        sizes = [size for group in groups if (size := fuser.least_scratch(group, 4)) is not None]
        least = max([min(sizes, default=problem.budget + 1), *table[-1:]])
        if least <= problem.budget:
            table += [least] * (n - len(table))
        elif sizes:
            break
    return tuple(table)


def _quarter_wide(problem: FusionProblem) -> FusionProblem:
    """Return the problem with maps a quarter as wide (t_w = O_w / 4) and no weights, which memo excludes."""
    maps = tuple(None if m is None else replace(m, columns=-(-m.columns // 4)) for m in problem.maps)
    operators = tuple(replace(op, weight_bytes=0, tile_bytes=0) for op in problem.operators)
    return replace(problem, maps=maps, operators=operators)
