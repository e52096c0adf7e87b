"""The output of `onchip check` for a schedule: the derived figures, and the mere claims."""

from __future__ import annotations

from onchip.machines.soc_file import builtin_socs
from onchip.multi_dnn.judged import Judged
from onchip.multi_dnn.report.words import (
    FIGURES,
    bounded_kind,
    figure_of,
    heading,
    is_proved,
    least_or_most,
    milliseconds,
    others_of,
    value_of,
)
from onchip.report.wording import shorten, visible

__all__ = ["verdict_lines"]

MOST_NETWORKS = 20


def verdict_lines(made: Judged) -> list[str]:
    """Return a line for each thing that holds; the last names what only the search can know."""
    line, workload = made.timeline, made.workload
    changes = sum(s.transition_ms > 0 for s in line.segments)
    found = [
        f"legal: {len(line.segments):,} groups on {len(workload.soc.units)} units;"
        " every figure that follows from the schedule holds",
        f"  {visible(heading(made))}",
    ]
    rows = list(zip(workload.jobs, line.latency_ms, strict=True))
    found += [f"  latency of {visible(job.name)} {milliseconds(ms)} ms" for job, ms in rows[:MOST_NETWORKS]]
    if len(rows) > MOST_NETWORKS:
        found.append(f"  and {len(rows) - MOST_NETWORKS:,} more networks")
    found.append(
        f"  {line.fps:,.2f} frames per second; {changes:,} change{'s' if changes != 1 else ''} of units"
    )
    found += [
        f"  {text}"
        for text in (_overlapping(made), _own_constants(made), _beside(made), _bounded(made))
        if text
    ]
    found.append(f"  claimed by the search, not re-derived: {_claimed(made)}")
    return found


def _overlapping(made: Judged) -> str:
    """Return a note where a file tolerates overlaps, which are illegal elsewhere."""
    if not made.epsilon_ms:
        return ""
    left, count = f"{made.epsilon_ms:g} ms", made.timeline.overlaps
    return (
        f"epsilon {left}: tolerates that a group begins while the one before it on its unit has {left} left;"
        f" {count:,} {'does' if count == 1 else 'do'}"
    )


def _own_constants(made: Judged) -> str:
    """Return a note where a file names a built-in set of constants but has others."""
    soc, name = made.workload.soc, made.claim.contention_set
    known = next((one for one in builtin_socs() if one.name == soc.name), None)
    if known is None or name not in (*known.contention, "none") or known.unit_names != soc.unit_names:
        return ""
    if known.model(name) == made.workload.model:
        return ""
    return (
        f"contention: the file's own constants, not those of the built-in set {visible(name)} of {soc.name}"
    )


def _beside(made: Judged) -> str:
    if not made.claim.rivals:
        return "no baselines are beside it in the file: it is compared with nothing"
    others = [(name, value) for name, value, ours in others_of(made) if not ours]
    value = value_of(made)
    if not others or not value:
        return ""
    name, best = others[0]
    ratio = figure_of(made.claim).ratio(best, value) if best else 1.0
    how = (
        "as good"
        if abs(ratio - 1) < 5e-4
        else f"{100 * abs(ratio - 1):.1f} % {'worse' if ratio > 1 else 'better'}"
    )
    count = f"{len(others)} baselines" if len(others) > 1 else "1 baseline"
    return f"{count} simulated again; the best is {visible(shorten(name, 60))}, {milliseconds(best)} ({how})"


def _bounded(made: Judged) -> str:
    bound, value = made.derived_bound, value_of(made)
    if not bound or not value:
        return ""
    word, figure = least_or_most(made.claim), FIGURES[made.claim.objective]
    who = bounded_kind(made)
    text = f"{figure}: {who} has {word} {milliseconds(bound)}, by work and longest path"
    off = abs(value - bound) / max(value, bound)
    return f"{text}; this one has just that" if off < 1e-6 else f"{text} ({100 * off:.1f} % away)"


def _claimed(made: Judged) -> str:
    claim = made.claim
    parts = [claim.claim or "nothing of its class"]
    if claim.bound is not None:
        parts.append(f"{bounded_kind(made)} has {least_or_most(claim)} {milliseconds(claim.bound)}")
    elif is_proved(made):
        parts.append("no bound")
    if claim.seconds is not None:
        parts.append(f"found in {claim.seconds * 1000:,.0f} ms")
    return visible("; ".join(parts))
