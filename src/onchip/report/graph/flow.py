"""Boxes and links on a page: columns from left to right, broken into lines as a page breaks text.

Networks are long and narrow: in a single line they would be illegible. Links within a line are curves
between columns; links to a later line go down beside their box, along the gutter under the line, and down
again beside the target box. Links of one net (one tensor) share their lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onchip.report.graph.layers import Arc, Place, columns_of, heights, in_order
from onchip.report.graph.lines import broken

__all__ = ["Box", "Drawing", "Link", "Spacing", "draw"]


@dataclass(frozen=True, slots=True)
class Box:
    """A box to draw, by its size."""

    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Link:
    """A link from the right side of box `source` to the left side of box `target`.

    `out` and `into` are the heights of its ends within those boxes; links of one `net` share lanes.
    """

    source: int
    target: int
    out: float
    into: float
    net: int


@dataclass(frozen=True, slots=True)
class Spacing:
    """Distances: between columns, within a column, between lines, and between lanes of links."""

    columns: float = 26
    boxes: float = 10
    lines: float = 22
    lanes: float = 4
    via: float = 3


@dataclass(frozen=True, slots=True)
class Drawing:
    """The positions of boxes and routes. A route is a start (x, y) and cubic curves of six numbers each."""

    width: float
    height: float
    at: tuple[tuple[float, float], ...]
    routes: tuple[tuple[float, ...], ...]


def draw(
    boxes: Sequence[Box], links: Sequence[Link], room: tuple[float, float], spacing: Spacing | None = None
) -> Drawing:
    """Return the boxes in lines whose outline fits `room` (width, height) at the largest scale, and the
    links.

    Raises `ValueError` for links that form a cycle.
    """
    if not boxes:
        return Drawing(0, 0, (), ())
    return _Page(boxes, links, room, spacing or Spacing()).drawing()


class _Page:
    def __init__(
        self, boxes: Sequence[Box], links: Sequence[Link], room: tuple[float, float], spacing: Spacing
    ) -> None:
        self.boxes, self.links, self.space = boxes, links, spacing
        column = columns_of(len(boxes), sorted({(k.source, k.target) for k in links}))
        used = {c: i for i, c in enumerate(sorted(set(column)))}
        self.column = [used[c] for c in column]
        self.columns: list[list[int]] = [[] for _ in used]
        for v, c in enumerate(self.column):
            self.columns[c].append(v)
        self.wide = [max(boxes[v].width for v in c) for c in self.columns]
        self.lines = broken(
            [w + spacing.columns for w in self.wide],
            [sum(boxes[v].height + spacing.boxes for v in c) for c in self.columns],
            [(self.column[k.source], self.column[k.target], k.net) for k in links],
            room,
            spacing.lines,
        )
        self.line_of = {c: i for i, (a, b) in enumerate(self.lines) for c in range(a, b)}
        self._lanes()
        self._across()
        self._down()

    def line(self, box: int) -> int:
        return self.line_of[self.column[box]]

    # -- lanes: the nets that share a gutter, channel or margin ----------------------------------------------

    def _lanes(self) -> None:
        """Assign lanes: a channel is left of a column (or right of a line's last), a gutter above a line."""
        self.gutter: list[dict[int, int]] = [{} for _ in self.lines]
        self.channel: dict[tuple[int, int], dict[tuple[int, str], int]] = {}
        self.margin: dict[int, int] = {}
        for k in self.links:
            i, j = self.line(k.source), self.line(k.target)
            if i == j:
                continue
            _lane(self.channel.setdefault((i, self.column[k.source] + 1), {}), (k.net, "out"))
            _lane(self.channel.setdefault((j, self.column[k.target]), {}), (k.net, "in"))
            _lane(self.gutter[i + 1], k.net)
            if j > i + 1:
                _lane(self.gutter[j], k.net)
                _lane(self.margin, k.net)

    def _gap(self, line: int, position: int) -> float:
        lanes = len(self.channel.get((line, position), ()))
        first, end = self.lines[line]
        least = self.space.columns if first < position < end else 0.0
        return max(least, (lanes + 1) * self.space.lanes + least * 0.6 if lanes else least)

    # -- positions --------------------------------------------------------------------------------------

    def _across(self) -> None:
        left = (len(self.margin) + 1) * self.space.lanes if self.margin else 0.0
        self.x: list[float] = [0.0] * len(self.columns)
        self.width = 0.0
        for i, (first, end) in enumerate(self.lines):
            x = left
            for c in range(first, end):
                x += self._gap(i, c)
                self.x[c] = x
                x += self.wide[c]
            self.width = max(self.width, x + self._gap(i, end))

    def _down(self) -> None:
        """Assign heights line by line; `via` is the height at which a net passes a column."""
        self.top = [0.0] * len(self.boxes)
        self.via: dict[tuple[int, int], float] = {}
        self.gutter_top: list[float] = []
        y = 0.0
        for i, (first, end) in enumerate(self.lines):
            self.gutter_top.append(y)
            if i or self.gutter[i]:
                y += self.space.lines + len(self.gutter[i]) * self.space.lanes
            below = y
            for box, net_column, top, height in self._line(i, first, end):
                if box is not None:
                    self.top[box] = y + top
                else:
                    self.via[net_column] = y + top + height / 2
                below = max(below, y + top + height)
            y = below
        self.height = y

    def _line(
        self, line: int, first: int, end: int
    ) -> list[tuple[int | None, tuple[int, int], float, float]]:
        places, key = [], []
        columns: list[list[int]] = [[] for _ in range(first, end)]
        where: dict[int, int] = {}
        passing: dict[tuple[int, int], int] = {}

        def place(box: int | None, height: float, c: int, what: tuple[int, int]) -> int:
            places.append(Place(height, box))
            key.append(what)
            columns[c - first].append(len(places) - 1)
            return len(places) - 1

        for c in range(first, end):
            for v in self.columns[c]:
                where[v] = place(v, self.boxes[v].height, c, (0, 0))
        arcs: dict[tuple[int, int, float, float], None] = {}
        for k in self.links:
            if self.line(k.source) != line or self.line(k.target) != line:
                continue
            at, out = where[k.source], k.out
            for c in range(self.column[k.source] + 1, self.column[k.target]):
                if (k.net, c) not in passing:
                    passing[k.net, c] = place(None, self.space.via, c, (k.net, c))
                arcs[at, passing[k.net, c], out, self.space.via / 2] = None
                at, out = passing[k.net, c], self.space.via / 2
            arcs[at, where[k.target], out, k.into] = None
        pieces = [Arc(*a) for a in arcs]
        tops = heights(in_order(columns, pieces), places, pieces, self.space.boxes)
        return [(p.box, key[i], tops[i], p.height) for i, p in enumerate(places)]

    # -- routes -----------------------------------------------------------------------------------------

    def drawing(self) -> Drawing:
        at = tuple(
            (self.x[c] + (self.wide[c] - b.width) / 2, self.top[v])
            for v, (b, c) in enumerate(zip(self.boxes, self.column, strict=True))
        )
        routes = []
        for k in self.links:
            x, y = at[k.source]
            pen = _Pen(x + self.boxes[k.source].width, y + k.out)
            near = self.line(k.source) == self.line(k.target)
            (self._beside if near else self._around)(pen, k, at[k.target][1] + k.into)
            pen.line(at[k.target][0], at[k.target][1] + k.into)
            routes.append(tuple(pen.path))
        return Drawing(self.width, self.height, at, tuple(routes))

    def _beside(self, pen: _Pen, k: Link, y: float) -> None:
        """Draw a link within one line: curves from column to column."""
        for c in range(self.column[k.source], self.column[k.target]):
            pen.line(self.x[c] + self.wide[c], pen.y)
            pen.curve(self.x[c + 1], y if c + 1 == self.column[k.target] else self.via[k.net, c + 1])

    def _around(self, pen: _Pen, k: Link, y: float) -> None:
        """Draw a link to a later line: down, along a gutter, down again."""
        i, j = self.line(k.source), self.line(k.target)
        out = self._lane_x(i, self.column[k.source] + 1, (k.net, "out"))
        into = self._lane_x(j, self.column[k.target], (k.net, "in"))
        corners = [(out, pen.y), (out, self._lane_y(i + 1, k.net))]
        if j > i + 1:
            aside = (self.margin[k.net] + 0.5) * self.space.lanes
            corners += [(aside, corners[-1][1]), (aside, self._lane_y(j, k.net))]
        corners += [(into, corners[-1][1]), (into, y)]
        pen.corners(corners)

    def _lane_x(self, line: int, position: int, what: tuple[int, str]) -> float:
        lanes = self.channel[line, position]
        first, end = self.lines[line]
        left = self.x[position - 1] + self.wide[position - 1] if position > first else None
        right = self.x[position] if position < end else None
        if left is None:
            assert right is not None
            left = right - self._gap(line, position)
        if right is None:
            right = left + self._gap(line, position)
        return (left + right) / 2 + (lanes[what] - (len(lanes) - 1) / 2) * self.space.lanes

    def _lane_y(self, gutter: int, net: int) -> float:
        return self.gutter_top[gutter] + self.space.lines / 2 + self.gutter[gutter][net] * self.space.lanes


def _lane(lanes: dict[Any, int], key: Any) -> None:
    lanes.setdefault(key, len(lanes))


class _Pen:
    """Draws one route."""

    RADIUS = 7.0

    def __init__(self, x: float, y: float) -> None:
        self.x, self.y, self.path = x, y, [x, y]

    def line(self, x: float, y: float) -> None:
        if abs(x - self.x) + abs(y - self.y) > 0.05:
            dx, dy = (x - self.x) / 3, (y - self.y) / 3
            self._to(self.x + dx, self.y + dy, x - dx, y - dy, x, y)

    def curve(self, x: float, y: float) -> None:
        middle = (x - self.x) / 2
        self._to(self.x + middle, self.y, x - middle, y, x, y)

    def corners(self, points: Sequence[tuple[float, float]]) -> None:
        """Go straight to each point and round the corner there; reach the last one level."""
        for i, (x, y) in enumerate(points):
            dx, dy = x - self.x, y - self.y
            length = abs(dx) + abs(dy)
            nx, ny = points[i + 1] if i + 1 < len(points) else (x + 1, y)
            after = abs(nx - x) + abs(ny - y)
            r = min(self.RADIUS, length / 2, after / 2)
            if length > 0.05:
                self.line(x - dx / length * r, y - dy / length * r)
            if r > 0.05:
                ex, ey = x + (nx - x) / after * r, y + (ny - y) / after * r
                self._to(x, y, x, y, ex, ey)

    def _to(self, *numbers: float) -> None:
        self.path += numbers
        self.x, self.y = numbers[-2], numbers[-1]
