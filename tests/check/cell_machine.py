"""A slow, literal machine for groups in bands: rings of rows, slices of channels, one cell after the other.

It shares nothing with the checker. A cell is a row of one channel of one image. For every sub-group it asks
backwards, row by row, what has to be made; then it tries every way to put streamed tensors into passes, in
any order, runs them slice by slice, and fails when a cell that is read is not there. What it needs at the
least, and what crosses, it counts on the way. Whole tensors have a cell for every row of every image and
cross nothing. With an `Overlay` they share bytes, and it is noted when one is read that was written over.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from map_networks import MapNetwork
from onchip.network import Geometry, Network
from onchip.plans import Tiling

Program = list[dict[str, int]]
"""Passes in their order: the tensors of each, with where their first channel stands on the way."""


class Lack(Exception):
    """Something that is read is not there."""


@dataclass
class Part:
    """An operator by names."""

    name: str
    geometry: Geometry
    reads: list[str]
    writes: list[str]
    weights: int


@dataclass
class Counts:
    """What a group needed: rows of every buffer, sub-groups, cells of every tensor that crossed."""

    rows: dict[str, int] = field(default_factory=dict)
    subgroups: int = 0
    crossed: dict[str, int] = field(default_factory=dict)


def says(net: Network, operator: int, tensor: int) -> bool:
    """Whether an operator says what map an operand is: its first, one as large as it makes, any it joins."""
    op = net.operators[operator]
    if op.geometry is None or op.geometry.kind == "concat":
        return op.geometry is not None
    if op.geometry.kind == "elementwise":
        return net.tensors[tensor].bytes == max(net.tensors[t].bytes for t in (*op.inputs, *op.outputs))
    return op.inputs[0] == tensor


class CellMachine:
    """One group of a network with a tiling; `escaping` are the tensors that leave it."""

    def __init__(
        self, drawn: MapNetwork, members: tuple[str, ...], tiling: Tiling, whole: Collection[str] = ()
    ) -> None:
        net, self.whole = drawn.network, set(whole)
        names = [t.name for t in net.tensors]
        self.shapes, self.images, self.tiling = drawn.shapes, drawn.images, tiling
        self.parts: list[Part] = []
        for i in net.order:
            op = net.operators[i]
            if op.name in members:
                if op.geometry is None:
                    raise Lack(f"{op.name} has no geometry")
                reads, writes = [names[t] for t in op.inputs], [names[t] for t in op.outputs]
                self.parts.append(Part(op.name, op.geometry, reads, writes, op.weight_bytes))
        for op in net.operators:
            # The shape of a tensor is what its maker says, that of a graph input what a reader says of it.
            for t in {*op.inputs, *op.outputs} if op.name in members else ():
                maker = net.producer[t]
                readers = [i for i in net.order if t in net.operators[i].inputs]
                tellers = [i for i in readers if says(net, i, t)]
                first = maker if maker is not None else (tellers or readers)[0]
                if net.operators[first].geometry is None:
                    raise Lack(f"nothing says the shape of {names[t]}")
        made = [t for p in self.parts for t in p.writes]
        self.external = list(dict.fromkeys(t for p in self.parts for t in p.reads if t not in made))
        self.tensors = [*self.external, *made]
        outputs = {names[t] for t in net.outputs}
        outside = {names[t] for op in net.operators if op.name not in members for t in op.inputs}
        inside = {t for p in self.parts for t in p.reads}
        self.escaping = [t for t in made if t in outputs or t in outside or t not in inside]
        self.maker = {t: p for p in self.parts for t in p.writes}
        self.streamed = [t for t in self.tensors if t in tiling.streamed]
        assert self.whole <= {*self.external, *self.escaping} - set(self.streamed)
        self.scale = self.scales()

    # -- rows --------------------------------------------------------------------------------------------

    def rows_read(self, part: Part, x: str, row: int) -> tuple[int, int]:
        """Rows [a, b) of `x` that one output row reads; empty, where it would begin, in padding alone."""
        g, size, out = part.geometry, self.shapes[x][1], self.shapes[part.writes[0]]
        if g.kind in ("conv", "depthwise", "pool"):
            first = row * g.stride[0] - g.padding[0]
            last = first + (g.kernel[0] - 1) * (g.dilation or (1, 1))[0]
        elif g.kind == "pad":
            first = last = row - g.padding[0]
        elif self.all_rows(part, x):
            first, last = 0, size - 1
        else:
            assert size == out[1]
            first = last = row
        return min(max(first, 0), size), min(max(last + 1, 0), size)

    def all_rows(self, part: Part, x: str) -> bool:
        g, h, out = part.geometry, self.shapes[x][1], self.shapes[part.writes[0]]
        if g.kind == "fully_connected":
            return True
        if g.kind == "pool":
            return h == g.kernel[0] and out[1] == 1 and g.padding[0] == 0
        return g.kind == "elementwise" and h < out[1]

    def scales(self) -> dict[str, int]:
        """Rows of each map for one of the coarsest, found by trying."""
        links = []
        for p in self.parts:
            for x, y in itertools.product(p.reads, p.writes):
                if not self.all_rows(p, x) and self.shapes[x][1] > 1 and self.shapes[y][1] > 1:
                    stride = p.geometry.stride[0] if p.geometry.kind in ("conv", "depthwise", "pool") else 1
                    links.append((x, y, stride))
        scale: dict[str, int] = {}
        for start in self.tensors:
            for guess in itertools.count(1) if start not in scale else ():
                part, grown = {start: guess}, True
                while grown:
                    grown = False
                    for x, y, s in links:
                        if x in part and y not in part and part[x] % s == 0:
                            part[y], grown = part[x] // s, True
                        elif y in part and x not in part:
                            part[x], grown = part[y] * s, True
                reached = {start}
                for _ in links:
                    reached |= {t for x, y, _ in links if {x, y} & reached for t in (x, y)}
                if all(
                    x in part and y in part and part[x] == s * part[y] for x, y, s in links if x in reached
                ):
                    scale |= part
                    break
                if guess > 3**8:
                    raise Lack("strides do not fit together")
        return scale

    def at_once(self, x: str) -> bool:
        """Whether the first sub-group makes all of it: one row, or all rows are needed for something."""
        if self.shapes[x][1] == 1:
            return True
        return any(
            self.all_rows(p, x) or any(self.shapes[y][1] == 1 or self.at_once(y) for y in p.writes)
            for p in self.parts
            if x in p.reads
        )

    def targets(self, band: int) -> dict[str, int]:
        """How far every escaping tensor has to be complete after a band."""
        result = {}
        for y in self.escaping:
            size = self.shapes[y][1]
            rows = (band + 1) * self.scale[y] * self.tiling.rows
            result[y] = size if self.at_once(y) else min(size, rows)
        return result

    def made(self, band: int, done: Mapping[str, int]) -> dict[str, range]:
        """The rows of every tensor that one sub-group makes (of held ones: new rows alone)."""
        targets, result = self.targets(band), dict[str, range]()
        for x in reversed(self.tensors):
            end, first = max(done[x], targets.get(x, 0)), done[x]
            for p in self.parts:
                for y in p.writes if x in p.reads else ():
                    for row in result[y]:
                        a, b = self.rows_read(p, x, row)
                        first, end = min(first, a), max(end, b)
            result[x] = range(first if x in self.streamed else done[x], end)
        return result

    # -- the group ---------------------------------------------------------------------------------------

    def execute(self, rings: Mapping[str, int] | None = None) -> Counts:
        """Run in the first program of passes that works. With `rings`, buffers have that many rows."""
        for program in self.programs():
            try:
                return _Run(self, program, rings).group()
            except Lack:
                continue
        raise Lack("no order of passes works")

    def overlaid(self, overlay: Overlay, rng: Random, most: int = 20) -> Iterator[bool]:
        """For each of some programs that work, whether a byte that is read was written over."""
        for program in self.programs():
            run = _Run(self, program, None, overlay.fresh(), rng)
            try:
                run.group()
            except Lack:
                continue
            yield run.overlay is not None and run.overlay.lost
            most -= 1
            if not most:
                return

    def programs(self) -> Iterator[Program]:
        """Every ordered partition of the streamed tensors, with every place of their first channels."""
        joins = [p for p in self.parts if p.geometry.kind == "concat" and p.writes[0] in self.streamed]
        widths = [self.shapes[x][0] for p in joins for x in p.reads]
        possible = {sum(some) for n in range(3) for some in itertools.combinations(widths, n)}
        for parts in ordered_partitions(self.streamed):
            for places in itertools.product(sorted(possible), repeat=len(self.streamed)):
                place = dict(zip(self.streamed, places, strict=True))
                if all(min(place[t] for t in part) == 0 for part in parts):
                    yield [{t: place[t] for t in part} for part in parts]


def ordered_partitions(items: list[str]) -> Iterator[list[list[str]]]:
    if not items:
        yield []
        return
    for size in range(1, len(items) + 1):
        for part in itertools.combinations(items, size):
            for rest in ordered_partitions([i for i in items if i not in part]):
                yield [list(part), *rest]


@dataclass
class Overlay:
    """Whole tensor `over` lies `by` bytes above whole tensor `made`, in one memory."""

    drawn: MapNetwork
    made: str
    over: str
    by: int
    nhwc: bool
    coarse: bool = False
    tile: int | None = None
    """Channels of a tile, where the weights of who makes it come tile by tile."""
    lost: bool = False
    gone: set[int] = field(default_factory=set)

    def fresh(self) -> Overlay:
        return Overlay(self.drawn, self.made, self.over, self.by, self.nhwc, self.coarse, self.tile)

    def bytes_of(self, t: str, image: int, channel: int, row: int, column: int) -> range:
        (c, h, w), size = self.drawn.shapes[t], self.drawn.element[t]
        if self.nhwc:
            index = ((image * h + row) * w + column) * c + channel
        else:
            index = ((image * c + channel) * h + row) * w + column
        start = index * size + (self.by if t == self.over else 0)
        return range(start, start + size)

    def write(self, image: int, channel: int, row: int, column: int) -> None:
        self.gone |= set(self.bytes_of(self.made, image, channel, row, column))

    def read(self, image: int, channel: int, row: int, column: int) -> None:
        self.lost |= not self.gone.isdisjoint(self.bytes_of(self.over, image, channel, row, column))


class _Run:
    def __init__(
        self,
        machine: CellMachine,
        program: Program,
        rings: Mapping[str, int] | None,
        overlay: Overlay | None = None,
        rng: Random | None = None,
    ) -> None:
        self.m, self.program, self.rings = machine, program, rings
        self.overlay, self.rng = overlay, rng
        self.counts = Counts(dict.fromkeys(machine.tensors, 0), 0, dict.fromkeys(machine.tensors, 0))

    def group(self) -> Counts:
        m = self.m
        for first in range(0, m.images, m.tiling.images):
            together = range(first, min(first + m.tiling.images, m.images))
            done = dict.fromkeys(m.tensors, 0)
            # slot -> (image, row), for held tensors; whole rows, as every channel of them has the same.
            self.ring: dict[str, dict[tuple[int, int], int]] = {t: {} for t in m.tensors}
            band = 0
            while True:
                self.subgroup(together, m.made(band, done), done)
                self.counts.subgroups += 1
                band += 1
                if all(m.targets(band - 1)[y] == m.shapes[y][1] for y in m.escaping):
                    break
            for x in set(m.external) - m.whole:  # rows that no window reads cross at the end
                self.counts.crossed[x] += (m.shapes[x][1] - done[x]) * m.shapes[x][0] * len(together)
            for y in m.escaping:
                assert done[y] == m.shapes[y][1]
        return self.counts

    def subgroup(self, images: range, made: dict[str, range], done: dict[str, int]) -> None:
        m = self.m
        self.images, self.now, self.done = images, made, done
        self.complete: set[str] = set()  # held tensors whose rows of this sub-group are all there
        self.finished: set[str] = set()  # streamed tensors whose pass is over
        for x in m.external:
            if x in m.whole:
                self.complete.add(x)
            elif x not in m.streamed:
                self.put(x)
                self.counts.crossed[x] += len(made[x]) * m.shapes[x][0] * len(images)
                self.complete.add(x)
        self.settle()
        for one in self.program:
            self.one_pass(one)
            self.finished |= set(one)
            self.settle()
        self.settle(last=True)
        if self.complete | self.finished != set(m.tensors):
            raise Lack("something was not made")
        for t in m.tensors:
            done[t] = max(done[t], made[t].stop)

    def settle(self, *, last: bool = False) -> None:
        """Pinned tensors become complete when everything that they are made from is."""
        m, grown = self.m, True
        while grown:
            grown = False
            for p in m.parts if self.rng is None else self.rng.sample(m.parts, len(m.parts)):
                if not set(p.reads) <= self.complete | self.finished:
                    continue
                if self.rng is not None and not last and self.rng.random() < 0.3:
                    continue  # it may wait
                for y in p.writes:
                    if y in m.streamed or y in self.complete:
                        continue
                    for x in p.reads:
                        if x not in m.streamed:
                            self.read(p, x, self.now[y])
                    self.walk(p, y)
                    self.put(y)
                    self.complete.add(y)
                    grown = True
                    if y in m.escaping and y not in m.whole:
                        self.counts.crossed[y] += len(self.now[y]) * m.shapes[y][0] * len(self.images)

    # -- held tensors ------------------------------------------------------------------------------------

    def put(self, x: str) -> None:
        """The new rows of a held tensor take their places in the ring."""
        rows = self.now[x]
        self.counts.rows[x] = max(self.counts.rows[x], len(rows))
        size = None if self.rings is None or x in self.m.whole else self.rings[x]
        for image, row in itertools.product(self.images, rows):
            if size == 0:
                raise Lack(f"no room for {x}")
            self.ring[x][image, row if size is None else row % size] = row

    def read(self, part: Part, x: str, rows: range) -> None:
        """Rows of a held tensor are read for some rows of an output."""
        if x not in self.complete:
            raise Lack(f"{x} is not complete when {part.name} reads it")
        if x in self.m.whole and x in self.m.external:
            self.touch(part, x, rows)
            return
        size = None if self.rings is None or x in self.m.whole else self.rings[x]
        newest = self.now[x].stop
        for row in rows:
            a, b = self.m.rows_read(part, x, row)
            self.counts.rows[x] = max(self.counts.rows[x], newest - a)
            for image, r in itertools.product(self.images, range(a, b)):
                if self.ring[x].get((image, r if size is None else r % size)) != r:
                    raise Lack(f"row {r} of {x} is gone when {part.name} reads it")

    # -- whole tensors that share bytes ------------------------------------------------------------------

    def touch(self, part: Part, x: str, rows: range) -> None:
        """An operator reads rows of a whole input."""
        o = self.overlay
        if o is None or x != o.over or (o.made in part.writes and not self.slices_of(part)):
            return  # who makes it without slices walks
        (c, _, w), cells = self.m.shapes[x], set()
        for row in rows:
            cells |= set(range(*self.m.rows_read(part, x, row)))
        if o.coarse:
            cells |= set(self.span(part, x, rows))
        for place in itertools.product(self.images, range(c), cells, range(w)):
            o.read(*place)

    def span(self, part: Part, x: str, rows: range) -> range:
        """From the first row that is read to the last."""
        ends = [self.m.rows_read(part, x, row) for row in rows] or [(0, 0)]
        return range(min(a for a, _ in ends), max(b for _, b in ends))

    def write_over(self, y: str) -> None:
        """All new rows of the tensor that lies over another one are written."""
        (c, _, w) = self.m.shapes[y]
        for image, channel, row, column in itertools.product(self.images, range(c), self.now[y], range(w)):
            assert self.overlay is not None
            self.overlay.write(image, channel, row, column)

    def slices_of(self, part: Part) -> list[str]:
        return [x for x in part.reads if x in self.m.streamed]

    def walk(self, part: Part, y: str) -> None:
        """A held tensor is made without slices, step by step."""
        o, m = self.overlay, self.m
        if o is None or y != o.made:
            return
        if self.slices_of(part):
            self.write_over(y)
            return
        if o.tile is not None:
            self.walk_by_tiles(part, y)
            return
        c, _, w = m.shapes[y]
        for image in self.images:
            pixels = o.nhwc or part.geometry.kind == "fully_connected"
            if pixels and part.geometry.kind != "elementwise":
                steps = [[(i, row, column) for i in range(c)] for row in self.now[y] for column in range(w)]
            elif o.nhwc:
                steps = [[(i, row, column)] for row in self.now[y] for column in range(w) for i in range(c)]
            else:
                steps = [[(i, row, column)] for i in range(c) for row in self.now[y] for column in range(w)]
            coarse = set[tuple[int, int, int]]()
            if o.coarse and o.over in part.reads:
                (channels, _, columns), rows = m.shapes[o.over], self.span(part, o.over, self.now[y])
                coarse = set(itertools.product(range(channels), rows, range(columns)))
            for step in steps:
                for place in coarse or {p for cell in step for p in cells_read(m, part, o, *cell)}:
                    o.read(image, *place)
                for cell in step:
                    o.write(image, *cell)

    def walk_by_tiles(self, part: Part, y: str) -> None:
        """The same with a tile of weights at a time: all the steps of the sub-group for each of them."""
        o, m = self.overlay, self.m
        assert o is not None
        assert o.tile is not None
        c, _, w = m.shapes[y]
        deep = m.shapes[part.reads[0]][0] if part.geometry.kind in ("conv", "fully_connected") else 1
        groups = part.geometry.groups if part.geometry.kind == "conv" else 1
        for k in range(0, c, o.tile):
            for first in range(0, deep // groups, o.tile):
                places = itertools.product(self.images, range(k, min(k + o.tile, c)), self.now[y], range(w))
                steps: dict[tuple[int, ...], list[tuple[int, int, int]]] = {}
                for image, channel, row, column in places:
                    one = (image, row, column) if o.nhwc else (image, channel, row, column)
                    if o.nhwc and part.geometry.kind == "elementwise":
                        one = (image, row, column, channel)
                    steps.setdefault(one, []).append((channel, row, column))
                for one in sorted(steps):
                    for cell in steps[one]:
                        for channel, *place in cells_read(m, part, o, *cell) if o.over in part.reads else ():
                            own = channel % (deep // groups) if deep > 1 else first
                            if first <= own < first + o.tile:
                                o.read(one[0], channel, *place)
                    for cell in steps[one]:
                        o.write(one[0], *cell)

    # -- streamed tensors --------------------------------------------------------------------------------

    def one_pass(self, places: dict[str, int]) -> None:
        m, step, self.places = self.m, self.m.tiling.channels, places
        for part in m.parts:
            if self.overlay and self.overlay.made in part.writes and set(part.reads) & set(places):
                self.write_over(self.overlay.made)
        made: dict[str, set[int]] = {t: set() for t in places}
        for at in range(0, max(place + m.shapes[t][0] for t, place in places.items()), step):
            self.slice: dict[str, set[int]] = {}
            for t in (t for t in m.tensors if t in places):
                channels = {c - places[t] for c in range(at, at + step)} & set(range(m.shapes[t][0]))
                for c in channels:
                    self.make(t, c)
                made[t] |= channels
                self.slice[t] = channels
            for part in m.parts:
                self.deliver(part)
        assert all(len(c) == m.shapes[t][0] for t, c in made.items())

    def make(self, t: str, channel: int) -> None:
        m, rows = self.m, self.now[t]
        self.counts.rows[t] = max(self.counts.rows[t], len(rows))
        if self.rings is not None and len(rows) > self.rings[t]:
            raise Lack(f"no room for {t}")
        if t in m.external:
            self.counts.crossed[t] += len(rows) * len(self.images)
            return
        part = m.maker[t]
        offset = 0
        for x in part.reads:
            mine = channel
            if part.geometry.kind == "concat":
                mine, offset = channel - offset, offset + m.shapes[x][0]
                if not 0 <= mine < m.shapes[x][0]:
                    continue
            if x not in m.streamed:
                self.read(part, x, rows)
            elif needs_all_channels(m, part, x) or not self.in_step(x, mine, t, channel):
                raise Lack(f"channel {mine} of {x} is not there when {part.name} makes {t}")
            else:
                self.there(part, x, rows)
        if t in m.escaping:  # never whole
            fresh = range(max(rows.start, self.done[t]), rows.stop)
            self.counts.crossed[t] += len(fresh) * len(self.images)

    def in_step(self, x: str, mine: int, t: str, channel: int) -> bool:
        """Whether a channel of an operand is in its slice, where the channel made of it stands."""
        if mine not in self.slice.get(x, ()):
            return False
        return self.places[x] + mine == self.places[t] + channel

    def there(self, part: Part, x: str, rows: range) -> None:
        """A streamed operand has the rows that are read of it."""
        for row in rows:
            a, b = self.m.rows_read(part, x, row)
            if a < b and not (self.now[x].start <= a and b <= self.now[x].stop):
                raise Lack(f"{x} lacks rows for {part.name}")

    def deliver(self, part: Part) -> None:
        """An operator with a held output takes the slices of its operands."""
        m = self.m
        slices = [x for x in part.reads if x in m.streamed]
        here = [x for x in slices if x in self.slice]
        for y in part.writes:
            if y in m.streamed or not here:
                continue
            for x in here:
                if part.geometry.kind in ("rowwise",) or (
                    part.geometry.kind == "elementwise" and m.shapes[x] != m.shapes[y]
                ):
                    raise Lack(f"{part.name} needs all of {x}")
                self.there(part, x, self.now[y])
            if part.geometry.kind == "elementwise" and len(part.reads) > 2 and len(slices) > 1:
                # One operand could wait in the place of the output; two cannot.
                if any(self.places.get(x) != self.places[here[0]] for x in slices):
                    raise Lack(f"{part.name} needs its operands together")
                if not set(part.reads) - set(slices) <= self.complete:
                    raise Lack(f"{part.name} needs a held operand with its slices")


def cells_read(
    m: CellMachine, part: Part, o: Overlay, channel: int, row: int, column: int
) -> Iterator[tuple[int, int, int]]:
    """(channel, row, column) of the overlaid tensor that one element is made from."""
    g, (c, h, w), out = part.geometry, m.shapes[o.over], m.shapes[o.made]
    before = 0
    for x in part.reads:
        first, before = before, before + m.shapes[x][0]
        if x != o.over:
            continue
        axes: list[list[int]] = []
        for axis, (at, size) in enumerate(((row, h), (column, w))):
            if g.kind in ("conv", "depthwise", "pool"):
                taps = range(g.kernel[axis])
                spots = [
                    at * g.stride[axis] - g.padding[axis] + k * (g.dilation or (1, 1))[axis] for k in taps
                ]
            elif g.kind == "pad":
                spots = [at - g.padding[axis]]
            elif g.kind == "fully_connected":
                spots = list(range(size))
            else:
                spots = [at if size == out[axis + 1] else 0]
            axes.append([s for s in spots if 0 <= s < size])
        if g.kind == "conv":
            group = channel // (out[0] // g.groups)
            channels = range(group * (c // g.groups), (group + 1) * (c // g.groups))
        elif g.kind in ("fully_connected", "rowwise"):
            channels = range(c)
        elif g.kind == "concat":
            channels = range(channel - first, channel - first + 1)
        else:
            mine = channel // (out[0] // c) if g.kind == "depthwise" else channel if c == out[0] else 0
            channels = range(mine, mine + 1)
        yield from itertools.product([i for i in channels if 0 <= i < c], *axes)


def needs_all_channels(m: CellMachine, part: Part, x: str) -> bool:
    kind, out = part.geometry.kind, m.shapes[part.writes[0]]
    if kind in ("conv", "fully_connected", "rowwise"):
        return True
    if kind == "depthwise":
        return m.shapes[x][0] != out[0]
    return kind == "elementwise" and m.shapes[x] != out
