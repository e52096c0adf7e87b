"""The planners that a comparison sets beside placement, each with its defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.plans import Plan

__all__ = ["PLANNERS", "Limited", "OtherPlanner"]


@dataclass(frozen=True, slots=True)
class Limited:
    """What bounds one row: seconds, bytes of search states, a seed, and whether Ctrl-C was pressed."""

    time_limit: float | None
    memory_limit: int
    seed: int
    stopped: Callable[[], bool]


Solve = Callable[[Network, Chip, int, Limited], Plan | str]
"""Gives the plan, or in a few words why it has none that runs. Raises what the planner raises."""


@dataclass(frozen=True, slots=True)
class OtherPlanner:
    """A planner by its name; `title` says what it may do that placement may not, `searches` whether more time
    may give a better plan."""

    name: str
    title: str
    solve: Solve
    searches: bool = True


def _joint(network: Network, chip: Chip, budget: int, limits: Limited) -> Plan | str:
    from onchip.planners.joint import plan
    from onchip.planners.placement import PlacementOptions

    placing = PlacementOptions(
        time_limit=limits.time_limit, memory_limit=limits.memory_limit, seed=limits.seed
    )
    return plan(network, chip, budget, placing=placing, cancelled=limits.stopped)


def _fusion(network: Network, chip: Chip, budget: int, limits: Limited) -> Plan | str:
    from onchip.planners.fusion.fuse import fuse
    from onchip.planners.fusion.options import FusionOptions

    options = FusionOptions(time_limit=limits.time_limit, memory_limit=limits.memory_limit)
    made = fuse(network, chip, budget, options, cancelled=limits.stopped, beside=False)
    return made.plan or made.not_executable


def _branches(network: Network, chip: Chip, budget: int, limits: Limited) -> Plan | str:
    from onchip.planners.branches.options import BranchOptions
    from onchip.planners.branches.plan import plan_branches

    made = plan_branches(network, chip, budget, BranchOptions(rules="ours"))
    if not made.detection.modules:
        return "the network has no modules of branches"
    return made.plan


PLANNERS = {
    planner.name: planner
    for planner in (
        OtherPlanner("joint", "onchip plan --fuse: groups in tiles and whole tensors", _joint),
        OtherPlanner("fusion", "onchip fuse: groups in tiles, through DRAM between them", _fusion),
        OtherPlanner("branches", "onchip branches --rules ours: modules on chip", _branches, False),
    )
}
"""By name, in the order of the table."""
