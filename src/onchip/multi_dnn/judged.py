"""A schedule after judging: the input of pages, exports and commands, from any source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isclose
from pathlib import Path
from typing import Literal

from onchip.multi_dnn.check import check_file
from onchip.multi_dnn.derived_bound import derived_bound
from onchip.multi_dnn.schedule import Schedule
from onchip.multi_dnn.schedule_json import Claim, schedule_json
from onchip.multi_dnn.timeline import Timeline
from onchip.multi_dnn.workload import Workload

ROUNDING = 1e-9
"""The relative distance within which a schedule attains its bound; times are doubles."""

__all__ = ["Judged", "judged_file", "network_name", "told_apart"]


@dataclass(frozen=True)
class Judged:
    """A schedule, the judge's timeline of it, and its solver's claim.

    `others` are the timelines of schedules that it is compared with, where available. `read` states that
    the claim was read from a file: it is not proved here.
    """

    schedule: Schedule
    timeline: Timeline
    claim: Claim
    epsilon_ms: float = 0.0
    others: tuple[tuple[str, Timeline], ...] = field(default=(), compare=False)
    read: bool = field(default=False, compare=False)

    @property
    def workload(self) -> Workload:
        """The networks that run at once, with their SoC."""
        return self.timeline.workload

    @cached_property
    def derived_bound(self) -> float | None:
        """The judge's own bound of any schedule; None where it cannot derive one."""
        return derived_bound(self.workload, self.claim.objective, self.epsilon_ms)

    @property
    def standing(self) -> Literal["proved", "derived", "claimed", "none"]:
        """The standing of the claim, in the words of `onchip.check.Standing`."""
        value, bound = self.timeline.figure(self.claim.objective), self.derived_bound
        if value is not None and bound is not None and isclose(value, bound, rel_tol=ROUNDING):
            return "derived"
        if not self.claim.claim.startswith("optimal") and self.claim.bound is None:
            return "none"
        return "claimed" if self.read else "proved"

    def json(self) -> str:
        """Return the schedule as `onchip.schedule/1`."""
        return schedule_json(self.schedule, self.timeline, epsilon_ms=self.epsilon_ms, claim=self.claim)


def judged_file(path: Path) -> Judged:
    """Return the schedule in the file at `path`, judged again.

    Raises `PlanFormatError` or `ProfileError` for a file that is no schedule, `IllegalSchedule` when it
    breaks a rule or states figures that are not its own.
    """
    stated, found = check_file(path)
    return Judged(stated.schedule, found.timeline, stated.claim, stated.epsilon_ms, found.rivals, read=True)


def network_name(name: str, copies: int) -> str:
    """Return the name of a network in a workload that has `copies` of it already."""
    return name if not copies else f"{name} #{copies + 1}"


def told_apart(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of a workload's networks: the second copy of one gets a number."""
    found: list[str] = []
    for name in names:
        copies = 0
        while network_name(name, copies) in found:
            copies += 1
        found.append(network_name(name, copies))
    return tuple(found)
