"""The need of each layer of a module, and the memory left by the modules' regions: Fig. 10.

The figure is of the simple method. The layer's need goes up from the ground, the modules' held inputs and
outputs go down from the ceiling; the free memory lies between the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from onchip.report.modules.anatomy import Part
from onchip.report.modules.axes import LEFT, RIGHT, WIDTH, horizontal
from onchip.report.modules.roles import Layer
from onchip.report.steps import Timeline
from onchip.report.svg import element, fitted, picture, title
from onchip.report.wording import exact, visible

__all__ = ["Wish", "required", "told", "wishes"]

PLOT, HEAD, FOOT = 170.0, 26.0, 30.0
"""Heights: of the plot, of the modules' names above it, of the branches' numbers below."""

COLUMN, APART, SPACE = 13.0, 4.0, 12.0
"""Widths: of a layer, between branches, between modules."""


@dataclass(frozen=True, slots=True)
class Wish:
    """The need and the available memory of a layer if its module kept its output on chip (processing I)."""

    step: int
    operator: int
    required: int
    available: int


def wishes(part: Part, line: Timeline, rows: Sequence[Layer]) -> tuple[Wish, ...]:
    """Return the wishes of the branches' last layers, whose output goes to DRAM; none by processing I."""
    if part.section.processing != "II":
        return ()
    net, found, there = part.network, [], 0
    for layer in rows:
        sent = sum(
            net.tensors[t].bytes
            for t, _ in line.steps[layer.step].streamed
            if net.writes[layer.operator] >> t & 1 and t in part.written_to
        )
        if sent and layer.operator != part.merge:
            available = layer.available(line.plan.budget) - there
            found.append(Wish(layer.step, layer.operator, layer.required + sent, available))
            there += sent
    return tuple(found)


def required(parts: Sequence[Part], line: Timeline, layers: Mapping[int, tuple[Layer, ...]]) -> Markup:
    """Return the figure: modules side by side, in as many rows as they need; `layers` by the part's index."""
    room = WIDTH - LEFT - RIGHT
    rows = _rows(parts, layers, room)
    widest = max(sum(_wide(layers[p.index]) for p in row) for row in rows)
    scale = min(room / max(widest, 1.0), 2.6)
    height = HEAD + PLOT + FOOT
    inside: list[Markup] = []
    for i, row in enumerate(rows):
        inside += _Chart(line, layers, i * height, scale).row(row)
    label = "Bytes that each layer needs against those that the modules' inputs and outputs leave"
    return picture(WIDTH, len(rows) * height, label, inside)


def _rows(parts: Sequence[Part], layers: Mapping[int, tuple[Layer, ...]], room: float) -> list[list[Part]]:
    """Return the modules in as few rows as `room` allows, of about equal width."""
    whole = sum(_wide(layers[p.index]) for p in parts)
    each = whole / max(1, -(-whole // room))
    rows: list[list[Part]] = [[]]
    used = 0.0
    for part in parts:
        wide = _wide(layers[part.index])
        if rows[-1] and (used + wide > room or used + wide / 2 > each):
            rows.append([])
            used = 0.0
        rows[-1].append(part)
        used += wide
    return rows


def _wide(rows: Sequence[Layer]) -> float:
    return COLUMN * max(1, len(rows)) + SPACE + APART * max(0, len({r.branch for r in rows}) - 1)


@dataclass(frozen=True)
class _Chart:
    line: Timeline
    layers: Mapping[int, tuple[Layer, ...]]
    top: float
    scale: float

    @property
    def budget(self) -> int:
        return max(1, self.line.plan.budget)

    @property
    def ground(self) -> float:
        return self.top + HEAD + PLOT

    def y(self, n: float) -> float:
        return self.ground - min(max(n / self.budget, -0.02), 1.1) * PLOT

    def row(self, parts: Sequence[Part]) -> Iterator[Markup]:
        right = LEFT + self.scale * sum(_wide(self.layers[p.index]) for p in parts)
        yield from horizontal(self.budget, self.y, LEFT, right)
        x = LEFT
        for part in parts:
            yield from self.module(part, x)
            x += self.scale * _wide(self.layers[part.index])
        yield element("path", d=f"M{LEFT:.1f} {self.y(self.budget):.1f}H{right:.1f}", class_="memory")

    def module(self, part: Part, left: float) -> Iterator[Markup]:
        rows = self.layers[part.index]
        wide = self.scale * (_wide(rows) - SPACE)
        second = part.section.processing == "II"
        how = f" \N{MIDDLE DOT} {part.section.processing}" if part.section.processing else ""
        name = fitted(part.name, wide + self.scale * SPACE - 4 - len(how) * 6.2, 11)
        yield element(
            "g",
            title(f"{part.name}{how}"),
            element("rect", x=left, y=self.top + 4, width=wide, height=HEAD + PLOT - 4),
            element(
                "text", (name + how) if name else how[3:], x=left + wide / 2, y=self.top + 17, class_="middle"
            ),
            class_="band second" if second else "band",
            data_module=part.index,
        )
        wishes_ = {w.step: w for w in wishes(part, self.line, rows)}
        edge: list[str] = []
        x = left
        for branch, mine in groupby(rows, key=lambda r: r.branch):
            begin = x
            for layer in mine:
                yield from self.column(part, layer, x, wishes_.get(layer.step))
                free = self.y(layer.available(self.budget))
                start = f"H{x:.1f}V{free:.1f}" if edge else f"M{x:.1f} {free:.1f}"
                edge.append(f"{start}H{x + COLUMN * self.scale:.1f}")
                x += COLUMN * self.scale
            words = "+" if branch is None else str(branch + 1)
            yield element("path", d=f"M{begin + 1:.1f} {self.ground + 4:.1f}H{x - 1:.1f}", class_="bracket")
            yield element("text", words, x=(begin + x) / 2, y=self.ground + 17, class_="middle quiet")
            x += APART * self.scale
        if edge:
            yield element("path", d="".join(edge), class_="edge")

    def column(self, part: Part, layer: Layer, x: float, wish: Wish | None) -> Iterator[Markup]:
        wide = COLUMN * self.scale
        pieces: list[Markup] = []
        at = 0
        made = part.network.writes[layer.operator]
        kept = any(made >> t & 1 for t in part.written_to)
        for size, role in (
            (layer.scratch, "scratch"),
            (layer.read, "map"),
            (layer.written, "mofm" if kept else "map next"),
        ):
            pieces += self.piece(x + 1, wide - 2, at, at + size, role)
            at += size
        at = self.budget
        for i, size in enumerate(layer.held):
            pieces += self.piece(x, wide, at - size, at, "mifm-in" if i else "mifm")
            at -= size
        for size, role in ((layer.occupied, "mofm"), (layer.other, "other")):
            pieces += self.piece(x, wide, at - size, at, f"{role} held")
            at -= size
        if wish is not None:
            over = "wish over" if wish.required > wish.available else "wish"
            low, free = self.y(wish.required), self.y(wish.available)
            pieces.append(
                element("rect", x=x + 1, y=low, width=wide - 2, height=self.ground - low, class_=over)
            )
            pieces.append(element("path", d=f"M{x:.1f} {free:.1f}H{x + wide:.1f}", class_=f"{over} line"))
        yield element(
            "g",
            title(told(part, layer, self.budget, wish)),
            element("rect", x=x, y=self.top + HEAD, width=wide, height=PLOT, class_="hit"),
            *pieces,
            data_step=layer.step,
        )

    def piece(self, x: float, wide: float, low: int, high: int, role: str) -> Iterator[Markup]:
        if high > low:
            top = self.y(high)
            yield element("rect", x=x, y=top, width=wide, height=self.y(low) - top, class_=f"r-{role}")


def told(part: Part, layer: Layer, budget: int, wish: Wish | None) -> str:
    """Return a layer's figures in a line."""
    name = visible(part.network.operators[layer.operator].name)
    text = f"{name}: needs {exact(layer.required)} of {exact(layer.available(budget))} available"
    if wish is not None:
        text += f"; with its output kept on chip {exact(wish.required)} of {exact(wish.available)}"
    return text
