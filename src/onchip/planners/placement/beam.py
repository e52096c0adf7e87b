"""Strategy `beam`: of all partial schedules only the `--beam-width` most promising of each length are kept.

No proof of its own: the lower bound is that of windows searched exactly
(`onchip.planners.placement.partition`).
"""

from __future__ import annotations

import time
from dataclasses import replace

from onchip.planners.placement.addressed import with_addresses
from onchip.planners.placement.partition import partition_bound
from onchip.planners.placement.search import Found, Limits, minimum_traffic
from onchip.planners.placement.strategy import Answer, Task

__all__ = ["beam", "solve"]


def solve(task: Task) -> Answer:
    """The best schedule of a beam, with a lower bound on any."""
    limits, width = task.limits, task.options.beam_width
    share = limits if limits.seconds is None else limits.at_most(limits.seconds * 0.7)
    began = time.perf_counter()
    found = beam(task, width, share)
    left = limits.after(time.perf_counter() - began)
    answer = with_addresses(task.problem, task.budget, task.alignment, found, left, other_schedules=None)
    return replace(answer, figures={"beam_width": width})


def beam(task: Task, width: int, limits: Limits) -> Found:
    """The beam's schedule and the partition bound, which gets a third of the time."""
    share = limits if limits.seconds is None else limits.at_most(limits.seconds * 2 / 3)
    found = minimum_traffic(task.problem, task.budget, limits=replace(share, beam_width=width))
    if found.value == 0 or found.end == "stopped":
        return found
    left = limits.after(found.seconds)
    least = partition_bound(task.problem, found.order, task.budget, left)
    return replace(found, bound=max(found.bound, min(found.value, least)))
