"""The interface of a planner: its name, its options, and the function that solves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from onchip.base.errors import NegativeAnswer
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.network.repeats import folded
from onchip.planners.limits import Limits
from onchip.plans import Plan

__all__ = ["HOW_HARD", "FiguresOnly", "Planner", "Solve", "recorded"]

Solve = Callable[[Network, Chip, int, Any, Limits], Plan]
"""Returns the plan of a network on a chip within a number of bytes, by the planner's options, within limits.

Raises `Infeasible` and other negative answers, and `InputError` if the chip lacks a figure.
"""

HOW_HARD = ("time_limit", "memory_limit")
"""Options for the effort of a search: the caller's choice, never a file's."""


class FiguresOnly(NegativeAnswer):
    """The result is no plan that runs, for the reason in the text; `figures` are its known figures."""

    def __init__(self, reason: str, figures: Mapping[str, Any]) -> None:
        super().__init__(reason)
        self.figures = dict(figures)


@dataclass(frozen=True, slots=True)
class Planner:
    """A planner for `compare`, `sweep`, what-if and `check --prove`.

    `name` is recorded in its plans as the option `planner`, `title` describes its plans in a few words.
    `options` is a frozen dataclass; a plan records those that define the request, by the names of the fields.
    The effort of the search is in the limits, and callers find them in the fields `time_limit`,
    `memory_limit` and `seed` of the options.
    """

    name: str
    title: str
    options: type[Any]
    solve: Solve
    section: str = ""
    """Its name in a sweep's spec; `name` if empty."""
    searches: bool = True
    """True if more time may give a better plan."""
    anywhere: bool = True
    """True if it plans for any number of bytes on any chip. Others only make their own plans again."""
    compared: Solve | None = None
    """The solve function for comparisons, if not `solve`; the options are the planner's defaults."""
    exactly: Mapping[str, Any] = field(default_factory=dict)
    """Options with which it searches to the end: a proof sets them, whatever the plan records."""
    read_options: Callable[[Plan], Any] | None = None
    """The options that a plan records, if they are not simply those of the fields' names."""
    read_network: Callable[[Plan], Network] | None = None
    """The original network, if a plan holds another."""

    @property
    def key(self) -> str:
        """Its name in a sweep's spec."""
        return self.section or self.name

    def options_of(self, plan: Plan) -> Any:
        """Return the options that a plan records, so that it can be made again."""
        return recorded(self.options, plan) if self.read_options is None else self.read_options(plan)

    def network_of(self, plan: Plan) -> Network:
        """Return the network that a plan was made for: without what runs again in it."""
        return folded(plan.network).network if self.read_network is None else self.read_network(plan)


def recorded(kind: type[Any], plan: Plan, *, but: tuple[str, ...] = (), **more: Any) -> Any:
    """Return options of a kind with the values that a plan records, `but` for some, and `more`."""
    known = {f.name for f in fields(kind)} - {*HOW_HARD, *but}
    return kind(**{key: value for key, value in plan.options.items() if key in known}, **more)
