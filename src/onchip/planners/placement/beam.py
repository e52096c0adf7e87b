"""Strategy `beam`: it keeps only the `--beam-width` most promising partial schedules of each length.

It proves nothing itself: the lower bound is that of windows searched exactly
(`onchip.planners.placement.partition`).
"""

from __future__ import annotations

from dataclasses import replace

from onchip.planners.limits import Limits
from onchip.planners.placement.addressed import with_addresses
from onchip.planners.placement.partition import partition_bound
from onchip.planners.placement.search import Found, minimum_traffic
from onchip.planners.placement.strategy import Answer, Task

__all__ = ["beam", "solve"]


def solve(task: Task) -> Answer:
    """Return the best schedule of a beam, with a lower bound on any."""
    limits, width = task.limits, task.options.beam_width
    found = beam(task, width, limits.share(0.7))
    answer = with_addresses(task.problem, task.budget, task.alignment, found, limits, other_schedules=None)
    return replace(answer, figures={"beam_width": width})


def beam(task: Task, width: int, limits: Limits) -> Found:
    """Return the beam's schedule and the partition bound, which gets a third of the time."""
    found = minimum_traffic(task.problem, task.budget, limits=limits.share(2 / 3), beam_width=width)
    if found.value == 0 or found.end == "stopped":
        return found
    least = partition_bound(task.problem, found.order, task.budget, limits)
    return replace(found, bound=max(found.bound, min(found.value, least)))
