"""A solver's answer: a schedule, the judge's timeline of it, and its exact claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.schedule import Schedule
from onchip.multi_dnn.timeline import Timeline

__all__ = ["Claim", "Solution", "Space"]

Space = Literal["any order", "non-delay", "few switches", "searched"]
"""The schedules among which a claim is made. `any order`: every unit for every group and every order on
every unit, each group beginning as soon as its order lets it. `non-delay`: those of them in which no unit
waits while a group is ready for it. `few switches`: any order, but a run changes its unit only so often.
`searched`: those that a search happened to visit."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The standing of a solution: the best of its `space` (`proved`), or only good.

    `switches` is the number of unit changes a run may have in `few switches`.
    """

    space: Space
    proved: bool
    switches: int | None = None

    def __str__(self) -> str:
        if self.space == "few switches":
            where = f"schedules of at most {self.switches} switches a run"
        elif self.space == "any order":
            where = "schedules of any mapping and order, without inserted idle time"
        elif self.space == "non-delay":
            where = "non-delay schedules"
        else:
            return "best found"
        return f"optimal among {where}" if self.proved else f"best found among {where}"


@dataclass(frozen=True, slots=True)
class Solution:
    """A schedule with the judge's timeline.

    `cost_ms` is the objective as a time, from the timeline. `lower_bound_ms` bounds it for every schedule
    there is, inserted idle time included; a claim of optimality within a space is `claim`'s.
    """

    schedule: Schedule
    timeline: Timeline
    objective: Objective
    claim: Claim
    lower_bound_ms: float
    seconds: float
    solver: str
    ended: str = "complete"
    """The reason why the search ended: complete, time, memory, stopped or width."""

    @property
    def cost_ms(self) -> float:
        """The objective as a time in ms; less is better."""
        return self.objective.cost_ms(self.timeline)

    @property
    def gap(self) -> float:
        """The distance from the bound, as a fraction of the cost."""
        return max(0.0, 1 - self.lower_bound_ms / self.cost_ms)
