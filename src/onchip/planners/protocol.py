"""What a planner is to everybody who asks one: its name, its options, and the function that solves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from onchip.base.errors import NegativeAnswer
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.limits import Limits
from onchip.plans import Plan

__all__ = ["HOW_HARD", "FiguresOnly", "Planner", "Solve", "recorded"]

Solve = Callable[[Network, Chip, int, Any, Limits], Plan]
"""The plan of a network on a chip within so many bytes, by options of the planner's kind, within limits.

Raises `Infeasible` and other negative answers, and `InputError` where the chip lacks a figure.
"""

HOW_HARD = ("time_limit", "memory_limit")
"""Options that say how hard to search: the business of who asks, never of a file."""


class FiguresOnly(NegativeAnswer):
    """What was found is no plan that runs, and the text says why; `figures` are what can be said of it."""

    def __init__(self, reason: str, figures: Mapping[str, Any]) -> None:
        super().__init__(reason)
        self.figures = dict(figures)


@dataclass(frozen=True, slots=True)
class Planner:
    """A planner that `compare`, `sweep`, what-if and `check --prove` can ask.

    `name` is what its plans record as `planner` among their options, `title` says in a few words what it may
    do. `options` is a frozen dataclass; a plan records those that say what was asked, by the names of the
    fields. How hard to search stands in the limits, and fields `time_limit`, `memory_limit` and `seed` of the
    options are where a caller finds those.
    """

    name: str
    title: str
    options: type[Any]
    solve: Solve
    section: str = ""
    """What a sweep's spec calls it; its name where that is empty."""
    searches: bool = True
    """Whether more time may give a better plan."""
    anywhere: bool = True
    """Whether it can be asked for a number of bytes on any chip. Others only make their own plans again."""
    compared: Solve | None = None
    """How a comparison asks it, where that is not `solve`; the options are the planner's defaults."""
    exactly: Mapping[str, Any] = field(default_factory=dict)
    """Options with which it searches to the end: a proof sets them, whatever the plan records."""
    read_options: Callable[[Plan], Any] | None = None
    """The options that a plan records, where they are not simply those of the fields' names."""
    read_network: Callable[[Plan], Network] | None = None
    """The network that was asked about, where a plan holds another."""

    @property
    def key(self) -> str:
        """What a sweep's spec calls it."""
        return self.section or self.name

    def options_of(self, plan: Plan) -> Any:
        """The options that a plan records, so that it can be made again."""
        return recorded(self.options, plan) if self.read_options is None else self.read_options(plan)

    def network_of(self, plan: Plan) -> Network:
        """The network that a plan was made for."""
        return plan.network if self.read_network is None else self.read_network(plan)


def recorded(kind: type[Any], plan: Plan, *, but: tuple[str, ...] = (), **more: Any) -> Any:
    """Options of a kind with what a plan records of them, `but` for some, and `more`."""
    known = {f.name for f in fields(kind)} - {*HOW_HARD, *but}
    return kind(**{key: value for key, value in plan.options.items() if key in known}, **more)
