"""The network with its modules: Fig. 4 of the simple method, nested boxes, branches in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup

from onchip.network import Network, bits
from onchip.planners.modules.roles import Nested
from onchip.report.graph.flow import Box, Spacing
from onchip.report.graph.frames import Edge, Frame, Leaf, Margins, Picture, Route, arranged
from onchip.report.graph.units import KINDS, kind_of, label_of, map_of
from onchip.report.modules.anatomy import Part
from onchip.report.modules.axes import WIDTH
from onchip.report.steps import Timeline
from onchip.report.svg import element, fitted, number, picture, title
from onchip.report.wording import short_size, visible

__all__ = ["MANY", "MOST", "drawing"]

OPERATOR, CLOSED, JOINT = Box(84, 30), Box(22, 13), Box(26, 26)
"""The sizes of a layer with words and, in large networks, without; of a merge layer."""

MANY = 420
"""The number of operators from which on layers have no words."""

MOST = 6_000
"""The most operators to draw; a larger graph would be illegible."""

TERMINAL = Box(70, 24)
TIMES = "\N{MULTIPLICATION SIGN}"
CONCAT = KINDS.index("concat")

OPEN_SPACING = Spacing(columns=22, boxes=9, lines=20, lanes=5, via=5)
CLOSE_SPACING = Spacing(columns=12, boxes=5, lines=14, lanes=4, via=3)
MARGINS = Margins(10, 22, 9)


def drawing(parts: Sequence[Part], line: Timeline) -> Markup | None:
    """Return the picture; None for a network of too many operators to draw."""
    if len(line.plan.network.operators) > MOST:
        return None
    return _Drawing(tuple(parts), line).drawn()


@dataclass(frozen=True)
class _Drawing:
    parts: tuple[Part, ...]
    line: Timeline

    @property
    def net(self) -> Network:
        return self.line.plan.network

    @cached_property
    def small(self) -> bool:
        return len(self.net.operators) > MANY

    @cached_property
    def step_of(self) -> dict[int, int]:
        return {op: s.index for s in self.line.steps for op in s.operators}

    @cached_property
    def part_of(self) -> dict[int, Part]:
        return {op: part for part in self.parts for op in bits(part.operators)}

    @cached_property
    def merges(self) -> frozenset[int]:
        """The merge layers of modules: drawn as joints."""
        found = {p.merge for p in self.parts} | {n.merge for p in self.parts for n in p.nested}
        return frozenset(op for op in found if op is not None)

    @cached_property
    def inner(self) -> dict[int, tuple[Part, Nested]]:
        """The frames of modules inside modules, by their keys."""
        rows = [(part, n) for part in self.parts for n in part.nested]
        return {self.frames + len(self.parts) + i: row for i, row in enumerate(rows)}

    @property
    def frames(self) -> int:
        """The first frame's key: leaves are operators, then network inputs, then outputs."""
        return len(self.net.operators) + 2 * len(self.net.tensors)

    @cached_property
    def fetched(self) -> frozenset[tuple[int, int]]:
        """(step, tensor) of everything that comes from DRAM."""
        streamed = {(s.index, t) for s in self.line.steps for t, _ in s.streamed if t in s.inputs}
        loaded = {
            (r.start, r.tensor)
            for r in self.line.residencies
            if r.tensor is not None and r.arrival in ("load", "reload")
        }
        return frozenset(streamed | loaded)

    # -- boxes and edges ----------------------------------------------------------------------------------

    def leaf(self, op: int) -> Leaf:
        if self.small:
            return Leaf(op, Box(CLOSED.height, CLOSED.height) if op in self.merges else CLOSED)
        return Leaf(op, JOINT if op in self.merges else OPERATOR)

    def frame(self, part: Part) -> Frame:
        assert part.merge is not None
        order = [op for branch in part.branches for op in branch]
        order += [op for op in self.ordered(part.operators) if op not in part.branch and op != part.merge]
        keys = {n: key for key, (_, n) in self.inner.items()}

        def within(some: Sequence[int], around: Nested | None) -> list[Leaf | Frame]:
            found: list[Leaf | Frame] = []
            begun: set[int] = set()
            for op in some:
                chain = part.around(op)
                at = chain.index(around) + 1 if around else 0
                if at == len(chain):
                    found.append(self.leaf(op))
                elif keys[chain[at]] not in begun:
                    begun.add(keys[chain[at]])
                    mine = [v for v in some if chain[at].operators >> v & 1]
                    found.append(Frame(keys[chain[at]], tuple(within(mine, chain[at])), 60.0))
            return found

        least = min(220.0, 6.4 * len(part.name) + 44) if not self.small else 40.0
        return Frame(self.frames + part.index, (*within(order, None), self.leaf(part.merge)), least)

    def ordered(self, operators: int) -> list[int]:
        return sorted(bits(operators), key=lambda op: self.step_of.get(op, 0))

    def boxes(self) -> list[Leaf | Frame]:
        count, found = len(self.net.operators), list[Leaf | Frame]()
        end = Box(40, 13) if self.small else TERMINAL
        found += [Leaf(count + t, end) for t in bits(self.net.input_roots) if self.net.readers[t]]
        for part in self.parts:
            if part.is_module:
                found.append(self.frame(part))
            else:
                found += [self.leaf(op) for op in self.ordered(part.operators)]
        made = count + len(self.net.tensors)
        return found + [Leaf(made + t, end) for t in bits(self.net.output_roots) if self.drawn_maker(t)]

    def drawn_maker(self, t: int) -> bool:
        made = self.net.producer[t]
        return made is not None and made in self.part_of

    def edges(self) -> list[Edge]:
        net, count, found = self.net, len(self.net.operators), []
        for op in sorted(self.part_of):
            for t in bits(net.reads[op]):
                made = net.producer[t]
                if made is None:
                    found.append(Edge(count + t, op, t))
                elif made in self.part_of:
                    found.append(Edge(made, op, t))
        for t in bits(net.output_roots):
            made = net.producer[t]
            if made is not None and made in self.part_of:
                found.append(Edge(made, count + len(net.tensors) + t, t))
        return found

    # -- the picture --------------------------------------------------------------------------------------

    def drawn(self) -> Markup:
        spacing = CLOSE_SPACING if self.small else OPEN_SPACING
        found = arranged(self.boxes(), self.edges(), (WIDTH - 20, 1e6), spacing, MARGINS)
        inside = [
            *self._frames(found),
            *(self._route(r) for r in sorted(found.routes, key=self._long)),
            *self._leaves(found),
            *self._numbers(found),
        ]
        label = "The network's layers in the modules that were found, branches numbered as they run"
        shown = element("g", *inside, transform="translate(8 10)")
        return picture(max(WIDTH, found.width + 20), found.height + 22, label, [shown])

    def _frames(self, found: Picture) -> Iterator[Markup]:
        for key, (x, y, w, h) in found.frames.items():
            box = element("rect", x=x, y=y, width=w, height=h, rx=7)
            if key in self.inner:
                part, n = self.inner[key]
                merge = part.short(self.net.operators[n.merge].name)
                words = "" if self.small else fitted(merge, w - 16, 10.5)
                yield element(
                    "g",
                    title(f"module inside {part.name}, merged by {merge}"),
                    box,
                    element("text", words, x=x + 10, y=y + 15, class_="quiet small"),
                    class_="frame inner",
                )
                continue
            part = self.parts[key - self.frames]
            how = part.section.processing or ""
            yield element(
                "g",
                title(f"{part.name}{f', processing {how}' if how else ''}"),
                box,
                element("text", fitted(part.name, w - 44, 11.5), x=x + 10, y=y + 16, class_="strong"),
                element("text", how, x=x + w - 10, y=y + 16, class_="end strong"),
                class_="frame second" if how == "II" else "frame",
                data_module=part.index,
            )

    def _leaves(self, found: Picture) -> Iterator[Markup]:
        net, count = self.net, len(self.net.operators)
        for key, (x, y) in found.leaves.items():
            if key >= count:
                tensor = net.tensors[(key - count) % len(net.tensors)]
                wide, high = (40.0, 13.0) if self.small else (TERMINAL.width, TERMINAL.height)
                words = "" if self.small else fitted(visible(tensor.name), wide - 8, 11)
                yield element(
                    "g",
                    title(f"{visible(tensor.name)}: {short_size(tensor.bytes)}"),
                    element("rect", x=x, y=y, width=wide, height=high, rx=high / 2),
                    element("text", words, x=x + wide / 2, y=y + 16, class_="middle"),
                    class_="terminal",
                )
                continue
            yield self._operator(key, x, y)

    def _operator(self, op: int, x: float, y: float) -> Markup:
        o, box = self.net.operators[op], self.leaf(op).box
        joint = op in self.merges
        radius = box.height / 2 if joint else 4
        lines: list[Markup] = []
        if not self.small:
            middle = x + box.width / 2
            if joint:
                sign = "cat" if kind_of(o) == CONCAT else "+"
                lines.append(element("text", sign, x=middle, y=y + 17, class_="middle on"))
            else:
                words = fitted(label_of(o).replace("depthwise", "dw"), box.width - 6, 11)
                lines.append(element("text", words, x=middle, y=y + 13, class_="middle on"))
                if shape := self._shape(op):
                    lines.append(element("text", shape, x=middle, y=y + 25, class_="middle on small"))
        return element(
            "g",
            title(f"{visible(o.name)} ({visible(o.type)})"),
            element("rect", x=x, y=y, width=box.width, height=box.height, rx=radius, class_=f"k{kind_of(o)}"),
            *lines,
            class_="op",
            data_step=self.step_of.get(op),
        )

    def _shape(self, op: int) -> str:
        outputs = self.net.operators[op].outputs
        found = map_of(self.net, self.net.root[outputs[0]])
        if found is None:
            return ""
        _, channels, rows, columns = found
        return f"{channels}{TIMES}{rows}{TIMES}{columns}" if rows * columns > 1 else f"{channels}"

    # -- routes -------------------------------------------------------------------------------------------

    def _part(self, key: int | None) -> Part | None:
        if key is None or key >= self.frames:
            index = -1 if key is None else key - self.frames
            return self.parts[index] if 0 <= index < len(self.parts) else None
        return self.part_of.get(key)

    def _long(self, route: Route) -> bool:
        """Return whether a route goes round a module, or through it beside its input and output."""
        made = self.net.producer[route.net]
        if route.frame is not None:
            part = self._framed(route.frame)
            outside = made is None or not part.operators >> made & 1
            return (outside and route.net != part.start) or self._leaves_early(part, route.net)
        source = None if made is None else self.part_of.get(made)
        target = self._part(route.target)
        if source is None or target is None or source is target:
            return False
        if target.is_module and route.net != target.start:
            return True
        if source.is_module and route.net != source.output:
            return True
        return any(p.is_module for p in self.parts[source.index + 1 : target.index])

    def _framed(self, key: int) -> Part:
        return self.inner[key][0] if key in self.inner else self.parts[key - self.frames]

    def _leaves_early(self, part: Part, net: int) -> bool:
        made = self.net.producer[net]
        inside = made is not None and bool(part.operators >> made & 1)
        return inside and net != part.output and bool(self.net.readers[net] & ~part.operators)

    def _route(self, route: Route) -> Markup:
        numbers = route.path
        d = f"M{number(numbers[0])} {number(numbers[1])}"
        for i in range(2, len(numbers), 6):
            d += "C" + " ".join(number(n) for n in numbers[i : i + 6])
        words = ["way"]
        target = self._part(route.target)
        if route.frame is None and target is None:
            words += ["outer", "dram"]  # a network output
        elif route.frame is None and target is not None:
            words.append("outer")
            at = (
                range(target.first, target.end)
                if route.target is not None and route.target >= self.frames
                else [self.step_of.get(route.target or 0, -1)]
            )
            if any((s, route.net) in self.fetched for s in at):
                words.append("dram")
        if self._long(route):
            words.append("long")
        tensor = self.net.tensors[route.net]
        name = title(f"{visible(tensor.name)}: {short_size(tensor.bytes)}")
        return element("path", name, d=d, class_=" ".join(words))

    def _numbers(self, found: Picture) -> Iterator[Markup]:
        """Yield each branch's number in the order, at its beginning."""
        if self.small:
            return
        for part in self.parts:
            if not part.is_module:
                continue
            groups: list[tuple[tuple[int, ...], int, int | None]] = [
                (branch, self.frames + part.index, part.start) for branch in part.branches
            ]
            keys = {n: key for key, (p, n) in self.inner.items() if p is part}
            merge = {self.frames + part.index: part.merge} | {keys[n]: n.merge for n in part.nested}
            yield from self._badges(found, part, groups, merge)
            for n in part.nested:
                rows = sorted((self.ordered(b) for b in n.branches), key=lambda b: self.step_of.get(b[0], 0))
                inner = [(tuple(row), keys[n], n.start) for row in rows]
                if self.net.reads[n.merge] >> n.start & 1:
                    inner.append(((), keys[n], n.start))
                yield from self._badges(found, part, inner, merge)

    def _badges(
        self,
        found: Picture,
        part: Part,
        groups: Sequence[tuple[tuple[int, ...], int, int | None]],
        merge: dict[int, int | None],
    ) -> Iterator[Markup]:
        for i, (branch, frame, start) in enumerate(groups):
            at = None
            if branch:
                depth = 0 if frame < self.frames + len(self.parts) else self.inner[frame][1].depth - 1
                chain = part.around(branch[0])
                keys = {n: key for key, (p, n) in self.inner.items() if p is part}
                if len(chain) > depth:
                    x, y, _, h = found.frames[keys[chain[depth]]]
                    at = x, y + h / 2
                elif branch[0] in found.leaves:
                    x, y = found.leaves[branch[0]]
                    at = x - 3, y + self.leaf(branch[0]).box.height / 2
            else:
                at = next(
                    (
                        _middle(r.path)
                        for r in found.routes
                        if r.frame == frame and r.net == start and r.target == merge[frame]
                    ),
                    None,
                )
            if at is not None:
                yield element(
                    "g",
                    title(f"branch {i + 1} of {len(groups)} in the order of processing"),
                    element("circle", cx=at[0], cy=at[1], r=7.5),
                    element("text", str(i + 1), x=at[0], y=at[1] + 3.8, class_="middle small"),
                    class_="badge",
                )


def _middle(path: tuple[float, ...]) -> tuple[float, float]:
    """Return the end of the middle curve of a route."""
    curves = (len(path) - 2) // 6
    i = 2 + 6 * (curves // 2)
    return (path[i - 2] + path[i + 4]) / 2, (path[i - 1] + path[i + 5]) / 2
