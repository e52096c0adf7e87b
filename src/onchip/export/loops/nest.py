"""A group in a nest of loops as steps: what each turn allocates, copies and computes.

The tree of the executor (`onchip.run.tiled.nests.tree`) says where every buffer lives, what every turn has of
it and which box each operator makes; here that becomes steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from onchip.base.errors import UsageError
from onchip.export.loops.book import Book
from onchip.export.loops.steps import (
    Allocate,
    Box,
    Compute,
    Copy,
    Fixed,
    For,
    Give,
    Named,
    Part,
    Place,
    Range,
    Seen,
    Slid,
    Step,
    Turns,
)
from onchip.network import Operator, mask
from onchip.network.axes import ALL, Buffer, Use, axes_of
from onchip.plans import Group, Nest
from onchip.run.tiled.executed import IllegalTiling
from onchip.run.tiled.nests import levels
from onchip.run.tiled.nests.forms import needed
from onchip.run.tiled.nests.kernel import Source
from onchip.run.tiled.nests.places import places_of
from onchip.run.tiled.nests.sources import sources_of
from onchip.run.tiled.nests.tree import Tree

__all__ = ["NestSteps"]


class NestSteps:
    """The steps of one group; `streamed` are the tensors that cross, `scratch` is where its places begin.

    Raises `UsageError` for what has no steps.
    """

    def __init__(
        self,
        book: Book,
        group: Group,
        nest: Nest,
        operators: Sequence[Operator],
        streamed: Sequence[int],
        scratch: int,
    ) -> None:
        self.book, self.group, self.operators, self.streamed = book, group, operators, streamed
        found = axes_of(book.network, [op.id for op in operators])
        if isinstance(found, str):
            raise UsageError(f"runs in a nest, and {found}", item=f"group {group.name}")
        self.axes = found
        self.leaving = {b for b, x in enumerate(found.buffers) if x.maker is not None and self._leaves(x)}
        self.whole = {
            b
            for b, x in enumerate(found.buffers)
            if x.tensor is not None and x.tensor not in streamed and (x.maker is None or b in self.leaving)
        }
        try:
            self.tree = Tree(nest, found, self.leaving, self.whole, book.plan.chip.accumulator_bytes)
        except IllegalTiling as problem:
            raise UsageError(problem.reason, item=f"group {group.name}") from None
        self.spans: list[list[Named | Fixed]] = [[Fixed(0, n) for n in cut.axes] for cut in found.operators]
        self.name = {turns: f"r{book.next('range')}" for turns in self.tree.loops}
        self.home = {key: home for home in self.tree.homes for key in home.uses}
        self.sources = [
            sources_of(book.engine, op, cut, found.buffers)
            for op, cut in zip(operators, found.operators, strict=True)
        ]
        self.constant: dict[int, Source] = {
            source.use.buffer: source
            for some in self.sources
            for source in some
            if source.buffer.tensor is None
        }
        where, _ = places_of(self.tree, found, book.plan.chip)
        self.places: dict[levels.Home | levels.Beside | int, Place] = {}
        for home, (start, end) in where.items():
            self.places[home] = self._place(home, scratch + start, end - start)
        for b in sorted(self.whole):
            self.places[b] = self._whole(b)
        for place in self.places.values():
            book.places[place.id] = place
        self.beside = {
            sums.operator: sums
            for some in {
                id(level): level for o in self.tree.bottom for level in self.tree.bottom[o].path
            }.values()
            for all_ in some.beside.values()
            for sums in all_
        }
        for sums in self.beside.values():
            if sums.values:
                raise self._refuse(sums.operator, "rescales its sums on the way: there is no C of that yet")

    def steps(self) -> tuple[Step, ...]:
        """Return all steps of the group."""
        whole = [
            Allocate(self.places[b].id, self._whole_region(self.axes.buffers[b])) for b in sorted(self.whole)
        ]
        return (*whole, *self.level(self.tree.root))

    def _refuse(self, o: int, why: str) -> UsageError:
        return UsageError(why, item=f"operator {self.operators[o].name}")

    def _leaves(self, buffer: Buffer) -> bool:
        network, t = self.book.network, buffer.tensor
        assert t is not None
        readers, members = network.readers[t], mask(op.id for op in self.operators)
        return not readers or bool(readers & ~members or network.output_roots >> t & 1)

    # -- places ----------------------------------------------------------------------------------------------

    def kind(self, b: int) -> np.dtype[Any]:
        """Return the type of a buffer's elements; bytes that are counted only are bytes."""
        t = self.axes.buffers[b].tensor
        if t is not None:
            return self.book.kind(t)
        source = self.constant[b]
        if not source.filled:
            return np.dtype(f"V{self.axes.buffers[b].element}")
        return np.dtype(self.book.engine.parts.constants[source.name].dtype)

    def _place(self, home: levels.Home | levels.Beside, address: int, size: int) -> Place:
        chip = self.book.plan.chip
        buffers = (home.buffer,) if isinstance(home, levels.Beside) else home.buffers
        buffer = self.axes.buffers[buffers[-1]]
        partial = chip.accumulated(buffer.element)
        identity = f"p{self.book.next('place')}"
        kinds = tuple(self.kind(b) for b in buffers)
        if isinstance(home, levels.Beside):
            return Place(
                identity, (f"sums of {buffer.name}",), address, size, partial, partial, buffer.sides,
                home.most(buffer.sides), (np.dtype(np.float32),), partial=partial,
            )  # fmt: skip
        for b, kind in zip(buffers, kinds, strict=True):
            if self.axes.buffers[b].tensor is not None:
                self.book.fits(kind, self.axes.buffers[b].element, self.axes.buffers[b].name)
        array, offset, sums = None, 0, None
        if buffer.maker is None or buffers[-1] in self.leaving:
            array, offset = self._array(buffers[-1]), buffer.offset
            if buffer.maker is not None and home.sums:
                sums = self.book.sums_of(buffer, partial)
        names = tuple(self.axes.buffers[b].name for b in buffers)
        return Place(
            identity, names, address, size, buffer.element, partial if home.wide else buffer.element,
            buffer.sides, home.most(buffer.sides), kinds, home.turning, array, offset,
            buffer.first, buffer.whole, sums, partial,
        )  # fmt: skip

    def _array(self, b: int) -> str:
        buffer = self.axes.buffers[b]
        if buffer.tensor is not None:
            return self.book.tensor(buffer.tensor)
        source = self.constant[b]
        if source.filled:
            return self.book.constant(source.name, buffer.element)
        return self.book.counted(buffer)

    def _whole(self, b: int) -> Place:
        buffer = self.axes.buffers[b]
        assert buffer.tensor is not None
        kind = self.kind(b)
        self.book.fits(kind, buffer.element, buffer.name)
        address = self.book.address[buffer.tensor] + buffer.offset * buffer.element
        size = buffer.element
        for n in buffer.whole:
            size *= n
        return Place(
            f"p{self.book.next('place')}", (buffer.name,), address, size, buffer.element, buffer.element,
            buffer.sides, buffer.whole, (kind,), partial=self.book.plan.chip.accumulated(buffer.element),
        )  # fmt: skip

    def _whole_region(self, buffer: Buffer) -> Box:
        return tuple(
            Fixed(-first, size - first) for first, size in zip(buffer.first, buffer.whole, strict=True)
        )

    # -- ranges ----------------------------------------------------------------------------------------------

    def _side(self, home: levels.Home, turns: levels.Turns | None, size: int, what: str) -> Range:
        if turns is None:
            return Fixed(0, size)
        return Named(f"{self.name[turns]}{what}{home.number}" if turns.windows else self.name[turns])

    def _region(self, home: levels.Home, what: str = "h") -> Box:
        """Return what is of a home in this turn, or with "m" what is new of it."""
        sizes = self.axes.buffers[home.buffers[-1]].sides
        return tuple(
            self._side(home, turns, size, what) for turns, size in zip(home.sides, sizes, strict=True)
        )

    def box(self, o: int, use: Use, sides: Sequence[int]) -> Box:
        """Return the box of a buffer that a use needs."""
        found: list[Range] = [
            Fixed(0, size) if axis == ALL else self.spans[o][axis]
            for axis, size in zip(use.axes, sides, strict=True)
        ]
        for side, window in enumerate(use.slides):
            if window is None or window.axis not in self.tree.computes[o].cut:
                continue
            span = self.spans[o][window.axis]
            if isinstance(span, Fixed):
                found[side] = Fixed(*needed(window, (span.low, span.high), sides[side]))
            else:
                found[side] = Slid(
                    span.name, window.stride, window.before, window.per, window.span, sides[side]
                )
        return tuple(found)

    # -- the walk --------------------------------------------------------------------------------------------

    def level(self, level: levels.Level) -> Iterator[Step]:
        """Yield the steps of a body."""
        for n, (item, begin, end) in enumerate(zip(level.items, level.begin, level.end, strict=True)):
            for home in begin:
                yield from self.begin(home)
            for sums in level.beside.get(n, ()):
                cut = self.axes.operators[sums.operator]
                sides = self.axes.buffers[sums.buffer].sides
                yield Allocate(
                    self.places[sums].id,
                    tuple(
                        Fixed(0, size) if turns is None else self.spans[sums.operator][axis]
                        for axis, turns, size in zip(cut.writes.axes, sums.sides, sides, strict=True)
                    ),
                )
            if isinstance(item, levels.Turns):
                yield self.loop(item)
                yield from (Give(self.places[home].id) for home in item.rings)
            elif isinstance(item, levels.Level):
                yield from self.level(item)
            else:
                yield self.compute(item.operator)
            for sums in level.beside.get(n, ()):
                yield Give(self.places[sums].id)
            for home in end:
                yield from self.send(home)
                yield Give(self.places[home].id)

    def loop(self, turns: levels.Turns) -> For:
        """Return a loop."""
        before = [(o, axis, self.spans[o][axis]) for o, axis in turns.over.items()]
        name = self.name[turns]
        steps: list[Step] = []
        if turns.windows is not None:
            w = turns.windows
            tables = {f"{name}o{o}": tuple(w.made[o]) for o in turns.over}
            for number in w.side:
                tables[f"{name}h{number}"] = tuple(w.there[number])
                tables[f"{name}m{number}"] = tuple(w.moved[number])
            for o, axis, _ in before:
                self.spans[o][axis] = Named(f"{name}o{o}")
            made = Turns(name, tables=tables)
            for home in turns.rings:
                steps.append(Allocate(self.places[home].id, self._region(home)))
                if any(self.axes.buffers[b].maker is None for b in home.buffers):
                    steps.append(self._load(home, "m"))
            steps += self.level(turns.level)
            for home in turns.rings:
                steps += self.send(home)
        else:
            made = Turns(name, turns.tile, before[0][2])
            for o, axis, _ in before:
                self.spans[o][axis] = Named(name)
            steps += self.level(turns.level)
        for o, axis, span in before:
            self.spans[o][axis] = span
        return For(made, tuple(steps))

    def _parts(self, keys: Sequence[tuple[int, int]]) -> tuple[Part, ...]:
        """Return the ranges of some axes (operator, axis), as far as loops cut them, with their sizes."""
        return tuple(
            (self.spans[o][axis], self.axes.operators[o].axes[axis])
            for o, axis in keys
            if not isinstance(self.spans[o][axis], Fixed)
        )

    def begin(self, home: levels.Home) -> Iterator[Step]:
        """Yield the steps with which a home begins."""
        place = self.places[home].id
        yield Allocate(place, self._region(home))
        for b in home.buffers:
            if self.axes.buffers[b].maker is None:
                yield self._load(home)
            elif b in self.leaving and (parts := self._parts(home.sums)):
                yield Copy("load", place, self._region(home), parts, back=True)

    def _load(self, home: levels.Home, what: str = "h") -> Copy:
        """Return the fetch of all of a home in this turn, or with "m" of what is new of it."""
        (o, i), *_ = home.uses
        cut = self.axes.operators[o]
        late = cut.uses[i].late and [(o, axis) for axis in cut.sums]
        region = self._region(home, what)
        return Copy("load", self.places[home].id, region, self._parts(late or ()), late=bool(late))

    def send(self, home: levels.Home) -> Iterator[Step]:
        """Yield the store of what leaves."""
        for b in home.buffers:
            if b in self.leaving:
                yield Copy("store", self.places[home].id, self._region(home, "m"), self._parts(home.sums))

    def seen(self, o: int, i: int) -> Seen:
        """Return an operand or weight as its operator sees it."""
        source, use = self.sources[o][i], self.axes.operators[o].uses[i]
        buffer = self.axes.buffers[use.buffer]
        home = self.home.get((o, i))
        place = self.places[self._top(use.buffer) if home is None else home].id
        whole, shift = list(buffer.whole), [-first for first in buffer.first]
        for n, part in enumerate(use.seen):
            if part is not None:
                shift[n], whole[n] = part
        return Seen(place, source, tuple(whole), tuple(shift))

    def compute(self, o: int) -> Compute:
        """Return the step in which an operator computes."""
        cut, op = self.axes.operators[o], self.operators[o]
        reads = tuple(
            (self.seen(o, i), self.box(o, use, self.axes.buffers[use.buffer].sides))
            for i, use in enumerate(cut.uses[:-1])
        )
        b = cut.writes.buffer
        home = self.home.get((o, len(cut.uses) - 1))
        place = self.places[self._top(b) if home is None else home]
        split = self.tree.computes[o].cut
        parts = self._parts([(o, axis) for axis in cut.sums if axis in split])
        accumulators = ""
        if parts:
            beside = self.beside.get(o)
            accumulators = place.id if beside is None else self.places[beside].id
            width = place.partial if home is None or home.wide or beside is not None else place.element
            kind = self.kind(b)
            if width < 4 or (
                accumulators == place.id and place.pitch == kind.itemsize and kind != np.float32
            ):
                accumulators = ""  # the chip states no width: they are the multipliers' own
                if home is not None and self._parts(home.sums):
                    raise self._refuse(
                        o,
                        f"spills partial sums of {width} bytes, and they take 4: plan for a chip with"
                        " accumulator_bytes = 4",
                    )
        shares = self.tree.computes[o].over is not None or self._under(self._top(b))
        box = self.box(o, cut.writes, self.axes.buffers[b].sides)
        return Compute(
            op, cut, tuple(self.spans[o]), reads, (place.id, box), self.axes.buffers[b].sides, parts,
            accumulators, split, shares,
        )  # fmt: skip

    def _top(self, b: int) -> int:
        """Return the buffer in whose place another one lies, or itself."""
        return next((top for top, sharing in self.tree.sharing.items() if b in sharing), b)

    def _under(self, b: int) -> bool:
        """Return whether bytes of a whole output may be those of a whole operand."""
        t = self.axes.buffers[b].tensor
        return b in self.whole and t in self.book.over
