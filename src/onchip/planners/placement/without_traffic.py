"""The smallest scratchpad that needs no traffic at all: the first question of an architect."""

from __future__ import annotations

from dataclasses import dataclass, replace

from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.limits import NO_LIMITS, Limits
from onchip.planners.placement.options import PlacementOptions
from onchip.planners.placement.planning import plan
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.search import minimum_peak
from onchip.planners.placement.weights import as_planned

__all__ = ["ZeroTraffic", "zero_traffic"]


@dataclass(frozen=True, slots=True)
class ZeroTraffic:
    """Budgets in bytes, over the allowed orders.

    No budget below `at_least` can do without traffic; `budget` can, and is None if none was found as small as
    the least peak: a peak counts bytes, and bytes may not pack.
    """

    at_least: int
    budget: int | None


def zero_traffic(
    network: Network, chip: Chip, options: PlacementOptions, limits: Limits = NO_LIMITS
) -> ZeroTraffic:
    """Return the least budget whose plan has no traffic, with the proof that none below it has.

    The least peak is a lower bound; a plan in exactly that many bytes without traffic makes it the answer.
    """
    planned = as_planned(network, chip, options)
    problem = Problem.of(planned, chip.alignment_bytes, in_place=options.in_place)
    if options.order == "given":
        problem = problem.in_order(network.order)
    peak = minimum_peak(problem, limits=limits)
    if not peak.complete:
        return ZeroTraffic(peak.bound, None)
    there = plan(network, chip, peak.value, replace(options, objective="traffic"), limits)
    return ZeroTraffic(peak.value, peak.value if there.result.traffic_bytes == 0 else None)
