"""The plan on a terminal: status, DRAM bytes, the peak, the spills. Nothing depends on colour."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from onchip.base.short_names import distinct_names
from onchip.check.as_nests import AsNests, plan_as_nests
from onchip.planners.modules.table import module_table
from onchip.plans import Plan
from onchip.report import claims, findings, times
from onchip.report.as_nests import as_nests_sentence, as_nests_table, why_lines
from onchip.report.bounds import bound_rows
from onchip.report.grid import Grid
from onchip.report.grouped import group_legend, group_rows, group_table
from onchip.report.modules import terminal_table
from onchip.report.nest import shown_nests
from onchip.report.nest.table import LEGEND as NESTS
from onchip.report.nest.table import nest_table
from onchip.report.steps import Timeline, timeline
from onchip.report.wording import SPACE, exact, short_size, shorten, visible

__all__ = ["Summary", "summary"]

_MOST_SPILLS = 12
_MOST_LIVE = 8


def summary(plan: Plan) -> Summary:
    """Return a rich renderable: print it with `rich.print`, from 80 columns up.

    Raises `IllegalPlan` for a program that is not legal.
    """
    return Summary(plan, timeline(plan))


@dataclass(frozen=True)
class Summary:
    """A plan's summary, laid out for the width of the output."""

    plan: Plan
    timeline: Timeline

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        yield self.headline()
        yield Text(claims.status_sentence(self.plan, self.traffic), style="dim")
        if kept := findings.caches_sentence(self.plan):
            yield Text(kept)
        if tiled := findings.layouts_sentence(self.plan):
            yield Text(tiled)
        if again := findings.repeats_sentence(self.plan):
            yield Text(again)
        if worth := claims.standing_sentence(self.plan):
            yield Text(worth)
        if boundary := claims.boundary_sentence(self.plan):
            yield Text(boundary, style="dim")
        for heading, body in (
            ("DRAM traffic", self.dram()),
            *((("Memories", self.memories()),) if self.plan.chip.memories else ()),
            *((("Time", self.times()),) if self.plan.timing else ()),
            *((("Groups", self.groups(width)),) if self.grouped else ()),
            *(
                (("Nests", Group(nest_table(nests, width - 2), Text(NESTS, style="dim"))),)
                if (nests := shown_nests(self.plan, self.timeline))
                else ()
            ),
            *(
                (("As nests of loops", self.as_nests(found)),)
                if (found := plan_as_nests(self.plan)) is not None
                else ()
            ),
            *((("Modules", self.modules(width)),) if any(s.merge for s in self.plan.sections) else ()),
            (self.peak_heading(width), self.peak(width)),
            *((("Spilled and reloaded", self.spills(width)),) if self.absences else ()),
        ):
            yield Text()
            yield Text(heading, style="bold")
            yield Padding(body, (0, 0, 0, 2))
        if zero_traffic := findings.zero_traffic_sentence(self.plan, self.timeline):
            yield Text()
            yield Text(zero_traffic)
        for sentence in findings.strategy_sentences(self.plan):
            yield Text(sentence)
        if among := claims.space_sentence(self.plan):
            yield Text()
            yield Text(SPACE, style="bold")
            yield Padding(Text(among, style="dim"), (0, 0, 0, 2))

    @property
    def grouped(self) -> bool:
        return claims.is_grouped(self.plan)

    @property
    def traffic(self) -> int:
        return self.timeline.traffic.spill + self.timeline.traffic.reload

    @property
    def absences(self) -> tuple[findings.Absence, ...]:
        return findings.absences(self.timeline)

    def headline(self) -> Text:
        line = Text(visible(findings.title(self.plan)), style="bold")
        where = findings.where(self.plan)
        line.append(
            f"{f', {visible(where)}' if where else ''}, {exact(self.plan.budget)}: ", style="not bold"
        )
        line.append(claims.status_words(self.plan))
        return line

    def name(self, name: str, width: int, share: float) -> Text:
        return Text(shorten(visible(name), max(12, int(width * share))))

    def names(self, names: Iterable[str], width: int, share: float) -> dict[str, str]:
        """Return the names of a column in a share of the width, by what is visible of them."""
        return distinct_names(map(visible, names), max(12, int(width * share)))

    def dram(self) -> RenderableType:
        t = self.timeline.traffic
        table = Grid(("bytes", True), ("", True), ("share", True), ("what", False))
        total = t.total or 1
        rows = [
            (t.compulsory, "compulsory: network inputs in and outputs out, once"),
            (t.spill, "spill: written " + ("between groups" if self.grouped else "to make room")),
            (t.reload, "reload: read back" + (", halo included" if self.grouped else "")),
            (t.weights, "weights: fetched by the operators"),
        ]
        for n, what in rows:
            table.add_row(f"{n:,}", short_size(n), f"{100 * n / total:.1f} %", what)
        table.add_row(f"{t.total:,}", short_size(t.total), "", "all DRAM bytes of this plan")
        if not claims.is_of_ram(self.plan):
            for bound, what in bound_rows(self.plan):
                stated = ("-", "") if bound is None else (f"{bound:,}", short_size(bound))
                table.add_row(*stated, "", what)
        for what, value in findings.cost_of_dram(self.plan, self.timeline):
            table.add_row(value, "", "", what)
        return table

    def memories(self) -> RenderableType:
        names = ("bytes", True), ("reached", True), ("share", True), ("read and written", True)
        table = Grid(("memory", False), *names)
        for name, size, extent, accessed in findings.memory_rows(self.timeline):
            share = f"{100 * extent / size:.1f} %"
            table.add_row(visible(name), f"{size:,}", f"{extent:,}", share, f"{accessed:,}")
        for moved in self.plan.result.moves:
            pair = f"{visible(moved.source)} to {visible(moved.target)}"
            table.add_row(f"moved {pair}", "", "", "", f"{moved.bytes:,}")
        return Group(table, Text(findings.memory_sentence(self.plan)))

    def groups(self, width: int) -> RenderableType:
        table = group_table(group_rows(self.plan, self.timeline), width - 2)
        return Group(table, Text(group_legend(table), style="dim"))

    def as_nests(self, found: AsNests) -> RenderableType:
        table = as_nests_table(found)
        why = Text("\n".join(why_lines(found)), style="dim")
        return Group(Text(as_nests_sentence(self.plan, found)), *(() if table is None else (table, why)))

    def modules(self, width: int) -> RenderableType:
        return terminal_table(module_table(self.plan), width - 2)

    def times(self) -> RenderableType:
        found = times.times(self.plan)
        table = Grid(("time", True), ("what", False))
        for time, what in times.rows(found) if found else ():
            table.add_row(time, what)
        return table

    def peak_heading(self, width: int) -> str:
        line, steps = self.timeline, self.timeline.steps
        if not steps:
            return "Peak: no operator runs"
        step = steps[line.peak_step]
        name = shorten(visible(findings.step_label(step)), max(12, width - 60))
        count = sum(1 for s in steps if s.operators)
        where = f"step {step.index + 1} of {count}, {name}" if step.operators else name
        return f"Peak {exact(line.peak_bytes)} at {where}"

    def peak(self, width: int) -> RenderableType:
        table = Grid(("bytes", True), ("", True), ("share", True), ("role", False), ("tensor", False))
        live = self.timeline.peak_live
        total = sum(n for _, _, n in live) or 1
        names = self.names((name for name, _, _ in live[:_MOST_LIVE]), width, 0.45)
        for name, role, n in live[:_MOST_LIVE]:
            table.add_row(f"{n:,}", short_size(n), f"{100 * n / total:.1f} %", role, names[visible(name)])
        rest = live[_MOST_LIVE:]
        if rest:
            n = sum(r[2] for r in rest)
            table.add_row(f"{n:,}", short_size(n), f"{100 * n / total:.1f} %", "", f"{len(rest)} more")
        return table

    def spills(self, width: int) -> RenderableType:
        """Return the costliest absences, in order of time."""
        line, found = self.timeline, self.absences
        shown = sorted(sorted(found, key=lambda a: -a.cost)[:_MOST_SPILLS], key=lambda a: a.left)
        wide = width >= 120  # room for the last column beside names long enough to be distinguished
        columns = [("tensor", False), ("bytes", True), ("out at steps", True), ("room needed by", False)]
        table = Grid(*columns, *((("why", False),) if wide else ()))
        names = self.names((a.name for a in shown), width, 0.24 if wide else 0.26)
        for a in shown:
            row: list[str | Text] = [
                names[visible(a.name)],
                f"{a.bytes:,}",
                findings.step_range(a.left, a.back),
                self.name(findings.room_needed_by(line, a), width, 0.25 if wide else 0.32),
            ]
            table.add_row(*row, *((findings.absence_reason(line, a),) if wide else ()))
        rest = len(found) - len(shown)
        if rest:
            cost = sum(a.cost for a in found) - sum(a.cost for a in shown)
            table.add_row(f"{rest} more", f"{cost:,}", *[""] * (len(table.headings) - 2))
        return table
