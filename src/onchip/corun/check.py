"""Schedule files judged again: every figure that one states must be what the simulation gives."""

from __future__ import annotations

from math import isclose
from pathlib import Path

from onchip.corun.schedule_file import StatedSchedule, read_schedule
from onchip.corun.simulate import simulate
from onchip.corun.timeline import Timeline
from onchip.errors import IllegalSchedule

__all__ = ["check_file", "check_stated"]

TOLERANCE = 1e-6
"""Figures are decimal text of doubles; more than this apart, they are others."""


def check_file(path: Path) -> tuple[StatedSchedule, Timeline]:
    """What the file at `path` states, and what the judge says of it.

    Raises `PlanFormatError` for a file that is no schedule, `IllegalSchedule` for one whose schedule is not
    legal or whose figures are not its own.
    """
    stated = read_schedule(path)
    return stated, check_stated(stated)


def check_stated(stated: StatedSchedule) -> Timeline:
    """The timeline of a schedule; raises `IllegalSchedule` naming the first figure that it does not have."""
    timeline = simulate(stated.workload, stated.schedule, epsilon_ms=stated.epsilon_ms)
    jobs = stated.workload.jobs
    for segment in timeline.segments:
        job, run, group = segment.step
        of = f"network {jobs[job].name}, run {run}, group {jobs[job].profile.groups[group].name}"
        start, end, transition = stated.segments[segment.step]
        _same(f"start_ms of {of}", start, segment.start)
        _same(f"end_ms of {of}", end, segment.end)
        _same(f"transition_ms of {of}", transition, segment.transition_ms)
    for network, claimed, found in zip(jobs, stated.latency_ms, timeline.latency_ms, strict=True):
        _same(f"latency_ms of network {network.name}", claimed, found)
    for name, claimed in stated.figures.items():
        _same(name, claimed, getattr(timeline, name))
    _check_bound(stated, timeline)
    return timeline


def _check_bound(stated: StatedSchedule, timeline: Timeline) -> None:
    """A bound that the schedule itself beats is none."""
    bound, objective = stated.claim.bound, stated.claim.objective
    if bound is None:
        return
    match objective:
        case "latency_ms":
            value: float | None = max(timeline.latency_ms)
        case "makespan_ms" | "fps" | "sum_of_rates" | "millijoules":
            value = getattr(timeline, objective)
        case _:
            value = None
    if value is None:
        raise IllegalSchedule("bound", f"states a bound of {objective[:60]!r}, which it does not have")
    beaten = value - bound if objective in ("fps", "sum_of_rates") else bound - value
    if not beaten <= TOLERANCE * max(1.0, abs(value)):
        raise IllegalSchedule("bound", f"states the bound {bound} of {objective}, and has {value}")


def _same(what: str, stated: float, found: float | None) -> None:
    if found is None or not isclose(stated, found, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        raise IllegalSchedule("figures", f"states {what} {stated}, the simulation gives {found}")
