"""A schedule of several networks as tables for a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from onchip.base.figures import columns
from onchip.multi_dnn.judged import Judged
from onchip.multi_dnn.losses import Losses, losses
from onchip.multi_dnn.report.words import FIGURES, claim_sentence, heading, milliseconds, others_of, value_of
from onchip.multi_dnn.schedule import Step
from onchip.multi_dnn.stretches import stretches
from onchip.report.grid import Grid
from onchip.report.wording import shorten, visible

__all__ = ["table"]

MOST_NETWORKS = 20
MOST_STRETCHES = 40
"""The most rows of a table; the rest is in --json and in the page."""


def table(made: Judged, width: int, note: str = "") -> RenderableType:
    """Return a rich renderable: the claim, the networks, each unit's order, and the schedules beside."""
    parts: list[RenderableType] = [
        Text(visible(heading(made)), style="bold"),
        Text(claim_sentence(made), style="dim"),
    ]
    if note:
        parts.append(Text(visible(note), style="dim"))
    parts += [Text(), *_section("Networks", "times in ms", _networks(made, width - 2))]
    parts += [
        Text(),
        *_section(
            "Units",
            "what each runs, in the order enforced; groups by their layers, from 0; ms",
            _units(made, width - 2),
        ),
    ]
    if others_of(made):
        unit = FIGURES.get(made.claim.objective, made.claim.objective)
        parts += [Text(), *_section("Beside others", unit, _others(made))]
    return Group(*parts)


def _section(title: str, what: str, body: RenderableType) -> list[RenderableType]:
    head = Text(title, style="bold")
    head.append(f"  {what}", style="not bold dim")
    return [head, Padding(body, (0, 0, 0, 2))]


def _networks(made: Judged, width: int) -> Grid:
    """Return a row for each network, without the least informative columns where not all fit."""
    workload = made.workload
    lost = losses(made.timeline)
    times = columns(Losses, lost)
    heads = [
        ("network", False),
        ("profile", False),
        ("runs", True),
        *((f"on {visible(shorten(name, 12))}", True) for name in workload.soc.unit_names),
        *((column.heading, True) for column in times),
    ]
    spare = sorted((c for c in times if c.figure.gives_way), key=lambda c: -c.figure.gives_way)
    rows: list[list[str]] = []
    for j, job in list(enumerate(workload.jobs))[:MOST_NETWORKS]:
        source = job.profile.source or "not said"
        if job.profile.synthetic and "synthetic" not in source:
            source = f"synthetic: {source}"
        if job.profile.synthetic:
            source = source.partition(", ")[0]  # what it is scaled to stands in the report
        rows.append([
            visible(shorten(job.name, 24)),
            visible(shorten(source, 26)),
            f"{workload.runs(j):,}",
            *(milliseconds(ms) if ms else "" for ms in lost[j].on_unit),
            *(column.cell(lost[j], {"": milliseconds}) for column in times),
        ])  # fmt: skip
    kept = _fitting(heads, rows, width, ("profile", "runs", *(column.heading for column in spare)))
    found = Grid(*(heads[column] for column in kept))
    for row in rows:
        found.add_row(*(Text(row[column]) for column in kept))
    if len(workload.jobs) > MOST_NETWORKS:
        found.add_row(f"{len(workload.jobs) - MOST_NETWORKS:,} more")
    return found


def _fitting(
    heads: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str]], width: int, spare: Sequence[str]
) -> list[int]:
    """Return the columns to show: as many as fit; the `spare` ones are dropped in their order."""
    wide = [
        2 + max(cell_len(cell) for cell in (name, *(row[n] for row in rows)))
        for n, (name, _) in enumerate(heads)
    ]
    kept = [*range(len(heads))]
    for name in spare:
        if sum(wide[n] for n in kept) - 2 <= width:
            break
        kept = [n for n in kept if heads[n][0] != name]
    return kept


def _units(made: Judged, width: int) -> Grid:
    workload, line = made.workload, made.timeline
    at = {s.step: s for s in line.segments}
    found = Grid(("unit", False), ("network", False), ("groups", False), ("start", True), ("end", True))
    room = max(12, (width - 34) // 2)
    for row in stretches(made.schedule):
        for one in row[:MOST_STRETCHES]:
            job = workload.jobs[one.job]
            run = f" run {one.run}" if workload.runs(one.job) > 1 else ""
            first, last = (job.profile.groups[g].name for g in (one.first, one.last))
            groups = stretch_words(first, last, room // 2)
            found.add_row(
                "" if one.turn else Text(visible(workload.soc.units[one.unit].name)),
                Text(visible(shorten(job.name, room - len(run)) + run)),
                Text(visible(shorten(groups, room))),
                milliseconds(at[Step(one.job, one.run, one.first)].start),
                milliseconds(at[Step(one.job, one.run, one.last)].end),
            )
        if len(row) > MOST_STRETCHES:
            found.add_row("", f"{len(row) - MOST_STRETCHES:,} more")
    return found


def stretch_words(first: str, last: str, width: int) -> str:
    """Return `0-69` for the layers from `0-2` to `60-69`, and `first … last` for groups with other names."""
    begins, ends = re.fullmatch(r"(\d+)-\d+", first), re.fullmatch(r"\d+-(\d+)", last)
    if begins and ends:
        return f"{begins[1]}-{ends[1]}"
    return first if first == last else f"{shorten(first, width)} … {last}"


def _others(made: Judged) -> Grid:
    rows: Sequence[tuple[str, float, bool]] = others_of(made)
    found = Grid(("schedule", False), ("", True), ("", True))
    mine = value_of(made)
    for name, value, ours in rows:
        gain = "" if ours or not value or not mine else f"{100 * (value / mine - 1):+.1f} %"
        found.add_row(
            Text(visible(shorten(name, 40)), style="bold" if ours else ""), milliseconds(value), gain
        )
    return found
