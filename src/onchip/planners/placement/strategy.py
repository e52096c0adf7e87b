"""The task and the answer of every strategy, and the strategies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import cast

from onchip.network import Network
from onchip.planners.limits import Limits
from onchip.planners.placement.options import DEFAULTS, PlacementOptions
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.program import Placed

__all__ = ["Answer", "Strategy", "Task", "strategy"]


@dataclass(frozen=True)
class Task:
    """One network to place within `budget` bytes. `problem.order` is set if the order is given.

    `network` is there for names and types only; `problem` is to be solved.
    """

    network: Network
    problem: Problem
    budget: int
    alignment: int
    limits: Limits
    options: PlacementOptions = DEFAULTS


@dataclass(frozen=True)
class Answer:
    """A placed schedule, its cost, and a proved bound of all others.

    `placed` are residencies with addresses, in steps of `order`; `scratch` an address per operator with a
    workspace. `traffic` is the non-compulsory DRAM bytes of this schedule; no plan for the allowed orders has
    less than `bound`. `figures` are the strategy's own (variables, states, ...), written into the plan's
    options.
    """

    order: tuple[int, ...]
    placed: tuple[Placed, ...]
    scratch: Mapping[int, int]
    traffic: int
    bound: int = 0
    figures: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)


Strategy = Callable[[Task], Answer]

_WHERE = {
    "beam": "onchip.planners.placement.beam",
    "dnc": "onchip.planners.placement.dnc",
    "exact": "onchip.planners.placement.exact",
    "greedy": "onchip.planners.placement.greedy",
    "ilp": "onchip.planners.placement.ilp",
}
"""Module of each strategy; its function is `solve(task) -> Answer`. Imported on use."""


def strategy(name: str) -> Strategy:
    """Return the strategy of that name."""
    return cast(Strategy, import_module(_WHERE[name]).solve)
