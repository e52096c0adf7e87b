"""Fusion from end to end: the problem, the partition, the program, the certificate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from onchip.base.errors import UsageError
from onchip.check import certify
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.fusion.claim import space_of
from onchip.planners.fusion.cost import GroupCost, misfit
from onchip.planners.fusion.least import least_bytes
from onchip.planners.fusion.online import OnlineFuser
from onchip.planners.fusion.options import DEFAULTS, FusionOptions
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.program import in_order, program, why_not
from onchip.planners.fusion.reproduced.baselines import Baselines, baselines
from onchip.planners.fusion.strategy import Chosen, Priced, partition
from onchip.planners.limits import Limits
from onchip.plans import Group, Plan, Status

__all__ = ["FusedPlan", "PreparedFusion", "fuse"]

OTHERS_SECONDS = 20.0
"""The most seconds of the search for baselines, which are only a comparison."""


@dataclass(frozen=True)
class FusedPlan:
    """A partition of a network into groups, its figures in bytes of all images, and its plan if it has one.

    `groups` are in program order, and so are `declared`, which omit operators that run whole.
    `lower_bound_bytes` bounds `dram_bytes` over the partitions that the options allow. Options that describe
    no machine have figures only: then `plan` is None and `not_executable` gives the reason. `baselines` are
    the bytes of other fusers, under the same options; those in `baselines_incomplete` are only the best that
    was found. `note` is a sentence about the search, or empty.
    """

    problem: FusionProblem
    groups: tuple[GroupCost, ...]
    declared: tuple[Group, ...]
    plan: Plan | None
    not_executable: str
    status: Status
    lower_bound_bytes: int
    baselines: Mapping[str, int]
    seconds: float
    note: str = ""
    baselines_incomplete: tuple[str, ...] = ()

    @property
    def space(self) -> str:
        """The partitions and tilings that `status` and `lower_bound_bytes` range over."""
        return space_of(self.problem.options, self.problem.channel_tile, self.problem.least_rows)

    @property
    def executable(self) -> bool:
        """True if there is a plan that runs."""
        return self.plan is not None

    @property
    def dram_bytes(self) -> int:
        """All bytes that cross between DRAM and the chip, weights included."""
        return sum(g.dram_bytes for g in self.groups)


def fuse(
    network: Network,
    chip: Chip,
    budget: int | None = None,
    options: FusionOptions = DEFAULTS,
    limits: Limits | None = None,
    *,
    beside: bool = True,
) -> FusedPlan:
    """Fuse a network (read at its batch) within `budget` bytes; None: the budget that the chip states.

    `optimal` if the search over partitions was complete, else `feasible` with a bound. Raises `Infeasible`
    naming the operator that fits in no tiling, `UsageError` if neither caller nor chip states a budget.
    When a limit is reached, or on Ctrl-C, the result is the best so far; `limits` override those in
    `options`. Without `beside` no baselines are computed, which take as long as the rest.
    """
    began = time.perf_counter()
    limits = limits or Limits.of(options)
    if budget is None:
        budget = chip.scratchpad_bytes
    if budget is None:
        raise UsageError(f"chip {chip.name} does not state its scratchpad: it is needed", item="budget")
    problem = FusionProblem.of(network, chip, options, budget)
    price = Priced(problem)
    _refuse_if_infeasible(problem, price)
    with limits.interruptible() as limits:
        found = partition(problem, price, limits)
        others = Baselines({}, ())
        if beside:  # in the remaining time
            others = baselines(problem, price, limits.at_most(OTHERS_SECONDS).over)
    return _certified(problem, chip, found, others, began)


class PreparedFusion:
    """A network prepared for one chip: fused again for every buffer size (Optimus, section 6, Algorithm 3).

    `most` is the largest budget in bytes that will be asked for. Raises the errors of `fuse`.
    """

    def __init__(self, network: Network, chip: Chip, most: int, options: FusionOptions = DEFAULTS) -> None:
        self.chip = chip
        self.problem = FusionProblem.of(network, chip, replace(options, search="online"), most)
        self._fuser = OnlineFuser.of(self.problem)

    def fuse(self, budget: int) -> FusedPlan:
        """Return the best groups for `budget` bytes within the rules of the on-line variant, certified.

        Never `optimal`: groups that break the rules were not tried. Raises `Infeasible` naming the operator
        that fits in no tiling, `UsageError` for more than `most` bytes.
        """
        began = time.perf_counter()
        if budget > self.problem.budget:
            reason = f"{budget:,} bytes: prepared for {self.problem.budget:,} at most"
            raise UsageError(reason, item="budget")
        problem = replace(self.problem, budget=budget)
        found = Chosen(self._fuser.plan(budget).groups, least_bytes(problem), False)
        return _certified(problem, self.chip, found, Baselines({}, ()), began)


def _certified(
    problem: FusionProblem, chip: Chip, found: Chosen, others: Baselines, began: float
) -> FusedPlan:
    """Return a partition with its plan, if a machine can run it, and its figures."""
    network, budget, options = problem.network, problem.budget, problem.options
    groups = in_order(network, found.groups)
    reason = why_not(problem, groups)
    status: Status = "optimal" if found.complete else "feasible"
    instructions, declared = program(problem, groups)
    seconds = time.perf_counter() - began
    plan = None
    if not reason:
        plan = certify(
            network,
            chip,
            budget,
            instructions,
            status=status,
            lower_bound_bytes=0,
            dram_lower_bound_bytes=found.lower_bound_bytes,
            space=space_of(options, problem.channel_tile, problem.least_rows),
            seconds=seconds,
            groups=declared,
            options=_recorded(network, options),
        )
        if plan.result.dram_bytes != sum(g.dram_bytes for g in groups):
            raise AssertionError("the cost model and the checker disagree about what crosses")
    return FusedPlan(
        problem,
        groups,
        declared,
        plan,
        reason,
        status,
        found.lower_bound_bytes,
        others.dram_bytes,
        seconds,
        found.note,
        others.incomplete,
    )


def _refuse_if_infeasible(problem: FusionProblem, price: Priced) -> None:
    """Raise `Infeasible` if some operators alone fit in no tiling, with the largest need among them."""
    hard = [misfit(problem, v) for v in problem.network.order if price(1 << v) is None]
    if hard:
        worst = max(hard, key=lambda no: no.needs)
        raise worst.but(
            operators=tuple(no.operator for no in hard if no.needs == worst.needs),
            proved=all(no.proved for no in hard),
            space=space_of(problem.options, problem.channel_tile, problem.least_rows),
        )


def _recorded(network: Network, options: FusionOptions) -> dict[str, str | int | float | bool | None]:
    """Return the plan's record of how it was made."""
    made: dict[str, str | int | float | bool | None] = {
        "planner": "fusion",
        "granularity": network.granularity,
        "element": network.element,
        "weights": "streamed",
        "objective": "dram",
    }
    for f in fields(options):
        if f.name not in ("time_limit", "memory_limit"):
            made[f.name] = getattr(options, f.name)
    return made
