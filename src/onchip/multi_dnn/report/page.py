"""A schedule of several networks as one self-contained HTML file."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from onchip.base.figures import columns
from onchip.multi_dnn.judged import Judged
from onchip.multi_dnn.losses import Losses, losses
from onchip.multi_dnn.report.drawing import MOST, SHADES, by_network, by_unit, in_small
from onchip.multi_dnn.report.words import (
    FIGURES,
    claim_sentence,
    claimed_only,
    figure_of,
    heading,
    is_proved,
    milliseconds,
    others_of,
)
from onchip.multi_dnn.timeline import Figure, Segment
from onchip.multi_dnn.workload import Workload
from onchip.report.shell import asset, hash_of, template, version
from onchip.report.wording import shorten, visible

if TYPE_CHECKING:
    import jinja2

__all__ = ["html"]

MOST_ROWS = 400


def html(made: Judged) -> str:
    """Return the page of a judged schedule. Names from files are escaped in it, and no script reads them."""
    from markupsafe import Markup

    style = asset("page.css") + asset("corun.css")
    script = asset("corun.js")
    return _template().render(
        **_words(made),
        style=Markup(style),
        script=Markup(script),
        style_hash=hash_of(style),
        script_hash=hash_of(script),
        version=version(),
    )


@cache
def _template() -> jinja2.Template:
    return template("corun.html.j2")


def _status(made: Judged) -> str:
    if not is_proved(made):
        return "best found"
    return f"{'claimed ' if claimed_only(made) else ''}optimal in its class"


def _words(made: Judged) -> dict[str, Any]:
    workload, line, claim = made.workload, made.timeline, made.claim
    everything = len(line.segments)
    shown = sorted(line.segments[:MOST_ROWS], key=lambda s: (s.start, s.step))
    return {
        "title": visible(shorten(heading(made), 160)),
        "networks": visible(shorten(" + ".join(job.name for job in workload.jobs), 200)),
        "soc": visible(workload.soc.name),
        "status": _status(made),
        "status_class": "optimal" if is_proved(made) else "feasible",
        "sentence": claim_sentence(made),
        "synthetic": _synthetic(made),
        "figures": _figures(made),
        "by_unit": by_unit(made),
        "by_network": by_network(made),
        "cut": f"The first {MOST:,} of {everything:,} groups are drawn." if everything > MOST else "",
        "keys": [(visible(shorten(job.name, 60)), j % SHADES) for j, job in enumerate(workload.jobs[:20])],
        "objective": visible(FIGURES.get(claim.objective, claim.objective)),
        "others": _others(made),
        "times": [column.heading for column in columns(Losses, losses(line), "page")],
        "unit_names": [visible(name) for name in workload.soc.unit_names],
        "rows": _networks(made),
        "segments": [_segment(made, s) for s in shown],
        "segments_cut": f"The first {MOST_ROWS:,} of {everything:,}." if everything > MOST_ROWS else "",
        "facts": [
            ("contention", visible(claim.contention_set or "not named")),
            ("memory", f"{workload.soc.peak_gb_per_second:g} of {workload.soc.nominal_gb_per_second:g} GB/s"),
            ("frames", f"{workload.frames:,}, {_under_way(workload)}"),
            ("tolerated overlap", f"{made.epsilon_ms:g} ms"),
            *_bounds(made),
        ],
    }


def _bounds(made: Judged) -> list[tuple[str, str]]:
    """Return the bounds with their sources: the judge's own, and the one that only the search can know."""
    found = []
    if made.derived_bound is not None:
        found.append(("bound by work and longest path", milliseconds(made.derived_bound)))
    if made.claim.bound is not None:
        found.append(("bound claimed by the search", milliseconds(made.claim.bound)))
    return found


def _under_way(workload: Workload) -> str:
    most = workload.frames_at_once
    return f"at most {most:,} under way at once" if most else "any number under way at once"


def _synthetic(made: Judged) -> str:
    names = [visible(job.name) for job in made.workload.jobs if job.profile.synthetic]
    if not names:
        return ""
    who = shorten(", ".join(names), 200)
    return (
        f"Nobody measured the profile of {who}: a roofline, scaled to published totals where there are any."
    )


def _figures(made: Judged) -> list[tuple[str, str, str]]:
    workload, line = made.workload, made.timeline
    lost = losses(line)
    rows = [("Makespan", f"{milliseconds(line.makespan_ms)} ms", "")]
    rows += [
        (f"Latency of {visible(shorten(job.name, 40))}", f"{milliseconds(ms)} ms", "")
        for job, ms in list(zip(workload.jobs, line.latency_ms, strict=True))[:6]
    ]
    rows.append(
        ("Frames per second", f"{line.fps:,.1f}", "one frame after the other" if workload.frames == 1 else "")
    )
    for unit, busy in zip(workload.soc.units, line.busy_ms, strict=True):
        share = 100 * busy / line.makespan_ms
        rows.append((f"{visible(unit.name)} at work", f"{share:.1f} %", f"{milliseconds(busy)} ms"))
    rows.append(("Lost to contention", f"{milliseconds(sum(one.contention for one in lost))} ms", ""))
    rows.append(("Transitions", f"{milliseconds(sum(one.transitions for one in lost))} ms", ""))
    if line.millijoules is not None:
        rows.append(("Energy", f"{line.millijoules:,.3g} mJ", ""))
    return rows


def _others(made: Judged) -> list[dict[str, Any]]:
    rows = others_of(made)
    most = max((value for _, value, _ in rows), default=0.0) or 1.0
    lines = dict(made.others)
    by_time = made.claim.figure is Figure.MAKESPAN
    small = {n: line for n, line in lines.items() if by_time}
    until = max([made.timeline.makespan_ms, *(line.makespan_ms for line in small.values())])
    if by_time:
        most = until = max(most, until)
    best = rows[0][1] if rows else 0.0
    found = []
    for name, value, ours in rows:
        line = made.timeline if ours and by_time else small.get(name)
        ratio = figure_of(made.claim).ratio(value, best) if best and value else 1
        found.append(
            {
                "name": visible(shorten(name, 80)),
                "value": milliseconds(value),
                "share": f"{900 * value / most:.1f}",
                "more": "" if ratio - 1 < 5e-5 else f"{100 * (ratio - 1):.1f} % worse",
                "ours": ours,
                "picture": None if line is None or len(line.segments) > MOST else in_small(line, until),
            }
        )
    return found


def _networks(made: Judged) -> list[dict[str, Any]]:
    workload, lost = made.workload, losses(made.timeline)
    times = columns(Losses, lost, "page")
    return [
        {
            "name": visible(job.name),
            "shade": j % SHADES,
            "source": visible(job.profile.source or "not said"),
            "synthetic": job.profile.synthetic and "synthetic" not in job.profile.source,
            "runs": workload.runs(j),
            "after": ", ".join(visible(name) for name in job.after),
            "on": [milliseconds(ms) if ms else "" for ms in own.on_unit],
            "times": [column.cell(own, {"": milliseconds}) for column in times],
        }
        for j, (job, own) in list(enumerate(zip(workload.jobs, lost, strict=True)))[:MOST_ROWS]
    ]


def _segment(made: Judged, s: Segment) -> dict[str, Any]:
    job = made.workload.jobs[s.step.job]
    group = job.profile.groups[s.step.group]
    alone = group.ms[s.unit]
    return {
        "network": visible(job.name),
        "shade": s.step.job % SHADES,
        "run": s.step.run,
        "group": visible(group.name),
        "unit": visible(made.workload.soc.units[s.unit].name),
        "start": milliseconds(s.start),
        "end": milliseconds(s.end),
        "alone": "" if alone is None else milliseconds(alone),
        "slowdown": f"{max(p.slowdown for p in s.pieces):.3f}",
        "waited": milliseconds(s.start - s.ready) if s.start > s.ready else "",
        "transition": milliseconds(s.transition_ms) if s.transition_ms else "",
    }
