"""The drawing of a plan's graph as data for the page's script: numbers and short words.

It has two levels: the operators of a unit inside its box, and the boxes among themselves. A tensor enters or
leaves a box at a port, a box without size in the inner drawing, so that both drawings meet there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from onchip.machines.chip import ELEMENTS
from onchip.network import Network, bits
from onchip.planners.fused_group import bands_in_words
from onchip.plans import Plan
from onchip.report.graph.buffers import WHAT, Buffer, buffers
from onchip.report.graph.flow import Box, Drawing, Link, Spacing, draw
from onchip.report.graph.units import (
    KINDS,
    Unit,
    how_it_runs,
    kind_of,
    label_of,
    map_of,
    units,
)
from onchip.report.steps import Timeline
from onchip.report.wording import visible

__all__ = ["picture"]

OPERATOR = Box(94, 31)
TERMINAL = Box(86, 24)
CLOSED = Box(56, 32)
"""A unit without its operators."""

SPACING = Spacing(columns=30, boxes=14, lines=26, lanes=6, via=4)
CLOSE = Spacing(columns=20, boxes=9, lines=20, lanes=4, via=3)
PAD, HEAD, FOOT = 10.0, 19.0, 12.0
"""The margins of a unit's box: at the sides, for its title, for the bar of its bytes."""

ROOM = (1340.0, 660.0)
"""The initial room of the drawing on the page."""

MOST = 12_000
"""The most operators to draw; a larger graph would be illegible."""


def picture(plan: Plan, line: Timeline) -> dict[str, Any] | None:
    """Return the drawing, or None for a plan without groups or of too many operators to draw."""
    if not plan.groups or len(plan.network.operators) > MOST:
        return None
    return _Picture(plan, line).data()


@dataclass(frozen=True)
class _Inside:
    """A unit's inner drawing; ports by tensor, as heights within the unit's box."""

    drawing: Drawing
    links: tuple[Link, ...]
    box: Box
    entry: dict[int, float]
    exit: dict[int, float]


class _Picture:
    def __init__(self, plan: Plan, line: Timeline) -> None:
        self.plan, self.net = plan, plan.network
        self.units = units(plan, line)
        self.held = buffers(plan, line, self.units)
        self.inside = [_inside(self.net, u) for u in self.units]
        self.maker = {t: i for i, u in enumerate(self.units) for t in u.outputs}
        self.begins = [
            t for t in range(len(self.net.tensors)) if self.net.input_roots >> t & 1 and self._read(t)
        ]
        self.ends = [t for t in range(len(self.net.tensors)) if self.net.output_roots >> t & 1]
        self.node = {("in", t): len(self.units) + i for i, t in enumerate(self.begins)}
        self.node |= {("out", t): len(self.units) + len(self.begins) + i for i, t in enumerate(self.ends)}
        self.links = self._links()
        terminals = [TERMINAL] * (len(self.begins) + len(self.ends))
        self.drawing = draw([*(i.box for i in self.inside), *terminals], self.links, ROOM, SPACING)
        closed = [replace(k, out=self._middle(k.source), into=self._middle(k.target)) for k in self.links]
        self.closed = draw([CLOSED] * len(self.units) + terminals, closed, ROOM, CLOSE)

    def _middle(self, node: int) -> float:
        return (CLOSED if node < len(self.units) else TERMINAL).height / 2

    def _read(self, tensor: int) -> bool:
        return any(tensor in u.inputs for u in self.units)

    def _links(self) -> list[Link]:
        middle, found = TERMINAL.height / 2, []
        for i, unit in enumerate(self.units):
            for t in unit.inputs:
                into = self.inside[i].entry[t]
                if t in self.maker:
                    found.append(Link(self.maker[t], i, self.inside[self.maker[t]].exit[t], into, t))
                else:
                    found.append(Link(self.node["in", t], i, middle, into, t))
        for t in self.ends:
            if t in self.maker:
                out = self.inside[self.maker[t]].exit[t]
                found.append(Link(self.maker[t], self.node["out", t], out, middle, t))
        return found

    # -- data -------------------------------------------------------------------------------------------

    def data(self) -> dict[str, Any]:
        operators, inner = [], []
        for i, (unit, inside) in enumerate(zip(self.units, self.inside, strict=True)):
            x, y = self.drawing.at[i]
            for (ox, oy), op in zip(inside.drawing.at, unit.operators, strict=False):
                operators.append(self._operator(i, op, x + ox + PAD, y + oy + HEAD))
            for link, route in zip(inside.links, inside.drawing.routes, strict=True):
                inner.append([link.net, i, _moved(route, x + PAD, y + HEAD)])
        return {
            "size": [round(self.drawing.width), round(self.drawing.height)],
            "element": ELEMENTS.get(self.net.element, 1),
            "operator": [OPERATOR.width, OPERATOR.height],
            "what": list(WHAT),
            "kinds": [k.replace("_", " ") for k in KINDS],
            "units": [self._unit(i) for i in range(len(self.units))],
            "operators": operators,
            "terminals": [
                [kind == "in", t, *map(_short, self.drawing.at[node]), TERMINAL.width, TERMINAL.height]
                for (kind, t), node in self.node.items()
            ],
            "outer": [self._outer(k, r) for k, r in zip(self.links, self.drawing.routes, strict=True)],
            "inner": inner,
            "closed": {
                "size": [round(self.closed.width), round(self.closed.height)],
                "at": [list(map(_short, at)) for at in self.closed.at],
                "box": [CLOSED.width, CLOSED.height],
                "outer": [_moved(r, 0, 0) for r in self.closed.routes],
            },
            "maps": {t: m for t in self._shown() if (m := map_of(self.net, t)) is not None},
        }

    def _shown(self) -> set[int]:
        net = self.net
        return {
            net.root[t] for u in self.units for v in u.operators for t in bits(net.reads[v] | net.writes[v])
        }

    def _unit(self, i: int) -> list[Any]:
        unit = self.units[i]
        x, y = self.drawing.at[i]
        box = self.inside[i].box
        halo = unit.halo(self.net)
        return [
            visible(unit.name),
            unit.group is not None,
            *map(_short, (x, y, box.width, box.height)),
            bands_in_words(*how_it_runs(unit)),
            unit.group.subgroups if unit.group else 1,
            unit.scratch,
            sum(unit.into.values()) - halo,
            sum(unit.out.values()),
            halo,
            unit.weights,
            unit.step,
            [self._buffer(b) for b in self.held.get(unit.name, ())],
        ]

    def _buffer(self, b: Buffer) -> list[Any]:
        p = b.part
        tensor = -1 if p.tensor is None else p.tensor
        figures = (p.rows, p.columns, p.channels, p.images, p.bytes)
        beside = (int(b.whole), b.shared)
        return [b.what, tensor, "" if p.tensor is not None else visible(p.name), *figures, *beside]

    def _operator(self, i: int, op: int, x: float, y: float) -> list[Any]:
        o, group = self.net.operators[op], self.units[i].group
        times = dict(group.refills).get(o.name, 1) if group else 1
        return [
            i,
            _short(x),
            _short(y),
            visible(o.name),
            visible(o.type),
            label_of(o),
            kind_of(o),
            list(dict.fromkeys(self.net.root[t] for t in o.inputs)),
            list(dict.fromkeys(self.net.root[t] for t in o.outputs)),
            o.weight_bytes,
            -1 if group and o.name in group.resident_weights else times,
        ]

    def _outer(self, link: Link, route: tuple[float, ...]) -> list[Any]:
        reader = link.target if link.target < len(self.units) else -1
        maker = link.source if link.source < len(self.units) else -1
        read = self.units[reader].into.get(link.net, 0) if reader >= 0 else 0
        written = self.units[maker].out.get(link.net, 0) if maker >= 0 else 0
        return [link.net, maker, reader, read, written, _moved(route, 0, 0)]


def _inside(net: Network, unit: Unit) -> _Inside:
    """Return the inner drawing: operators, then a port for each entering, then for each leaving tensor."""
    place = {op: i for i, op in enumerate(unit.operators)}
    count = len(place)
    entry = {t: count + i for i, t in enumerate(unit.inputs)}
    exits = {t: count + len(entry) + i for i, t in enumerate(unit.outputs)}
    middle, links = OPERATOR.height / 2, []
    made: dict[int, int] = {}
    for op in unit.operators:
        made.update({net.root[t]: place[op] for t in net.operators[op].outputs})
    for op in unit.operators:
        for t in dict.fromkeys(net.root[t] for t in net.operators[op].inputs):
            if t in made:
                links.append(Link(made[t], place[op], middle, middle, t))
            elif t in entry:
                links.append(Link(entry[t], place[op], 0, middle, t))
    links += [Link(made[t], port, middle, 0, t) for t, port in exits.items() if t in made]
    ports = [Box(0, 0)] * (len(entry) + len(exits))
    wide = max(1.0, sqrt(count / 8))
    drawing = draw([OPERATOR] * count + ports, links, (580 * wide, 160 * wide), Spacing(18, 9, 16, 4, 2))
    links, routes = list(links), list(drawing.routes)
    width, height = drawing.width + 2 * PAD, drawing.height + HEAD + FOOT
    # From a port to the side of the box: its column may not be the outermost one of its line.
    for t, port in entry.items():
        x, y = drawing.at[port]
        links.append(Link(port, port, 0, 0, t))
        routes.append(_level(-PAD, x, y))
    for t, port in exits.items():
        x, y = drawing.at[port]
        links.append(Link(port, port, 0, 0, t))
        routes.append(_level(x, drawing.width + PAD, y))
    return _Inside(
        Drawing(drawing.width, drawing.height, drawing.at, tuple(routes)),
        tuple(links),
        Box(width, height),
        {t: drawing.at[port][1] + HEAD for t, port in entry.items()},
        {t: drawing.at[port][1] + HEAD for t, port in exits.items()},
    )


def _level(x: float, end: float, y: float) -> tuple[float, ...]:
    third = (end - x) / 3
    return (x, y, x + third, y, end - third, y, end, y)


def _moved(route: tuple[float, ...], x: float, y: float) -> list[float]:
    return [_short(n + (y if i % 2 else x)) for i, n in enumerate(route)]


def _short(n: float) -> float | int:
    """Round to one digit after the point, which is far below a pixel."""
    n = round(n, 1)
    return int(n) if n == int(n) else n
