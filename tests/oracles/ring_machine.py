"""Executes a group in rings pixel by pixel with a tag in every byte: the oracle of its checker and planner.

Written down from docs/plan-program.md, in natural coordinates that are turned round for `reverse`, and slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from onchip.network import Network, Operator
from onchip.plans import Group, Rings

__all__ = ["RingMachine", "Sizes", "map_of"]

Lines = tuple[int, int]


@dataclass
class Sizes:
    """Lines of every ring, by tensor: rows (of a ring of rows, or of a column ring's columns), columns."""

    rows: dict[str, int] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)


class Lost(Exception):
    """A byte was read that is not there any more."""


class RingMachine:
    """One group. `lost(sizes, by)` executes it; afterwards `pixels`, `fetched` say what that took."""

    def __init__(self, network: Network, group: Group, streamed: tuple[str, ...] = ()) -> None:
        assert isinstance(group.tiling, Rings)
        self.network, self.rings, self.streamed = network, group.tiling, streamed
        ops = {op.name: op for op in network.operators}
        self.stages = [[ops[name] for name in stage.operators] for stage in group.tiling.stages]
        self.ops = [op for stage in self.stages for op in stage]
        self.shape: dict[str, tuple[int, int, int]] = {}
        for op in self.ops:
            g = op.geometry
            assert g is not None
            self.shape[self.out(op)] = map_of(g.output)
            if self.ins(op)[0] not in self.shape:
                self.shape[self.ins(op)[0]] = map_of(g.input)
            for t in self.ins(op)[1:]:
                if t not in self.shape:
                    rows, columns, _ = map_of(g.output)
                    size = network.tensors[network.tensor_id[t]].bytes
                    plane = (rows, columns) if size % (rows * columns) == 0 else (1, 1)
                    self.shape[t] = (*plane, size // prod(plane))
        self.last = self.out(self.ops[-1])

    def out(self, op: Operator) -> str:
        return self.network.tensors[op.outputs[0]].name

    def ins(self, op: Operator) -> list[str]:
        return [self.network.tensors[t].name for t in op.inputs]

    # -- what an operator reads ----------------------------------------------------------------------------

    def need(self, op: Operator, t: str, axis: int, lines: Lines) -> Lines:
        """The lines of `t` from the first to the last that `lines` of the output need, either way round.

        Those that the map has: a window may begin or end outside.
        """
        g = op.geometry
        assert g is not None
        size, outputs = self.shape[t][axis], self.shape[self.out(op)][axis]
        found: list[int] = []
        for line in range(*lines):
            place = outputs - 1 - line if self.rings.traversal == "reverse" else line
            if g.kind in ("conv", "depthwise", "pool"):
                start = place * (g.stride or (1, 1))[axis] - (g.padding or (0, 0, 0, 0))[axis]
                step = (g.dilation or (1, 1))[axis]
                taps = [start + k * step for k in range(g.kernel[axis])]
                if step > 1:
                    taps = list(range(taps[0], taps[-1] + 1))
            elif g.kind == "pad":
                taps = [place - g.padding[axis]]
            elif g.kind == "fully_connected" and (len(g.input) == 2 and self.shape[t][:2] != (1, 1)):
                taps = list(range(size))
            else:
                taps = [0 if size == 1 else place]
            found += taps
        if not found:
            return (0, 0)
        if self.rings.traversal == "reverse":
            found = [size - 1 - k for k in found]
        low, high = max(0, min(found)), min(size, max(found) + 1)
        return (low, high) if low < high else (0, 0)

    def pyramid(self, ops: list[Operator], axis: int, lines: Lines) -> dict[str, Lines]:
        need = {self.out(ops[-1]): lines}
        for op in reversed(ops):
            mine = need.get(self.out(op), (0, 0))
            if mine[0] >= mine[1]:
                continue
            for t in self.ins(op):
                low, high = self.need(op, t, axis, mine)
                if low < high:
                    old = need.get(t, (low, high))
                    need[t] = min(low, old[0]), max(high, old[1])
        return need

    # -- running -------------------------------------------------------------------------------------------

    def lost(self, sizes: Sizes, resident: str | None = None, by: int = 0) -> bool:
        """Whether some byte is gone before it is read, with rings of these sizes and the output below."""
        self.sizes, self.by = sizes, by
        self.memory: dict[int, tuple[str, int]] = {}
        self.over = resident
        self.pixels = {op.name: 0 for op in self.ops}
        self.fetched = dict.fromkeys(self.streamed, 0)
        self.most_rows: dict[str, int] = {}
        if resident is not None:
            for i in range(prod(self.shape[resident])):
                self.memory[by + i] = (resident, i)
        width = self.shape[self.last][1]
        step = -(-width // self.rings.strips)
        try:
            for left in range(0, width, step):
                self.strip((left, min(left + step, width)))
        except Lost:
            return True
        return False

    def strip(self, columns: Lines) -> None:
        self.across = self.pyramid(self.ops, 1, columns)
        self.ring: dict[tuple[str, int, int], tuple[int, int]] = {}
        self.made = {self.out(stage[-1]): 0 for stage in self.stages}
        self.added = {self.out(stage[-1]): 0 for stage in self.stages}
        self.come = dict.fromkeys(self.streamed, 0)
        self.make(len(self.stages) - 1, self.shape[self.last][0])

    def handed(self, stage: list[Operator]) -> Iterator[str]:
        inside = {self.out(op) for op in stage}
        yield from dict.fromkeys(t for op in stage for t in self.ins(op) if t not in inside)

    def accumulates(self, stage: list[Operator]) -> bool:
        g = stage[-1].geometry
        assert g is not None
        if g.kind != "pool" or map_of(g.output)[:2] != (1, 1):
            return False
        whole = tuple(g.kernel) == map_of(g.input)[:2] and set(g.dilation or (1,)) == {1}
        return whole and not any((g.padding or (0, 0))[:2])

    def make(self, s: int, upto: int) -> None:
        stage = self.stages[s]
        y, height = self.out(stage[-1]), self.shape[self.out(stage[-1])][0]
        while self.made[y] < upto:
            if self.accumulates(stage) and len(stage) > 1:
                row, size = self.added[y], self.shape[self.out(stage[-2])][0]
                rows = (row, min(row + self.rings.stages[s].rows, size))
                need = self.pyramid(stage[:-1], 0, rows)
                band = (0, 1 if rows[1] == size else 0)
                self.added[y] = rows[1]
            elif self.accumulates(stage):
                (x,) = self.ins(stage[0])
                row = self.added[y]
                need = {x: (row, row + 1)}
                band = (0, 1 if row + 1 == self.shape[x][0] else 0)
                self.added[y] += 1
            else:
                band = (self.made[y], min(self.made[y] + self.rings.stages[s].rows, height))
                need = self.pyramid(stage, 0, band)
            for t in self.handed(stage):
                low, high = need.get(t, (0, 0))
                if low >= high:
                    continue
                source = next((r for r, other in enumerate(self.stages) if self.out(other[-1]) == t), None)
                if source is not None:
                    self.make(source, high)
                elif t in self.streamed and self.rings.fetched == "rows":
                    self.fetch_rows(t, high)
            self.sweep(s, band, need)
            self.made[y] = band[1]

    def fetch_rows(self, t: str, upto: int) -> None:
        for row in range(self.come[t], upto):
            for column in range(*self.across.get(t, (0, 0))):
                self.put(t, row, column)
                self.fetched[t] += self.shape[t][2]
        self.come[t] = max(self.come[t], upto)

    def sweep(self, s: int, band: Lines, need: Mapping[str, Lines]) -> None:
        stage = self.stages[s]
        y = self.out(stage[-1])
        across = self.pyramid(stage, 1, self.across.get(y, (0, 0)))
        for t in self.handed(stage):
            if t != self.over and (t in self.made or self.rings.fetched == "rows"):
                self.read_all(t, need.get(t, (0, 0)), across.get(t, (0, 0)))  # the band needs all of them
        own = [t for t in self.handed(stage) if t in self.streamed and self.rings.fetched == "columns"]
        if self.accumulates(stage) and len(stage) > 1:
            Columns(self, stage[:-1], need[self.out(stage[-2])], need, own, kept=False).run()
            if band[1]:
                self.step(stage[-1], [(0, 0)], last=y == self.last)
            return
        if len(stage) > 1 or own:
            Columns(self, stage, band, need, own).run()
            return
        op, last = stage[0], y == self.last
        if self.accumulates(stage):
            (x,) = self.ins(op)
            for column in range(self.shape[x][1]):
                self.read(x, need[x][0], column)
            if band[1]:
                self.step(op, [(0, 0)], last=last)
            return
        g = op.geometry
        assert g is not None
        first, end = self.across.get(y, (0, 0))
        if not last:
            for t in self.ins(op):
                if first < end:
                    self.read_all(t, self.need(op, t, 0, band), self.need(op, t, 1, (first, end)))
        for row in range(*band):
            for start in range(first, end, g.pixels):
                stop = min(start + g.pixels, end)
                reading = [(t, self.need(op, t, 0, (row, row + 1)), self.need(op, t, 1, (start, stop)))
                           for t in self.ins(op)]  # fmt: skip
                self.step(op, [(row, c) for c in range(start, stop)], reading if last else [], last=last)

    def count(self, op: Operator, row: int, column: int) -> None:
        """The operator makes a pixel."""
        self.pixels[op.name] += 1

    def step(
        self,
        op: Operator,
        pixels: list[tuple[int, int]],
        reading: list[tuple[str, Lines, Lines]] | None = None,
        *,
        last: bool,
    ) -> None:
        """A step of an operator: for each chunk read everything, then write the chunk of each pixel."""
        y = self.out(op)
        for row, column in pixels:
            self.count(op, row, column)
        if not last:
            for t, rows, columns in reading or ():
                self.read_all(t, rows, columns)
            for row, column in pixels:
                self.put(y, row, column)
            return
        g = op.geometry
        assert g is not None
        height, width, channels = self.shape[y]
        size = g.channels or channels
        if g.kind in ("elementwise", "rowwise") and (g.pixels, g.channels) == (1, 0):
            size = 1  # from one element to the next: what is behind it in the pixel is still to be read
        chunks = [range(c, min(c + size, channels)) for c in range(0, channels, size)]
        for chunk in reversed(chunks) if self.rings.traversal == "reverse" else chunks:
            for t, rows, columns in reading or ():
                if size == 1 < channels and g.channels != 1 and self.shape[t] == self.shape[y]:
                    self.read_elements(t, *pixels[0], chunk[0])
                else:
                    self.read_all(t, rows, columns)
            for row, column in pixels:
                r, c = (height - 1 - row, width - 1 - column) if self.reverse else (row, column)
                for channel in chunk:
                    at = (r * width + c) * channels + channel
                    self.memory[at] = (y, at)

    # -- memory --------------------------------------------------------------------------------------------

    @property
    def reverse(self) -> bool:
        return self.rings.traversal == "reverse"

    def put(self, t: str, row: int, column: int) -> None:
        if t == self.last:
            return
        self.ring[t, row % self.sizes.rows[t], column] = (row, column)
        assert column - self.across[t][0] < self.sizes.columns[t]

    def read_all(self, t: str, rows: Lines, columns: Lines) -> None:
        for row in range(*rows):
            for column in range(*columns):
                self.read(t, row, column)

    def read_elements(self, t: str, row: int, column: int, begin: int) -> None:
        """The elements of a pixel that come from this one on, in the order of the traversal."""
        height, width, channels = self.shape[t]
        if t != self.over:
            self.read(t, row, column)
            return
        r, c = (height - 1 - row, width - 1 - column) if self.reverse else (row, column)
        for channel in range(begin + 1) if self.reverse else range(begin, channels):
            at = (r * width + c) * channels + channel
            if self.memory[self.by + at] != (t, at):
                raise Lost(t)

    def read(self, t: str, row: int, column: int) -> None:
        if t in self.made or t in self.streamed:
            if self.ring.get((t, row % self.sizes.rows[t], column)) != (row, column):
                raise Lost(t)
        elif t == self.over:
            height, width, channels = self.shape[t]
            r, c = (height - 1 - row, width - 1 - column) if self.reverse else (row, column)
            for channel in range(channels):
                at = (r * width + c) * channels + channel
                if self.memory[self.by + at] != (t, at):
                    raise Lost(t)


class Columns:
    """A band of one stage, column by column; what is inside lies in rings of columns."""

    def __init__(
        self,
        m: RingMachine,
        stage: list[Operator],
        band: Lines,
        need: Mapping[str, Lines],
        own: list[str],
        *,
        kept: bool = True,
    ) -> None:
        self.m, self.stage, self.band, self.need, self.own, self.kept = m, stage, band, need, own, kept
        self.across = m.pyramid(stage, 1, m.across.get(m.out(stage[-1]), (0, 0)))
        inner = [*own, *(m.out(op) for op in stage)]
        self.made = {t: self.across.get(t, (0, 0))[0] for t in inner}
        self.ring: dict[tuple[str, int], int] = {}
        for t in inner:
            low, high = need.get(t, (0, 0))
            m.most_rows[t] = max(m.most_rows.get(t, 0), high - low)

    def run(self) -> None:
        y = self.m.out(self.stage[-1])
        if self.across[y][0] < self.across[y][1]:
            self.make(y, self.across[y][1])

    def make(self, t: str, upto: int) -> None:
        m = self.m
        while self.made[t] < upto:
            column = self.made[t]
            rows = self.need.get(t, (0, 0))
            if t in self.own:
                m.fetched[t] += (rows[1] - rows[0]) * m.shape[t][2]
                self.ring[t, column % m.sizes.columns[t]] = column
                self.made[t] += 1
                continue
            op = next(op for op in self.stage if m.out(op) == t)
            across = {x: m.need(op, x, 1, (column, column + 1)) for x in m.ins(op)}
            for x, (low, high) in across.items():
                if x in self.made and low < high:
                    self.make(x, high)
            if op is self.stage[-1]:
                for row in range(*self.band):
                    reading = []
                    for x, columns in across.items():
                        if x in self.made:
                            self.read(x, columns)
                        else:
                            reading.append((x, m.need(op, x, 0, (row, row + 1)), columns))
                    if self.kept:
                        m.step(op, [(row, column)], reading, last=t == m.last)
                        continue
                    m.count(op, row, column)
                    for x, lines, columns in reading:
                        m.read_all(x, lines, columns)
            else:
                for x, columns in across.items():
                    if x in self.made:
                        self.read(x, columns)
                    elif rows[0] < rows[1]:
                        m.read_all(x, m.need(op, x, 0, rows), columns)
                for row in range(*rows):
                    m.count(op, row, column)
                self.ring[t, column % m.sizes.columns[t]] = column
            self.made[t] += 1

    def read(self, t: str, columns: Lines) -> None:
        for column in range(*columns):
            if self.ring.get((t, column % self.m.sizes.columns[t])) != column:
                raise Lost(t)


def map_of(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Rows, columns and channels."""
    return (shape[1], shape[2], shape[3]) if len(shape) == 4 else (1, 1, shape[-1])
