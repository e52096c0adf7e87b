"""Boxes within nested frames: each frame is a drawing of its own, and a box of the drawing around it.

A net enters or leaves a frame at a port, a box without size in the frame's own drawing, so that the drawings
meet there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from onchip.report.graph.flow import Box, Link, Spacing, draw

__all__ = ["Edge", "Frame", "Leaf", "Margins", "Picture", "Route", "arranged"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """An element drawn as one box."""

    key: int
    box: Box


@dataclass(frozen=True, slots=True)
class Frame:
    """Leaves and frames within a frame at least `least` wide, in their preferred order."""

    key: int
    inside: tuple[Leaf | Frame, ...]
    least: float = 0.0


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge from leaf to leaf, by their keys; edges of one `net` share their route."""

    source: int
    target: int
    net: int


@dataclass(frozen=True, slots=True)
class Margins:
    """The margins inside a frame: at the sides, for its title, at its foot."""

    side: float = 10.0
    head: float = 20.0
    foot: float = 9.0


@dataclass(frozen=True, slots=True)
class Route:
    """A piece of a net within one frame (None: outside all): a start and cubic curves of six numbers each.

    `source` and `target` are its ends there: leaves and frames by key, None for the frame's own side.
    """

    net: int
    frame: int | None
    source: int | None
    target: int | None
    path: tuple[float, ...]


@dataclass(frozen=True)
class Picture:
    """The positions of all elements: (x, y) of leaves, (x, y, width, height) of frames."""

    width: float
    height: float
    leaves: Mapping[int, tuple[float, float]]
    frames: Mapping[int, tuple[float, float, float, float]]
    routes: tuple[Route, ...]


def arranged(
    inside: Sequence[Leaf | Frame],
    edges: Sequence[Edge],
    room: tuple[float, float],
    spacing: Spacing,
    margins: Margins,
) -> Picture:
    """Return the picture in lines within `room` (width, height).

    Leaves have distinct keys, and so have frames. Raises `ValueError` for edges that form a cycle among the
    boxes of one frame.
    """
    whole = _Drawn(None, tuple(inside), edges, room, (spacing, spacing), margins)
    picture = _Whole()
    whole.place(0.0, 0.0, picture)
    return Picture(whole.width, whole.height, picture.leaves, picture.frames, tuple(picture.routes))


@dataclass
class _Whole:
    leaves: dict[int, tuple[float, float]] = field(default_factory=dict)
    frames: dict[int, tuple[float, float, float, float]] = field(default_factory=dict)
    routes: list[Route] = field(default_factory=list)


class _Drawn:
    """One frame's own drawing, and those inside it."""

    def __init__(
        self,
        frame: Frame | None,
        inside: tuple[Leaf | Frame, ...],
        edges: Sequence[Edge],
        room: tuple[float, float],
        spacing: tuple[Spacing, Spacing],
        margins: Margins,
    ) -> None:
        self.frame, self.inside, self.margins = frame, inside, margins
        self.place_of = {leaf: i for i, child in enumerate(inside) for leaf in _leaves(child)}
        own = [e for e in edges if e.source in self.place_of or e.target in self.place_of]
        less = (room[0] - 2 * margins.side, room[1])
        self.children = [
            _Drawn(child, child.inside, _touching(own, child), less, (spacing[1], spacing[1]), margins)
            if isinstance(child, Frame)
            else None
            for child in inside
        ]
        self.width: float
        self.height: float
        self.entry: dict[int, float] = {}
        self.exit: dict[int, float] = {}
        self._link(own)
        boxes = [self._box(i) for i in range(len(inside))]
        self.drawing = draw(boxes + [Box(0, 0)] * len(self.ports), self.links, less, spacing[0])
        side, head, foot = (margins.side, margins.head, margins.foot) if frame else (0.0, 0.0, 0.0)
        self.left, self.head = side, head
        least = frame.least if frame else 0.0
        self.width = max(least, self.drawing.width + 2 * side)
        self.height = self.drawing.height + head + foot
        for (net, enters), i in self.ports.items():
            (self.entry if enters else self.exit)[net] = self.drawing.at[i][1] + head

    def _box(self, place: int) -> Box:
        child, drawn = self.inside[place], self.children[place]
        if isinstance(child, Leaf):
            return child.box
        assert drawn is not None
        return Box(drawn.width, drawn.height)

    def _link(self, edges: Sequence[Edge]) -> None:
        self.ports: dict[tuple[int, bool], int] = {}
        found: dict[tuple[int, int, int], Link] = {}
        for e in edges:
            a, b = self.place_of.get(e.source), self.place_of.get(e.target)
            if a is not None and a == b:
                continue
            source = self._port(e.net, True) if a is None else a
            target = self._port(e.net, False) if b is None else b
            out = 0.0 if a is None else self._end(a, e.net, "exit")
            into = 0.0 if b is None else self._end(b, e.net, "entry")
            found[source, target, e.net] = Link(source, target, out, into, e.net)
        self.links = list(found.values())

    def _port(self, net: int, enters: bool) -> int:
        return self.ports.setdefault((net, enters), len(self.inside) + len(self.ports))

    def _end(self, place: int, net: int, side: str) -> float:
        child = self.inside[place]
        if isinstance(child, Leaf):
            return child.box.height / 2
        drawn = self.children[place]
        assert drawn is not None
        return float(getattr(drawn, side)[net])

    def place(self, x: float, y: float, picture: _Whole) -> None:
        """Record the positions, with the drawing's own corner at (x, y)."""
        if self.frame:
            picture.frames[self.frame.key] = x, y, self.width, self.height
        left, top = x + self.left, y + self.head
        for child, drawn, (cx, cy) in zip(self.inside, self.children, self.drawing.at, strict=False):
            if isinstance(child, Leaf):
                picture.leaves[child.key] = left + cx, top + cy
            elif drawn:
                drawn.place(left + cx, top + cy, picture)
        key = self.frame.key if self.frame else None
        count = len(self.inside)
        for link, route in zip(self.links, self.drawing.routes, strict=True):
            source, target = (self.inside[i].key if i < count else None for i in (link.source, link.target))
            picture.routes.append(Route(link.net, key, source, target, _moved(route, left, top)))
        for (net, enters), i in self.ports.items():
            # From the side of the frame to the port, whose column may not be the outermost of its line.
            px, py = self.drawing.at[i]
            a, b = (-self.left, px) if enters else (px, self.width - self.left)
            if b - a > 0.05:
                picture.routes.append(Route(net, key, None, None, _moved(_level(a, b, py), left, top)))


def _leaves(child: Leaf | Frame) -> Iterator[int]:
    if isinstance(child, Leaf):
        yield child.key
    else:
        for one in child.inside:
            yield from _leaves(one)


def _touching(edges: Sequence[Edge], frame: Frame) -> list[Edge]:
    mine = set(_leaves(frame))
    return [e for e in edges if e.source in mine or e.target in mine]


def _moved(route: Sequence[float], x: float, y: float) -> tuple[float, ...]:
    return tuple(n + (y if i % 2 else x) for i, n in enumerate(route))


def _level(x: float, end: float, y: float) -> tuple[float, ...]:
    third = (end - x) / 3
    return (x, y, x + third, y, end - third, y, end, y)
