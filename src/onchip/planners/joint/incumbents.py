"""What fusion alone and placement alone do with a network: a joint plan is never worse than either."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from onchip.base.errors import Infeasible
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.fusion import FusionProblem
from onchip.planners.fusion.milp import solve_large
from onchip.planners.fusion.program import in_order
from onchip.planners.fusion.program import program as fused_program
from onchip.planners.fusion.search import Fuser, Limits, Space
from onchip.planners.fusion.strategy import Priced, partition
from onchip.planners.placement import PlacementOptions
from onchip.planners.placement import plan as place
from onchip.plans import Group, Instruction

__all__ = ["Incumbent", "fused_alone", "placed_alone"]

SECONDS = 30.0
"""So long at most does either planner search for a start, when the caller sets no limit."""

WORTH_IT = 20.0
"""Seconds below which column generation does not begin."""

PUT_TOGETHER, FEW, SMALL = 0.3, 20_000, 6
"""Of networks with too many groups: the part of the time in which some are put together, how many, and of at
most how many operators."""


@dataclass(frozen=True, slots=True)
class Incumbent:
    """A program that runs the network, by whom, its groups, and the bytes that it moves."""

    planner: str
    program: tuple[Instruction, ...]
    groups: tuple[Group, ...]
    dram_bytes: int
    seconds: float


def fused_alone(
    problem: FusionProblem, fuser: Fuser | None, cancelled: Callable[[], bool], seconds: float | None
) -> Incumbent | None:
    """The best partition that fusion finds, every tensor between groups in DRAM.

    None where some operator fits in no tiling, though it may fit whole. `fuser` has listed all groups; None
    where they are too many: then some are put together, and column generation looks for others.
    """
    began = time.perf_counter()
    limit = SECONDS if seconds is None else seconds
    try:
        if fuser is not None:
            limited = replace(problem, options=replace(problem.options, time_limit=limit))
            price = Priced(limited)
            price.fuser = fuser
            found = partition(limited, price, cancelled=cancelled).groups
        else:
            part = PUT_TOGETHER if limit >= WORTH_IT else 1.0
            few = Limits(limit * part, groups=FEW, states=FEW, cancelled=cancelled)
            first = Fuser(problem, Space(largest=SMALL)).best(limits=few)
            found = first.groups
            if limit >= WORTH_IT:  # a round of column generation alone may take longer
                rest = Limits(limit * (1 - PUT_TOGETHER), cancelled=cancelled)
                found = solve_large(problem, first, rest).groups
    except Infeasible:
        return None
    groups = in_order(problem.network, found)
    instructions, declared = fused_program(problem, groups)
    moved = sum(g.dram_bytes for g in groups)
    return Incumbent("fusion", instructions, declared, moved, time.perf_counter() - began)


def placed_alone(
    network: Network, chip: Chip, budget: int, options: PlacementOptions, cancelled: Callable[[], bool]
) -> Incumbent | None:
    """The best that placement finds, no operator fused or tiled; None where some operator does not fit.

    Every other negative answer passes through: they are of pins, states and objectives, which joint planning
    refuses, or of a plan that the checker refuses, which is a fault of placement's and not to be hidden.
    """
    began = time.perf_counter()
    limit = SECONDS if options.time_limit is None else options.time_limit
    try:
        made = place(network, chip, budget, replace(options, time_limit=limit), cancelled=cancelled)
    except Infeasible:
        return None
    return Incumbent("placement", made.program, (), made.result.dram_bytes, time.perf_counter() - began)
