"""The classes of which a schedule can be claimed the best: their words, and membership tests.

A solver's claim is text in a schedule file. A judge of the file cannot repeat the search, but can detect
that a claim contradicts itself: a schedule outside of its claimed class, or beaten by
another one of that class. Likewise the names of baselines that state their use of the units.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from onchip.multi_dnn.schedule import Schedule
from onchip.multi_dnn.timeline import Timeline
from onchip.multi_dnn.workload import Workload

__all__ = ["SINGLE", "StatedClass", "parse_class", "why_misnamed"]

ROUNDING = 1e-9
"""The relative delay up to which a unit that begins late does not count as waiting."""

SINGLE = ", a single frame repeated"
"""The end of a class of schedules of one frame at a time, for rates, which streams may exceed."""

_FEW = re.compile(r"schedules of at most ([0-9]{1,6}) switches a run")
_ANY = "schedules of any mapping and order, without inserted idle time"
_NON_DELAY = "non-delay schedules"


@dataclass(frozen=True, slots=True)
class StatedClass:
    """The meaning of a class's words: the best of its `space` (`proved`), or the best found in it.

    `any`: the space is not stated. `ordered`: no wait is inserted. `non-delay`: also, no unit stands
    idle while a group is ready for it. `few`: no wait is inserted, and no run changes its unit more than
    `switches` times. `single`: one frame, repeated.
    """

    proved: bool
    space: Literal["any", "ordered", "non-delay", "few"]
    switches: int = 0
    single: bool = False

    def why_not(self, schedule: Schedule, timeline: Timeline) -> str | None:
        """Return why a schedule is not in the class, in words; None for one that is."""
        if self.single and timeline.workload.frames > 1:
            return f"is a stream of {timeline.workload.frames} frames, not a single one repeated"
        if self.space == "any":
            return None
        if any(wait > 0 for _, wait in schedule.idle_ms):
            return "has inserted idle time"
        if self.space == "few":
            jobs = timeline.workload.jobs
            for job, runs in zip(jobs, schedule.units, strict=True):
                for r, units in enumerate(runs):
                    changes = sum(a != b for a, b in pairwise(units))
                    if changes > self.switches:
                        return f"changes the unit of network {job.name}, run {r} {changes} times"
        if self.space == "non-delay":
            return _delay(timeline)
        return None


def parse_class(text: str) -> StatedClass | None:
    """Return the class that a file's `class` names; None for words of no class. An empty claim is valid."""
    if text in ("", "best found"):
        return StatedClass(False, "any")
    single = text.endswith(SINGLE)
    how, among, space = text.removesuffix(SINGLE).partition(" among ")
    if not among or how not in ("optimal", "best found"):
        return None
    proved = how == "optimal"
    if space == _ANY:
        return StatedClass(proved, "ordered", single=single)
    if space == _NON_DELAY:
        return StatedClass(proved, "non-delay", single=single)
    few = _FEW.fullmatch(space)
    return StatedClass(proved, "few", int(few[1]), single) if few else None


def why_misnamed(name: str, workload: Workload, schedule: Schedule) -> str | None:
    """Return how a schedule contradicts its baseline's `name`, in words; None where it does not.

    `X alone` uses only the unit X, `whole networks` one unit a network. Other names state nothing.
    """
    units = workload.soc.unit_names
    alone = next((u for u, unit in enumerate(units) if name == f"{unit} alone"), None)
    if alone is None and name != "whole networks":
        return None
    for job, runs in zip(workload.jobs, schedule.units, strict=True):
        used = sorted({u for run in runs for u in run})
        if alone is not None and used != [alone]:
            return f"runs network {job.name} on {' and '.join(units[u] for u in used)}"
        if len(used) > 1:
            return f"changes the unit of network {job.name}"
    return None


def _delay(timeline: Timeline) -> str | None:
    """Return the first time that a unit stands idle while a group of its own is ready, in words."""
    workload = timeline.workload
    for u, unit in enumerate(workload.soc.units):
        mine = [s for s in timeline.segments if s.unit == u]
        waiting = [s.ready for s in mine]
        for n in range(len(mine) - 2, -1, -1):
            waiting[n] = min(waiting[n], waiting[n + 1])
        free = 0.0
        for segment, ready in zip(mine, waiting, strict=True):
            if max(ready, free) < segment.start * (1 - ROUNDING):
                return f"leaves {unit.name} idle from {max(ready, free):.6g} ms while a group is ready for it"
            free = segment.end
    return None
