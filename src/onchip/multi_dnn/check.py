"""Schedule files judged again: every figure that follows from a schedule must equal the simulation's.

So must those of the schedules beside it. The figures that only the search can know (the class of its claim, a
bound tighter than the judge's own, its time) are not derived again, but refused where they contradict
themselves or a schedule in the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose
from pathlib import Path

from onchip.base.errors import IllegalSchedule
from onchip.multi_dnn.classes import parse_class, why_misnamed
from onchip.multi_dnn.derived_bound import derived_bound
from onchip.multi_dnn.schedule_file import StatedSchedule, read_schedule
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.timeline import FIGURES, Figure, Timeline

__all__ = ["CLAIMED", "DERIVED", "Verdict", "check_file", "check_stated"]

TOLERANCE = 1e-6
"""The relative tolerance of figures, which are decimal text of doubles."""
ROUNDING = 1e-12
"""The tolerance of a time near 0, relative to the makespan."""

DERIVED = (
    "start_ms", "end_ms", "transition_ms", "latency_ms", "makespan_ms", "fps", "sum_of_rates", "millijoules",
    "baselines", "derived_bound",
)  # fmt: skip
"""The parts of a schedule file that the judge derives again, by key."""
CLAIMED = ("class", "bound", "seconds")
"""The parts that it does not."""


@dataclass(frozen=True)
class Verdict:
    """The judge's answer: the timeline, those of the schedules beside it by name, and its own bound."""

    timeline: Timeline
    rivals: tuple[tuple[str, Timeline], ...]
    derived_bound: float | None


def check_file(path: Path) -> tuple[StatedSchedule, Verdict]:
    """Return the statements of the file at `path`, and the judge's verdict on them.

    Raises `PlanFormatError` for a file that is no schedule, `IllegalSchedule` for one whose schedule is not
    legal, whose figures are not its own, or whose claims contradict themselves.
    """
    stated = read_schedule(path)
    return stated, check_stated(stated)


def check_stated(stated: StatedSchedule) -> Verdict:
    """Return the judge's figures; raises `IllegalSchedule` naming the first that differs in the file."""
    timeline = simulate(stated.workload, stated.schedule, epsilon_ms=stated.epsilon_ms)
    _check_figures(stated, timeline)
    objective = stated.claim.figure
    if objective is None:
        unknown = stated.claim.objective[:60]
        raise IllegalSchedule("objective", f"{unknown!r} is none of {', '.join(FIGURES)}")
    rivals = tuple(
        (rival.name, _rival_timeline(stated, n, objective)) for n, rival in enumerate(stated.claim.rivals)
    )
    bound = derived_bound(stated.workload, objective, stated.epsilon_ms)
    if stated.derived_bound is not None:
        _same(f"derived_bound of {objective}", stated.derived_bound, bound)
    verdict = Verdict(timeline, rivals, bound)
    _check_bound(stated, verdict, objective)
    _check_class(stated, verdict, objective)
    if stated.claim_sha256 != stated.digest:
        raise IllegalSchedule("claim", "its claims were made of another schedule, workload or SoC")
    return verdict


def _check_figures(stated: StatedSchedule, timeline: Timeline) -> None:
    jobs, near_zero = stated.workload.jobs, ROUNDING * timeline.makespan_ms
    for segment in timeline.segments:
        job, run, group = segment.step
        of = f"network {jobs[job].name}, run {run}, group {jobs[job].profile.groups[group].name}"
        start, end, transition = stated.segments[segment.step]
        _same(f"start_ms of {of}", start, segment.start, near_zero)
        _same(f"end_ms of {of}", end, segment.end, near_zero)
        _same(f"transition_ms of {of}", transition, segment.transition_ms, near_zero)
    for network, claimed, found in zip(jobs, stated.latency_ms, timeline.latency_ms, strict=True):
        _same(f"latency_ms of network {network.name}", claimed, found)
    for name, claimed in stated.figures.items():
        _same(name, claimed, timeline.figure(name))


def _rival_timeline(stated: StatedSchedule, number: int, objective: Figure) -> Timeline:
    rival = stated.claim.rivals[number]
    other = why_misnamed(rival.name, stated.workload, rival.schedule)
    if other:
        raise IllegalSchedule("baseline", f"is named {rival.name}, and {other}")
    try:
        timeline = simulate(stated.workload, rival.schedule, epsilon_ms=stated.epsilon_ms)
    except IllegalSchedule as problem:
        raise IllegalSchedule(problem.rule, f"baseline {rival.name}: {problem.reason}") from None
    _same(f"{objective} of baseline {rival.name}", rival.value, timeline.figure(objective))
    return timeline


def _check_bound(stated: StatedSchedule, found: Verdict, objective: Figure) -> None:
    """Refuse a bound that a schedule in the file beats, or that is weaker than the judge's own."""
    bound = stated.claim.bound
    if bound is None:
        return
    for name, line in (("", found.timeline), *found.rivals):
        value = line.figure(objective)
        who = f"and baseline {name} has" if name else "and has"
        if value is None or _better(objective, value, bound):
            raise IllegalSchedule("bound", f"states the bound {bound} of {objective}, {who} {value}")
    own = found.derived_bound
    if own is not None and _better(objective, bound, own):
        raise IllegalSchedule(
            "bound", f"states the bound {bound} of {objective}; {own} follows from the profiles"
        )


def _check_class(stated: StatedSchedule, found: Verdict, objective: Figure) -> None:
    """Check that a schedule is in its claimed class, and that no schedule of the class beats it."""
    claim = stated.claim
    named = parse_class(claim.claim)
    if named is None:
        raise IllegalSchedule("class", f"{claim.claim[:120]!r} is no class that this version knows")
    outside = named.why_not(stated.schedule, found.timeline)
    if outside:
        raise IllegalSchedule("class", f"is said to be {claim.claim}, and {outside}")
    value = found.timeline.figure(objective)
    if not named.proved:
        return
    if stated.epsilon_ms:
        raise IllegalSchedule(
            "class",
            f"is said to be {claim.claim}, and lets groups overlap on a unit"
            f" (epsilon_ms {stated.epsilon_ms:g}), which no search looks at",
        )
    if value is None:
        raise IllegalSchedule("class", f"is said to be {claim.claim}, of {objective}, which it does not have")
    for rival, (name, line) in zip(claim.rivals, found.rivals, strict=True):
        other = line.figure(objective)
        if other is None or not _better(objective, other, value):
            continue
        if named.why_not(rival.schedule, line) is None:
            raise IllegalSchedule(
                "class",
                f"is said to be {claim.claim}, and baseline {name} has {other}, this schedule {value}",
            )


def _better(objective: Figure, one: float, other: float) -> bool:
    """Return whether `one` is better than `other` by more than rounding; NaN is better than all."""
    return not objective.ahead(one, other) <= TOLERANCE * max(abs(one), abs(other))


def _same(what: str, stated: float, found: float | None, near_zero: float = 0.0) -> None:
    if found is None or not isclose(stated, found, rel_tol=TOLERANCE, abs_tol=near_zero):
        raise IllegalSchedule("figures", f"states {what} {stated}, the simulation gives {found}")
