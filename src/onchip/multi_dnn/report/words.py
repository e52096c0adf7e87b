"""The words on a schedule of several networks, for the terminal and the page."""

from __future__ import annotations

from math import floor, log10

from onchip.multi_dnn.idle import Idle
from onchip.multi_dnn.judged import Judged
from onchip.multi_dnn.schedule import Step
from onchip.multi_dnn.schedule_json import Claim
from onchip.multi_dnn.timeline import Figure
from onchip.report.wording import shorten

__all__ = [
    "FIGURES",
    "OURS",
    "bounded_kind",
    "claim_sentence",
    "claimed_only",
    "figure_of",
    "heading",
    "idle_reason",
    "is_proved",
    "least_or_most",
    "milliseconds",
    "others_of",
    "value_of",
]

FIGURES: dict[str, str] = {
    Figure.MAKESPAN: "makespan in ms",
    Figure.LATENCY: "longest latency in ms",
    Figure.FPS: "frames per second",
    Figure.SUM_OF_RATES: "sum of 1 / latency, per second",
    Figure.MILLIJOULES: "energy in mJ",
}
"""The possible objectives of a schedule."""

OURS = "this schedule"


def milliseconds(value: float) -> str:
    """Return ms with three digits after the point, or as many as show two figures of a small value."""
    size = abs(value)
    if size >= 0.01 or size < 5e-8:
        return f"{value:,.3f}"
    return f"{value:.4f}" if size >= 0.001 else f"{value:.{1 - floor(log10(size))}f}"


def heading(made: Judged) -> str:
    """Return `googlenet + resnet101 on xavier-agx, light contention: 3.489 ms`."""
    names = [job.name for job in made.workload.jobs]
    who = " + ".join(shorten(name, 60) for name in names[:4])
    if len(names) > 4:
        who += f" and {len(names) - 4} more"
    memory = made.claim.contention_set
    under = f", {memory} contention" if memory and memory != "none" else ", no contention"
    frames = made.workload.frames
    what = f"{milliseconds(made.timeline.makespan_ms)} ms"
    if frames > 1:
        what = f"{made.timeline.fps:,.1f} frames per second, {frames:,} frames in {what}"
    return f"{who} on {made.workload.soc.name}{under if memory else ''}: {what}"


def figure_of(claim: Claim) -> Figure:
    """Return the objective; an unknown one counts as a time."""
    return claim.figure or Figure.MAKESPAN


def least_or_most(claim: Claim) -> str:
    """Return the words before a bound: `at least` for a time, `at most` for a rate."""
    return "at most" if figure_of(claim).is_rate else "at least"


def is_proved(made: Judged) -> bool:
    """Return whether its solver claims a proof."""
    return made.claim.claim.startswith("optimal")


def claimed_only(made: Judged) -> bool:
    """Return whether a file claims a proof that neither the judge nor a solver of this process has."""
    return is_proved(made) and made.standing == "claimed"


def value_of(made: Judged) -> float | None:
    """Return the objective's value, from the judge; None for an objective that is not known."""
    return made.timeline.figure(made.claim.objective)


def bounded_kind(made: Judged) -> str:
    """Return the schedules that a bound covers: overlapping frames may be faster than frames in sequence."""
    if made.claim.figure is Figure.FPS and made.workload.frames == 1:
        return "every single frame repeated, without overlap of frames,"
    return "every schedule"


def claim_sentence(made: Judged) -> str:
    """Return a sentence on the claim, its distance from the bound, and its comparison with others."""
    claim, value = made.claim, value_of(made)
    said = f"claimed to be {claim.claim}" if claimed_only(made) else claim.claim
    parts = [f"{said[:1].upper()}{said[1:]}" if claim.claim else "Nothing is claimed of it"]
    bound = made.derived_bound if claim.bound is None else claim.bound
    if bound is not None and value:
        off = abs(value - bound) / max(value, bound)
        word = least_or_most(claim)
        gap = "" if off < 5e-4 else f", {100 * off:.1f} % away"
        parts.append(f"{bounded_kind(made)} has {word} {milliseconds(bound)}{gap}")
    sentence = "; ".join(parts) + "."
    others = [row for row in others_of(made) if not row[2]]
    if others and value:
        name, best, _ = others[0]
        more = figure_of(claim).ratio(best, value) - 1 if best else 0.0
        sentence += f" Best of the others: {name}, {milliseconds(best)}"
        sentence += f" ({100 * more:.1f} % worse)." if more > 5e-4 else " (as good)."
    if claim.seconds is not None:
        sentence += f" Found in {claim.seconds * 1000:,.0f} ms."
    return sentence


def others_of(made: Judged) -> tuple[tuple[str, float, bool], ...]:
    """Return (name, objective's value, is it ours) of this schedule and those beside it, best first."""
    value = value_of(made)
    if not made.claim.rivals or value is None:
        return ()
    rows = [(OURS, value, True), *((rival.name, rival.value, False) for rival in made.claim.rivals)]
    sign = -1 if figure_of(made.claim).is_rate else 1
    return tuple(sorted(rows, key=lambda row: (sign * row[1], not row[2])))


def idle_reason(made: Judged, idle: Idle) -> str:
    """Return why a unit stands idle: `googlenet 10-24 is still on dla`."""
    jobs, units = made.workload.jobs, made.workload.soc.units

    def named(step: Step) -> str:
        job = jobs[step.job]
        run = f" run {step.run}" if made.workload.runs(step.job) > 1 else ""
        return f"{shorten(job.name, 40)}{run}"

    if idle.next is None:
        return "nothing left to do"
    if idle.why == "on purpose":
        return f"{named(idle.next)} waits on purpose"
    if idle.cause is None:
        return f"waits for {named(idle.next)}"
    if idle.why == "moving":
        return f"{named(idle.next)} is changing units"
    if idle.why == "another run":
        return f"until {named(idle.cause)} ends"
    group = jobs[idle.cause.job].profile.groups[idle.cause.group].name
    on = units[made.schedule.units[idle.cause.job][idle.cause.run][idle.cause.group]].name
    return f"{named(idle.next)} is at {shorten(group, 40)} on {on}"
