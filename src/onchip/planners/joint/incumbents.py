"""What fusion alone and placement alone do with a network: a joint plan is never worse than either."""

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


def fused_alone(problem: FusionProblem, fuser: Fuser | None, limits: Limits) -> Incumbent | None:
    """The best partition that fusion finds, every tensor between groups in DRAM.

    None where some operator fits in no tiling, though it may fit whole. `fuser` has listed all groups; None
    where they are too many: then some are put together, and column generation looks for others.
    """
    began = time.perf_counter()
    limits = _quiet(limits)
    try:
        if fuser is not None:
            price = Priced(problem)
            price.fuser = fuser
            found = partition(problem, price, limits).groups
        else:
            worth_it = (limits.left() or 0.0) >= WORTH_IT  # a round of column generation alone takes long
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
    """The best that placement finds, no operator fused or tiled; None where some operator does not fit.

    Every other negative answer passes through: they are of pins, states and objectives, which joint planning
    refuses, or of a plan that the checker refuses, which is a fault of placement's and not to be hidden.
    """
    began = time.perf_counter()
    try:
        made = place(network, chip, budget, options, _quiet(limits))
    except Infeasible:
        return None
    return Incumbent("placement", made.program, (), made.result.dram_bytes, time.perf_counter() - began)


def _quiet(limits: Limits) -> Limits:
    """Limits of a search that says nothing of itself, and ends."""
    return replace(limits.patient(SECONDS), progress=None)
