"""Strategy `exact`: the complete search over orders and evictions, then addresses for what it found."""

from __future__ import annotations

from dataclasses import replace

from onchip.placement.addressed import with_addresses
from onchip.placement.search import minimum_traffic
from onchip.placement.strategy import Answer, Task

__all__ = ["solve"]


def solve(task: Task) -> Answer:
    """The least traffic, proved unless a limit is hit or no cheapest schedule packs."""
    limits = task.limits
    # Finding out that time is up must leave some of it for the addresses.
    share = limits if limits.seconds is None else replace(limits, seconds=limits.seconds * 0.7)
    found = minimum_traffic(task.problem, task.budget, limits=share)
    return with_addresses(task.problem, task.budget, task.alignment, found, limits.after(found.seconds))
