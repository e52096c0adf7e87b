"""The records of a group in a nest for reports: its loops, leaves and buffers, all names apart.

The figures are the checker's: `layout_of` says what every place holds, moves, and how often it is filled.
Nests that are equal but for the names of their operators and tensors compare equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from onchip.check import Layout, Place, layout_of
from onchip.check.as_nests import plan_as_nests
from onchip.network import Network
from onchip.plans import Group, Leaf, Loop, Nest, Plan
from onchip.report.graph.units import Unit, label_of, units
from onchip.report.nest.axis_names import AxisNames
from onchip.report.steps import Timeline, timeline

__all__ = ["Role", "ShownBuffer", "ShownLeaf", "ShownLoop", "ShownNest", "ShownWhole", "shown_nests"]

Role = Literal["enters", "weights", "inside", "leaves"]
"""A tensor from outside, a constant, what is made and read inside alone, what leaves the group."""


@dataclass(frozen=True, slots=True)
class ShownBuffer:
    """A buffer in the body where it lives. Names are numbers in `ShownNest.names`.

    It holds `sides` of the sides `whole`: `held` bytes of `size`, and takes `bytes` at `offset` of the
    scratch from the leaf `first` on to `last`. It is filled (or, if made inside, begun) `turns` times;
    `crosses` bytes pass to and from DRAM in all of them. `kept` if a body keeps it, `ring` if it keeps there
    what the next turn needs again; `over` are the tensors in whose place it is written, `used` the leaves
    that use it. It has `copies`, comes and goes through the channels `load` and `store` (None: the chip's
    first), and lets the fetches of `late` more steps pass its stores.
    """

    name: int
    role: Role
    sides: tuple[int, ...]
    whole: tuple[int, ...]
    held: int
    size: int
    bytes: int
    offset: int
    first: int
    last: int
    turns: int
    crosses: int
    kept: bool
    ring: bool
    over: tuple[int, ...]
    used: tuple[int, ...]
    copies: int = 1
    load: int | None = None
    store: int | None = None
    late: int = 0

    @property
    def times(self) -> float:
        """Its size crosses so many times."""
        return self.crosses / self.size if self.size else 0.0


@dataclass(frozen=True, slots=True)
class ShownLeaf:
    """An operator: number `number` of the leaves, with its buffers of its own and the bytes alive at it.

    `slices` are (words, indices, tile) of its own loops that cut, outermost first; `over` is the operand in
    whose place it writes. `runs` counts its turns in all, slices not among them. `array` are words for the
    axes on each side of the chip's array.
    """

    number: int
    operator: int
    label: str
    slices: tuple[tuple[str, int, int], ...]
    over: int | None
    runs: int
    buffers: tuple[ShownBuffer, ...]
    alive: int
    again: tuple[tuple[int, int], ...]
    array: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ShownLoop:
    """A loop: `turns` turns of at most `tile` of `size` indices, `runs` turns in all.

    `word` says what it cuts, `over` the axis of each operator: (operator, axis). `last` is the length of the
    last turn, 0 where turns differ in other ways. Where windows slide over what it cuts (`slides`), size and
    tile are those of its last operator, and the others go as far as that needs.
    """

    word: str
    over: tuple[tuple[int, int], ...]
    size: int
    tile: int
    turns: int
    last: int
    runs: int
    slides: bool
    body: tuple[ShownLoop | ShownLeaf, ...]
    buffers: tuple[ShownBuffer, ...]


@dataclass(frozen=True, slots=True)
class ShownWhole:
    """An operand that lies on chip whole, beside the scratch; `made` if the group writes it.

    `before` are the tensors in whose place it is written: they lie in its range until then.
    """

    name: int
    bytes: int
    made: bool
    before: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShownNest:
    """A nest: its body, what lives around all of it, what is whole on chip, the scratch.

    `need` is what lives at the worst leaf, `scratch` what the group reserves, `moved` all that crosses,
    `least` the same if every operand that crosses did so once; `beside` if it begins beside the group before.
    Equal nests may have other `names`.
    """

    body: tuple[ShownLoop | ShownLeaf, ...]
    buffers: tuple[ShownBuffer, ...]
    whole: tuple[ShownWhole, ...]
    need: int
    scratch: int
    moved: int
    least: int
    names: tuple[str, ...] = field(compare=False)
    beside: bool = False

    def leaves(self) -> tuple[ShownLeaf, ...]:
        """Return its leaves in the order in which they run."""
        return tuple(item for item, _ in self.walk() if isinstance(item, ShownLeaf))

    def loops(self) -> tuple[ShownLoop, ...]:
        """Return its loops, outer ones before those inside."""
        return tuple(item for item, _ in self.walk() if isinstance(item, ShownLoop))

    def walk(self) -> Iterator[tuple[ShownLoop | ShownLeaf, int]]:
        """Yield every loop and leaf with the number of loops around it, in the order in which they run."""
        yield from _walk(self.body, 0)

    def all_buffers(self) -> tuple[ShownBuffer, ...]:
        """Return every buffer, those of outer bodies first."""
        return (*self.buffers, *(b for item, _ in self.walk() for b in item.buffers))


def _walk(body: Sequence[ShownLoop | ShownLeaf], deep: int) -> Iterator[tuple[ShownLoop | ShownLeaf, int]]:
    for item in body:
        yield item, deep
        if isinstance(item, ShownLoop):
            yield from _walk(item.body, deep + 1)


def shown_nests(plan: Plan, line: Timeline) -> Mapping[str, ShownNest]:
    """Return the nests of a plan by the name of their group.

    Groups in bands, blocks and boxes are shown as the nests that they are run as.
    """
    told = plan_as_nests(plan)
    if told is not None and told.fits != "refused":
        plan, line = told.plan, timeline(told.plan)
    return {
        unit.name: _Shown(plan, unit.group, unit, dict(line.steps[unit.step].streamed)).nest()
        for unit in units(plan, line)
        if unit.group is not None and isinstance(unit.group.tiling, Nest)
    }


class _Shown:
    def __init__(self, plan: Plan, group: Group, unit: Unit, streamed: Mapping[int, int]) -> None:
        assert isinstance(group.tiling, Nest)
        self.network: Network = plan.network
        self.group, self.unit, self.tree = group, unit, group.tiling
        alignment = plan.chip.alignment_bytes
        self.layout: Layout = layout_of(
            self.network,
            group,
            streamed=streamed,
            alignment=alignment,
            accumulator=plan.chip.accumulator_bytes,
        )
        self.axes = self.layout.axes
        self.words = AxisNames(self.network, self.axes)
        self.at = {cut.name: n for n, cut in enumerate(self.axes.operators)}
        self.order = {self.at[leaf.operator]: n for n, leaf in enumerate(_leaves(self.tree.body))}
        self.names: dict[str, int] = {}
        self.leaf = 0

    def nest(self) -> ShownNest:
        for cut in self.axes.operators:
            self.name(cut.name)
        buffers = self.of(())
        body = self.body(self.tree.body, ())
        whole = tuple(
            ShownWhole(self.name(t.name), t.bytes, t.id in self.unit.outputs, self.before(t.id))
            for t in map(self.network.tensors.__getitem__, self.unit.whole)
        )
        crossing = [p for p in self.layout.places if p.crosses]
        once = {p.buffer: self.axes.buffers[p.buffer].bytes for p in crossing}
        return ShownNest(
            body, buffers, whole, self.layout.need, self.group.scratch_bytes,
            sum(p.crosses for p in crossing), sum(once.values()), tuple(self.names), self.tree.beside,
        )  # fmt: skip

    def before(self, tensor: int) -> tuple[int, ...]:
        """Return the tensors that lie in the range of one that is whole before it is written there."""
        found: list[int] = []
        for leaf in reversed([*_leaves(self.tree.body)]):
            written = self.axes.buffers[self.axes.operators[self.at[leaf.operator]].writes.buffer]
            if leaf.over is not None and (
                written.tensor == tensor or (found and self.name(written.name) == found[-1])
            ):
                found.append(self.name(leaf.over))
        return tuple(found)

    def name(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))

    def body(self, body: Sequence[Loop | Leaf], items: tuple[int, ...]) -> tuple[ShownLoop | ShownLeaf, ...]:
        return tuple(
            self.loop(item, (*items, n)) if isinstance(item, Loop) else self.one(item, (*items, n))
            for n, item in enumerate(body)
        )

    def loop(self, loop: Loop, items: tuple[int, ...]) -> ShownLoop:
        over = [(self.at[name], axis) for name, axis in loop.over]
        deep, begun = len(items), self.layout.entries[self.leaf]
        before, runs = begun[deep - 1], begun[deep]
        size, turns = self.left(items), -(-runs // max(1, before))
        windows = next((w for w in self.layout.windows if w.where == items), None)
        tile = min(loop.tile, size)
        if windows is not None:
            tile = max(windows.made[over[-1][0]].lengths)
        last = size - (turns - 1) * tile if turns * before == runs else 0
        buffers = self.of(items)
        body = self.body(loop.body, items)
        return ShownLoop(
            self.words.loop(over), tuple((self.name(name), axis) for name, axis in loop.over), size,
            tile, turns, last if 0 < last <= tile else 0, runs, windows is not None, body, buffers,
        )  # fmt: skip

    def along(self, where: tuple[int, ...], name: str) -> int:
        """Return the indices of the axis of an operator that a loop goes along."""
        return self.words.size(self.at[name], dict(self.path(where)[-1].over)[name])

    def path(self, items: tuple[int, ...]) -> list[Loop]:
        """Return the loops that lead to a body, outermost first."""
        body, path = self.tree.body, list[Loop]()
        for n in items:
            item = body[n]
            assert isinstance(item, Loop)
            path.append(item)
            body = item.body
        return path

    def left(self, items: tuple[int, ...]) -> int:
        """Return the indices that loops around leave of the axis of a loop: those of its last operator."""
        *around, loop = self.path(items)
        name, axis = loop.over[-1]
        tiles = [outer.tile for outer in around if dict(outer.over).get(name) == axis]
        return min([self.words.size(self.at[name], axis), *tiles])

    def one(self, leaf: Leaf, items: tuple[int, ...]) -> ShownLeaf:
        number, at = self.leaf, self.at[leaf.operator]
        self.leaf += 1
        slices = tuple(
            (self.words.of(at, axis) or f"axis {axis}", self.words.size(at, axis), tile)
            for axis, tile in leaf.slices
            if tile < self.words.size(at, axis)
        )
        every = (*self.layout.places, *self.layout.accumulators)
        alive = sum(p.bytes for p in every if p.first <= number <= p.last)
        label = label_of(self.network.operators[self.axes.operators[at].operator])
        over = None if leaf.over is None else self.name(leaf.over)
        runs = self.layout.entries[number][len(items) - 1]
        windows = [w for w in self.layout.windows if w.where == items[: len(w.where)]]
        made = [(sum(w.made[at].lengths), self.along(w.where, leaf.operator)) for w in windows]
        again = tuple((some, size) for some, size in made if some > size)
        return ShownLeaf(
            number, self.name(leaf.operator), label, slices, over, runs, self.of(items), alive, again,
            tuple(tuple(self.words.of(at, axis) or f"axis {axis}" for axis in side) for side in leaf.array),
        )  # fmt: skip

    def of(self, items: tuple[int, ...]) -> tuple[ShownBuffer, ...]:
        """Return the buffers that live in a body, in the order in which they are begun."""
        every = (*self.layout.places, *self.layout.accumulators)
        found = [place for place in every if place.home == items]
        return tuple(map(self.buffer, sorted(found, key=lambda p: p.first)))

    def buffer(self, place: Place) -> ShownBuffer:
        buffer = self.axes.buffers[place.buffer]
        role: Role = "inside"
        if buffer.tensor is None:
            role = "weights"
        elif buffer.maker is None:
            role = "enters"
        elif place.crosses:
            role = "leaves"
        body, rings = self.tree.keep, tuple[str, ...]()
        items: tuple[Loop | Leaf, ...] = self.tree.body
        for n in place.home:
            item = items[n]
            if isinstance(item, Leaf):
                body, rings = (), ()
                break
            body, rings, items = item.keep, item.ring, item.body
        guests = {self.axes.operators[at].uses[n].buffer for at, n in place.uses} - {place.buffer}
        held = place.width
        for side in place.sides:
            held *= side
        name = buffer.name
        if any(place is beside for beside in self.layout.accumulators):
            name = f"{'state' if place.carried else 'sums'} of {name}"
        home = next(
            (h for h, p in zip(self.layout.homes, self.layout.places, strict=True) if p is place), None
        )
        turns = self.layout.entries[self.order[place.uses[0][0]]][place.deep]
        return ShownBuffer(
            self.name(name), role, place.sides, buffer.sides, held, buffer.bytes, place.bytes,
            place.offset, place.first, place.last, turns, place.crosses,
            name in body, name in rings,
            tuple(self.name(self.axes.buffers[i].name) for i in sorted(guests)),
            tuple(sorted({self.order[at] for at, _ in place.uses})),
            *((1, None, None, 0) if home is None else (home.copies, home.load, home.store, home.late)),
        )  # fmt: skip


def _leaves(body: Sequence[Loop | Leaf]) -> Iterator[Leaf]:
    for item in body:
        if isinstance(item, Leaf):
            yield item
        else:
            yield from _leaves(item.body)
