"""Units over time, and networks over time: segments, their contention, and the transitions between units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import floor, log10

from markupsafe import Markup

from onchip.multi_dnn.idle import idle_times
from onchip.multi_dnn.judged import Judged
from onchip.multi_dnn.report.words import idle_reason, milliseconds
from onchip.multi_dnn.schedule import Step
from onchip.multi_dnn.timeline import Segment, Timeline
from onchip.report.svg import NARROW, element, fitted, number, picture, title
from onchip.report.wording import visible

__all__ = ["MOST", "SHADES", "by_network", "by_unit", "in_small"]

MOST = 3_000
"""The most segments to draw, earliest first; more would be illegible."""

SHADES = 7
"""Colours for networks; the eighth has the first one's."""

WIDTH, LEFT, RIGHT = 1400.0, 118.0, 14.0
LANE, STRIP, BETWEEN, AXIS = 46.0, 20.0, 30.0, 26.0
ROW, ROW_BETWEEN = 26.0, 12.0
WORST = 0.5
"""The share of speed lost that fills a strip."""


@dataclass(frozen=True)
class _Drawing:
    made: Judged

    @cached_property
    def line(self) -> Timeline:
        return self.made.timeline

    @cached_property
    def shown(self) -> tuple[Segment, ...]:
        return self.line.segments[:MOST]

    @cached_property
    def at(self) -> dict[Step, Segment]:
        return {s.step: s for s in self.shown}

    @cached_property
    def until(self) -> float:
        if len(self.shown) == len(self.line.segments):
            return self.line.makespan_ms
        return max(s.end for s in self.shown)

    def x(self, ms: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * ms / self.until

    # -- words --------------------------------------------------------------------------------------------

    def name(self, s: Segment) -> str:
        job = self.line.workload.jobs[s.step.job]
        run = f" run {s.step.run}" if self.line.workload.runs(s.step.job) > 1 else ""
        return visible(job.name) + run

    def group(self, s: Segment) -> str:
        return visible(self.line.workload.jobs[s.step.job].profile.groups[s.step.group].name)

    def unit(self, unit: int) -> str:
        return visible(self.line.workload.soc.units[unit].name)

    def told(self, s: Segment) -> str:
        """Return the facts of a segment, one a line, for the pointer and the screen reader."""
        group = self.line.workload.jobs[s.step.job].profile.groups[s.step.group]
        alone = group.ms[s.unit]
        lines = [
            f"{self.name(s)}: {self.group(s)}",
            f"unit: {self.unit(s.unit)}",
            f"time: {milliseconds(s.start)} to {milliseconds(s.end)} ms",
            f"takes: {milliseconds(s.end - s.start)} ms",
        ]
        if alone is not None:
            lines.append(
                f"alone: {milliseconds(alone)} ms, asking for {group.gb_per_second[s.unit]:,.1f} GB/s"
            )
        lost = s.end - s.start - (alone or 0.0)
        if alone is not None and lost > 1e-9:
            slow = ", ".join(
                f"{p.slowdown:.3f} times for {milliseconds(p.end - p.start)}"
                for p in s.pieces[:6]
                if p.slowdown > 1
            )
            lines.append(f"slowed down: {milliseconds(lost)} ms ({slow})")
        if s.start - s.ready > 1e-9:
            lines.append(f"waited for its turn: {milliseconds(s.start - s.ready)} ms")
        if s.transition_ms:
            lines.append(f"then to another unit: {milliseconds(s.transition_ms)} ms")
        return "\n".join(lines)

    def box(self, s: Segment, y: float, height: float, shade: int, words: str = "") -> Markup:
        """Return a segment: its rectangle, its contention as a hatch, and its words where they fit."""
        left, right = self.x(s.start), self.x(s.end)
        wide = max(right - left, 0.5)
        parts = [element("rect", x=left, y=y, width=wide, height=height, class_=f"box n{shade % SHADES}")]
        for p in s.pieces:
            if p.slowdown > 1 + 1e-12 and p.end > p.start:
                lost = min(1 - 1 / p.slowdown, WORST) / WORST
                parts.append(
                    element(
                        "rect",
                        x=self.x(p.start),
                        y=y,
                        width=max(self.x(p.end) - self.x(p.start), 0.3),
                        height=height,
                        class_="slow",
                        fill="url(#contended)",
                        opacity=f"{0.25 + 0.75 * lost:.2f}",
                    )
                )
        if words and fitted(words, wide - 8, 10.5) == words:
            parts.append(element("text", words, x=left + 5, y=y + height / 2 + 12, class_="small on"))
        index = self.index[s.step]
        return element("g", title(self.told(s)), *parts, data_segment=str(index), data_unit=str(s.unit))

    @cached_property
    def index(self) -> dict[Step, int]:
        return {s.step: n for n, s in enumerate(self.shown)}

    def axis(self, top: float, bottom: float) -> Iterator[Markup]:
        step = _nice(self.until / 10)
        tick = 0
        while tick * step <= self.until * (1 + 1e-9):
            x = self.x(tick * step)
            yield element("line", x1=x, x2=x, y1=top, y2=bottom, class_="grid")
            unit = " ms" if not tick else ""
            yield element("text", f"{tick * step:.6g}{unit}", x=x, y=bottom + 15, class_="quiet middle small")
            tick += 1
        end = self.x(self.until)
        yield element("line", x1=end, x2=end, y1=top, y2=bottom, class_="end-of-all")

    # -- units over time ----------------------------------------------------------------------------------

    def lane(self, unit: int) -> float:
        return 12 + unit * (LANE + STRIP + BETWEEN)

    def units(self) -> Markup:
        soc = self.line.workload.soc
        bottom = self.lane(len(soc.units) - 1) + LANE + STRIP + 8
        parts = [_DEFINITIONS, *self.axis(6, bottom)]
        for u in range(len(soc.units)):
            y = self.lane(u)
            busy = 100 * self.line.busy_ms[u] / self.line.makespan_ms
            parts.append(element("rect", x=LEFT, y=y, width=WIDTH - LEFT - RIGHT, height=LANE, class_="well"))
            parts.append(
                element("text", fitted(self.unit(u), LEFT - 14, 12), x=4, y=y + LANE / 2 - 2, class_="strong")
            )
            parts.append(
                element("text", f"{busy:.0f} % busy", x=4, y=y + LANE / 2 + 13, class_="quiet small")
            )
            parts.append(element("text", "speed lost", x=4, y=y + LANE + 13, class_="quiet small"))
        rows: list[list[Segment]] = [[] for _ in soc.units]
        for s in self.shown:
            rows[s.unit].append(s)
        for u, row in enumerate(rows):
            for s in row:
                parts.append(self.box(s, self.lane(u), LANE, s.step.job, self.group(s)))
            parts += self.stretches(u, row)
            parts += self.lost(u, row)
        parts += self.gaps()
        parts += self.ways()
        return picture(WIDTH, bottom + AXIS, "Units over time, with contention", parts)

    def stretches(self, unit: int, row: Sequence[Segment]) -> Iterator[Markup]:
        """Yield the network's name once for all consecutive groups of a run on the unit."""
        y = self.lane(unit)
        for mine in _following(row):
            left, right = self.x(mine[0].start), self.x(mine[-1].end)
            words = _words(self.name(mine[0]), right - left - 8, 11)
            if words:
                yield element("text", words, x=left + 5, y=y + LANE / 2 - 3, class_="strong on through")

    def gaps(self) -> Iterator[Markup]:
        """Yield the idle times of units, with the reasons."""
        for idle in idle_times(self.made.schedule, self.line):
            if idle.end > self.until:
                continue
            left, wide = self.x(idle.start), self.x(idle.end) - self.x(idle.start)
            y, why = self.lane(idle.unit), visible(idle_reason(self.made, idle))
            told = f"{self.unit(idle.unit)} idle for {milliseconds(idle.end - idle.start)} ms: {why}"
            parts = [element("rect", x=left, y=y, width=wide, height=LANE, class_="gap")]
            words = _begun(why, wide - 8, 10)
            if words:
                parts.append(
                    element("text", words, x=left + 5, y=y + LANE / 2 + 4, class_="quiet small through")
                )
            yield element("g", title(told), *parts, class_="idle")

    def lost(self, unit: int, row: Iterable[Segment]) -> Iterator[Markup]:
        """Yield the unit's loss of speed at each moment, as a hanging profile below its lane."""
        top = self.lane(unit) + LANE + 3
        for s in row:
            for p in s.pieces:
                if p.slowdown > 1 + 1e-12 and p.end > p.start:
                    height = (STRIP - 4) * min(1 - 1 / p.slowdown, WORST) / WORST
                    yield element(
                        "rect",
                        x=self.x(p.start),
                        y=top,
                        width=max(self.x(p.end) - self.x(p.start), 0.3),
                        height=max(height, 0.6),
                        class_="loss",
                    )

    def ways(self) -> Iterator[Markup]:
        """Yield an arrow for each change of units, from a group's end to when the next could begin."""
        for s in self.shown:
            after = self.at.get(Step(s.step.job, s.step.run, s.step.group + 1))
            if after is None or after.unit == s.unit:
                continue
            down = after.unit > s.unit
            y1 = self.lane(s.unit) + (LANE if down else 0)
            y2 = self.lane(after.unit) + (0 if down else LANE)
            x1, x2 = self.x(s.end), self.x(after.ready)
            middle = (y1 + y2) / 2
            words = (
                f"{self.name(s)}: from {self.unit(s.unit)} to {self.unit(after.unit)}"
                f" in {milliseconds(s.transition_ms)} ms"
            )
            path = (
                " ".join(map(number, (x1, y1)))
                + f" C {number(x1)} {number(middle)} {number(x2)} {number(middle)} {number(x2)} {number(y2)}"
            )
            yield element(
                "g",
                title(words),
                element("path", d=f"M {path}", class_="way", marker_end="url(#arrow)"),
                class_="move",
            )
            if after.start - after.ready > 1e-9:
                x3 = self.x(after.start)
                yield element("path", d=f"M {number(x2)} {number(y2)} H {number(x3)}", class_="wait")

    # -- networks over time -------------------------------------------------------------------------------

    def networks(self) -> Markup:
        jobs = self.line.workload.jobs
        bottom = 8 + len(jobs) * (ROW + ROW_BETWEEN)
        parts = list(self.axis(4, bottom))
        for j, job in enumerate(jobs):
            y = 8 + j * (ROW + ROW_BETWEEN)
            words = fitted(visible(job.name), LEFT - 14, 12)
            parts.append(element("text", words, x=4, y=y + ROW / 2 + 4, class_="strong"))
        for s in self.shown:
            y = 8 + s.step.job * (ROW + ROW_BETWEEN)
            if s.start - s.ready > 1e-9:
                ready, start = self.x(s.ready), self.x(s.start)
                parts.append(
                    element(
                        "path", d=f"M {number(ready)} {number(y + ROW / 2)} H {number(start)}", class_="wait"
                    )
                )
            if s.transition_ms:
                left, wide = self.x(s.end), self.x(s.end + s.transition_ms) - self.x(s.end)
                move = element("rect", x=left, y=y + ROW / 2 - 3, width=wide, height=6, class_="moving")
                words = f"{self.name(s)} changes units in {milliseconds(s.transition_ms)} ms"
                parts.append(element("g", title(words), move))
            parts.append(self.box(s, y, ROW, SHADES - 1 - s.unit))
            if not s.step.group and self.line.workload.runs(s.step.job) > 1:
                start = self.x(s.start)
                parts.append(element("line", x1=start, x2=start, y1=y - 4, y2=y + ROW, class_="run"))
                parts.append(element("text", f"run {s.step.run}", x=start + 3, y=y - 1, class_="quiet tiny"))
        for row in self.by_job():
            for mine in _following(row):
                left, right = self.x(mine[0].start), self.x(mine[-1].end)
                words = _words(self.unit(mine[0].unit), right - left - 8, 11)
                y = 8 + mine[0].step.job * (ROW + ROW_BETWEEN)
                parts.append(
                    element("text", words, x=left + 5, y=y + ROW / 2 + 4, class_="strong on through")
                )
        return picture(WIDTH, bottom + AXIS, "Networks over time, by the unit they are on", parts)

    def by_job(self) -> list[list[Segment]]:
        """Return the segments of each network, in its own order."""
        rows: list[list[Segment]] = [[] for _ in self.line.workload.jobs]
        for s in sorted(self.shown, key=lambda s: s.step):
            rows[s.step.job].append(s)
        return rows


def by_unit(made: Judged) -> Markup:
    """Return a lane for every unit."""
    return _Drawing(made).units()


def by_network(made: Judged) -> Markup:
    """Return a row for every network."""
    return _Drawing(made).networks()


def in_small(line: Timeline, until: float) -> Markup:
    """Return a timeline without words, to be set beside others on one scale of `until` ms."""
    units = len(line.workload.soc.units)
    wide, lane = 900.0, 9.0
    parts = [
        element(
            "rect",
            x=wide * s.start / until,
            y=s.unit * lane,
            width=max(wide * (s.end - s.start) / until, 0.3),
            height=lane - 1.5,
            class_=f"n{s.step.job % SHADES}",
        )
        for s in line.segments[:MOST]
    ]
    end = wide * line.makespan_ms / until
    parts.append(element("line", x1=end, x2=end, y1=0, y2=units * lane, class_="end-of-all"))
    label = f"{milliseconds(line.makespan_ms)} ms"
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {number(wide)} {number(units * lane)}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
        class_="mini",
    )


def _following(row: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Yield stretches of consecutive groups of one run on one unit in the row."""
    for _, found in groupby(
        enumerate(row), key=lambda at: (at[1].step[:2], at[1].unit, at[1].step.group - at[0])
    ):
        yield [s for _, s in found]


def _words(text: str, width: float, size: float) -> str:
    """Return the text as far as it fits; empty where less than half of it would be left."""
    found = fitted(text, width, size)
    return found if 2 * len(found) >= len(text) else ""


def _begun(text: str, width: float, size: float) -> str:
    """Return the whole words of a sentence that fit, with an ellipsis; empty where only one would be left."""
    room = int(width / (size * NARROW))
    if len(text) <= room:
        return text
    head = text[: max(room, 0)].rpartition(" ")[0]
    return f"{head}\N{HORIZONTAL ELLIPSIS}" if " " in head else ""


def _nice(step: float) -> float:
    """Return 1, 2 or 5 times a power of ten, at least `step`."""
    power = 10.0 ** floor(log10(step))
    return next(power * m for m in (1, 2, 5, 10) if power * m >= step * (1 - 1e-9))


_DEFINITIONS = Markup(
    '<defs><pattern id="contended" width="6" height="6" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(45)"><rect class="hatch" width="2.4" height="6"/></pattern>'
    '<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
    ' orient="auto-start-reverse"><path class="head" d="M0 0 8 4 0 8z"/></marker></defs>'
)
