"""A module's regions over its steps: Fig. 6 to 8 of the simple method, drawn from the program.

Each layer has a column, in the order of processing, under its branch; addresses go upwards. The columns at
both ends belong to the neighbours: what is handed over lies at the same addresses there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from markupsafe import Markup

from onchip.report.graph.units import label_of
from onchip.report.modules.anatomy import Part
from onchip.report.modules.axes import LEFT, RIGHT, WIDTH, Steps, horizontal
from onchip.report.modules.roles import ROLES, Present, drawable
from onchip.report.modules.table import shortly
from onchip.report.modules.traffic import moves
from onchip.report.steps import Timeline
from onchip.report.svg import element, fitted, picture, title
from onchip.report.wording import visible

__all__ = ["regions"]

PLOT, HEAD, MOVES, FOOT = 330.0, 40.0, 16.0, 46.0
"""Heights: the addresses, the branches above them, the crossings to DRAM, the layers below."""

WIDEST = 118.0
"""The width of a column where there are few."""


def regions(part: Part, line: Timeline) -> Markup:
    """Return one module's picture."""
    return _Regions(part, line).drawn()


@dataclass(frozen=True)
class _Regions:
    part: Part
    line: Timeline

    @property
    def steps(self) -> Steps:
        before = 1 if self.part.first > 0 else 0
        after = 1 if self.part.end < len(self.line.steps) else 0
        first, end = self.part.first - before, self.part.end + after
        right = min(WIDTH - RIGHT, LEFT + WIDEST * (end - first))
        return Steps(first, end, LEFT, right)

    @property
    def most(self) -> int:
        return max(self.line.plan.budget, self.line.extent_bytes, 1)

    @cached_property
    def moves(self) -> dict[int, tuple[int, int]]:
        """Feature map bytes from and to DRAM, by step."""
        return moves(self.part, self.line.plan)

    @cached_property
    def top(self) -> float:
        both = any(into and out for into, out in self.moves.values())
        return HEAD + MOVES * (2 if both else 1) + 4

    def y(self, n: float) -> float:
        return self.top + PLOT - n / self.most * PLOT

    def drawn(self) -> Markup:
        name = f"Regions of {self.part.name}: addresses over its layers"
        inside = [*self._ground(), *self._branches(), *self._boxes(), *self._moves(), *self._layers()]
        return picture(self.steps.right + RIGHT, self.top + PLOT + FOOT, name, inside, whole=False)

    def _ground(self) -> Iterator[Markup]:
        s, budget = self.steps, self.line.plan.budget
        height = PLOT
        yield element("rect", x=s.left, y=self.top, width=s.right - s.left, height=height, class_="well")
        yield from horizontal(self.most, self.y, s.left, s.right)
        yield element("path", d=f"M{s.left:.1f} {self.y(budget):.1f}H{s.right:.1f}", class_="memory")

    def _branches(self) -> Iterator[Markup]:
        """Yield a bracket over the steps of each branch, with its number in the order."""
        part, s = self.part, self.steps

        def of(step: int) -> int | None:
            operators = self.line.steps[step].operators
            return part.branch.get(operators[0]) if operators else None

        for branch, run in groupby(range(part.first, part.end), key=of):
            mine = list(run)
            left, right = s.x(mine[0]) + 2, s.x(mine[-1] + 1) - 2
            d = f"M{left:.1f} {HEAD:.1f}V{HEAD - 7:.1f}H{right:.1f}V{HEAD:.1f}"
            if branch is None:
                merge = all(part.merge in self.line.steps[i].operators for i in mine)
                words = "merge" if merge else ""
            else:
                words = fitted(f"branch {branch + 1}", right - left, 12) or str(branch + 1)
            if words:
                yield element("path", d=d, class_="bracket")
                yield element("text", words, x=(left + right) / 2, y=HEAD - 13, class_="middle strong")

    def _boxes(self) -> Iterator[Markup]:
        part, s = self.part, self.steps
        labels: list[Markup] = []
        for p in drawable(part, self.line, around=1):
            x, wide = s.x(p.first), s.wide * (p.end - p.first)
            top, height = self.y(p.stay.address + p.stay.size), p.stay.size / self.most * PLOT
            yield element(
                "g",
                title(f"{visible(p.stay.name)}: {ROLES[p.role]}, {p.stay.size:,} B at {p.stay.address:,}"),
                element("rect", x=x, y=top, width=wide, height=max(0.5, height), class_=f"box r-{p.role}"),
                data_box=p.index,
            )
            # Place words in the module's own columns where it has any of them.
            first, end = max(p.first, part.first), min(p.end, part.end)
            if first >= end:
                first, end = p.first, p.end
            labels += self._label(p, s.x(first), s.wide * (end - first), top, height)
        for x, wide in self._outside():
            yield element("rect", x=x, y=self.top, width=wide, height=PLOT, class_="veil")
        yield from labels

    def _outside(self) -> Iterator[tuple[float, float]]:
        s = self.steps
        if s.first < self.part.first:
            yield s.x(s.first), s.wide
        if s.end > self.part.end:
            yield s.x(self.part.end), s.wide

    def _label(self, p: Present, x: float, wide: float, top: float, height: float) -> Iterator[Markup]:
        """Yield the role and the size, as far as there is room."""
        if height < 12:
            return
        kind = {"mifm": "MIFM", "mofm": "MOFM", "mifm-in": "nested MIFM", "mofm-in": "nested MOFM"}.get(
            p.role
        )
        size = shortly(p.stay.size)
        if p.role == "scratch":
            lines = ["WM + W", size]
        else:
            lines = [
                f"{kind}: {self.part.short(p.stay.name)}" if kind else self.part.short(p.stay.name),
                size,
            ]
            if kind and len(lines[0]) * 6.2 > wide - 6:
                lines = [kind, self.part.short(p.stay.name), size]
        if height < 13 * len(lines):
            lines = [f"{lines[0]} {size}" if len(f"{lines[0]} {size}") * 6.2 < wide - 6 else lines[0]]
        shown = [words for text in lines if (words := fitted(text, wide - 6, 11))]
        first = top + height / 2 - 6.5 * len(shown) + 10
        for i, words in enumerate(shown):
            yield element("text", words, x=x + wide / 2, y=first + 13 * i, class_="middle on")

    def _moves(self) -> Iterator[Markup]:
        """Yield the feature maps that cross to DRAM at a step, above its column."""
        s = self.steps
        for i, (into, out) in self.moves.items():
            y = self.top - 8
            for n, arrow, kind in ((out, "\N{UPWARDS ARROW}", "out"), (into, "\N{DOWNWARDS ARROW}", "in")):
                if n:
                    yield element(
                        "text",
                        fitted(f"{arrow} {shortly(n)}", s.wide + 12, 11) or arrow,
                        x=s.x(i + 0.5),
                        y=y,
                        class_=f"middle move {kind}",
                    )
                    y -= MOVES

    def _layers(self) -> Iterator[Markup]:
        """Yield the layer that runs, under its column."""
        s, net, bottom = self.steps, self.line.plan.network, self.top + PLOT
        for i in range(s.first, s.end):
            step = self.line.steps[i]
            mine = self.part.first <= i < self.part.end
            if len(step.operators) == 1:
                label = label_of(net.operators[step.operators[0]])
            else:
                label = step.type or "store"
            words = fitted(label, s.wide - 4, 11)
            name = fitted(self.part.short(step.name), s.wide - 4, 10) if mine and step.name else ""
            where = "" if mine else ("before" if i < self.part.first else "after")
            yield element(
                "g",
                title(visible(step.name) or "after the last operator"),
                element("rect", x=s.x(i), y=bottom, width=s.wide, height=FOOT, class_="hit"),
                element(
                    "text", words, x=s.x(i + 0.5), y=bottom + 16, class_="middle" if mine else "middle quiet"
                ),
                element("text", name or where, x=s.x(i + 0.5), y=bottom + 31, class_="middle quiet small"),
                data_step=i,
            )
