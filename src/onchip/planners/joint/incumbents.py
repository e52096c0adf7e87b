"""The results of fusion alone and placement alone: a joint plan is never worse than either, as tried here."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from onchip.base.errors import Infeasible
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.fusion import FusionProblem
from onchip.planners.fusion.milp import solve_large
from onchip.planners.fusion.program import in_order
from onchip.planners.fusion.program import program as fused_program
from onchip.planners.fusion.search import Fuser, Space
from onchip.planners.fusion.strategy import Priced, partition
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions
from onchip.planners.placement import plan as place
from onchip.plans import Group, Instruction

__all__ = ["Incumbent", "fused_alone", "placed_alone"]

SECONDS = 30.0
"""The most seconds that either planner searches for a start if the caller sets no limit."""

WORTH_IT = 20.0
"""Column generation does not begin with fewer seconds left."""

PUT_TOGETHER, FEW, SMALL = 0.3, 20_000, 6
"""For networks with too many groups: the share of the time in which some groups are grown, their number, and
their most operators."""


@dataclass(frozen=True, slots=True)
class Incumbent:
    """A program that runs the network, its planner, its groups, and the bytes that it moves."""

    planner: str
    program: tuple[Instruction, ...]
    groups: tuple[Group, ...]
    dram_bytes: int
    seconds: float


def fused_alone(
    problem: FusionProblem, fuser: Fuser | None, limits: Limits, *, grown: bool = False
) -> Incumbent | None:
    """Return the best partition that fusion finds, every tensor between groups in DRAM.

    None if some operator fits in no tiling, though it may fit whole. `fuser` has listed all groups; None if
    there are too many: then some are grown, and column generation looks for others, unless only `grown`
    groups are wanted.
    """
    began = time.perf_counter()
    limits = _quiet(limits)
    try:
        if fuser is not None:
            price = Priced(problem)
            price.fuser = fuser
            found = partition(problem, price, limits).groups
        else:
            # A round of column generation alone takes long.
            worth_it = not grown and (limits.left() or 0.0) >= WORTH_IT
            few = limits.share(PUT_TOGETHER) if worth_it else limits
            first = Fuser(problem, Space(largest=SMALL)).best(limits=few, most_groups=FEW, most_states=FEW)
            found = solve_large(problem, first, limits).groups if worth_it else first.groups
    except Infeasible:
        return None
    groups = in_order(problem.network, found)
    instructions, declared = fused_program(problem, groups)
    moved = sum(g.dram_bytes for g in groups)
    return Incumbent("fusion", instructions, declared, moved, time.perf_counter() - began)


def placed_alone(
    network: Network, chip: Chip, budget: int, options: PlacementOptions, limits: Limits
) -> Incumbent | None:
    """Return the best plan of placement, no operator fused or tiled; None if some operator does not fit.

    Every other negative answer is passed on: it concerns pins, states and objectives, which joint planning
    refuses, or a plan that the checker refuses, a fault of placement that must not be hidden.
    """
    began = time.perf_counter()
    try:
        made = place(network, chip, budget, options, _quiet(limits))
    except Infeasible:
        return None
    return Incumbent("placement", made.program, (), made.result.dram_bytes, time.perf_counter() - began)


def _quiet(limits: Limits) -> Limits:
    """Return limits of a search that reports nothing, and ends."""
    return replace(limits.patient(SECONDS), progress=None)
