"""Nests run element by element on a machine that knows no closed form, over the axes of a group.

What is in the scratch is a dictionary. Reading what is not there, or not finished, stops the machine; every
byte that crosses is counted as it crosses, and every buffer as it is taken. A place is as large as it has to
be at any time. Sums that are not finished may be wider than elements: what is unfinished at a time is counted
as it is summed, and lies beside its place unless that is so wide itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import prod
from types import MappingProxyType

from onchip.network.axes import ALL, Cut, GroupAxes, Use
from onchip.plans import Leaf, Loop, Nest
from oracles.nest_bands import Band, Place, bands, seen

__all__ = ["Failed", "Ran", "run_nest", "unfused"]

PRIME = 2**31 - 1
Index = tuple[int, ...]
Where = tuple[int, ...]
"""A body, or a leaf, by the item of every body that leads to it."""


class Failed(Exception):
    """The machine cannot go on."""


@dataclass
class Ran:
    """Bytes: `crossed` by tensor, of `weights`, the `peak`. `values` are what leaves, by buffer.

    `terms` are the products made, `once` whether some loop took a single turn, `bands` the turns of the loops
    along which windows slide, by body, with the uses of the buffers that they number.
    """

    crossed: dict[int, int] = field(default_factory=dict)
    weights: int = 0
    peak: int = 0
    values: dict[int, dict[Index, int]] = field(default_factory=dict)
    terms: int = 0
    once: bool = False
    bands: dict[Where, tuple[list[Band], list[tuple[int, int]]]] = field(default_factory=dict)


@dataclass
class Entry:
    value: int
    terms: int
    buffer: int


@dataclass(eq=False)
class Box:
    """A place for one home: the uses that share it, and the elements there."""

    buffer: int
    home: Where
    uses: list[tuple[int, int]]
    shared: list[tuple[int, int]]
    deep: int = 0
    ranges: list[range] = field(default_factory=list)
    elements: dict[Index, Entry] = field(default_factory=dict)
    taken: bool = False
    ring: bool = False
    redone: bool = False
    crossed_unfinished: bool = False
    count: int = 0  # the most elements


@dataclass(eq=False)
class Unfinished:
    """The elements of an output whose sums are not finished, and all that were not at once: at most `most`.

    `rows` are those of them that share nothing that sums carry; at most `states`.
    """

    now: set[Index] = field(default_factory=set)
    since: set[Index] = field(default_factory=set)
    rows: set[Index] = field(default_factory=set)
    most: int = 0
    states: int = 0


@dataclass(frozen=True)
class Now:
    """Where the machine is: of every axis of every operator its range, and the loops that left it.

    `bands` are the ranges of buffers along sides under windows.
    """

    ranges: Mapping[tuple[int, int], tuple[range, tuple[int, ...]]]
    bands: Mapping[tuple[int, int], range] = field(default_factory=dict)

    def of(self, axes: GroupAxes, at: int, axis: int) -> tuple[range, tuple[int, ...]]:
        return self.ranges.get((at, axis), (range(axes.operators[at].axes[axis]), ()))

    def turns(self, axes: GroupAxes, over: Sequence[tuple[int, int]], tile: int, loop: int) -> Iterator[Now]:
        first, _ = self.of(axes, *over[0])
        for low in range(0, len(first), tile):
            ranges = dict(self.ranges)
            for key in over:
                known, loops = self.of(axes, *key)
                ranges[key] = known[low : low + tile], (*loops, loop)
            yield Now(ranges, self.bands)


def start(buffer: int, index: Index) -> int:
    """The value of an element from outside."""
    return (hash((buffer, index)) * 2654435761 + 12345) % PRIME


def term(cut: Cut, axes: GroupAxes, index: Index, read: object) -> int:
    """What one index along all axes adds to the output: no linear function of the operands."""
    return _mixed(cut, axes, index, read, late=False)


def completed(cut: Cut, axes: GroupAxes, place: Index, sum_: int, read: object) -> int:
    """The element at a place whose sum is complete: what constants make of it that are late."""
    index = [0] * len(cut.axes)
    for axis, i in zip(cut.writes.axes, place, strict=True):
        if axis != ALL:
            index[axis] = i
    late = _mixed(cut, axes, tuple(index), read, late=True) if any(c.late for c in cut.constants) else 0
    return (sum_ + late) % PRIME


def _mixed(cut: Cut, axes: GroupAxes, index: Index, read: object, *, late: bool) -> int:
    total = 7
    for n, use in enumerate((*cut.reads, *cut.constants)):
        if use.late != late:
            continue
        sides = axes.buffers[use.buffer].sides
        every = [needed(use, side, size, index) for side, size in enumerate(sides)]
        for place in product(*every):
            own = tuple(p if a == ALL else 0 for p, a in zip(place, use.axes, strict=True))
            total += (n + 3) * (1 + hash(own) % 1009) * read(use.buffer, place, n)  # type: ignore[operator]
    return total * total % PRIME


def needed(use: Use, side: int, size: int, index: Index) -> Sequence[int]:
    """The indices along a side that one index along all axes reads."""
    if use.axes[side] != ALL:
        return (index[use.axes[side]],)
    window = use.slides[side] if use.slides else None
    if window is None:
        return range(size)
    return [i for i in seen(use, side, index[window.axis]) if 0 <= i < size]


def unfused(axes: GroupAxes) -> dict[int, dict[Index, int]]:
    """The elements of all that the operators make, one operator after the other."""
    made: dict[int, dict[Index, int]] = {}

    def read(buffer: int, place: Index, _: int) -> int:
        return made[buffer][place] if buffer in made else start(buffer, place)

    for cut in axes.operators:
        found: dict[Index, int] = {}
        for index in product(*map(range, cut.axes)):
            place = tuple(index[a] for a in cut.writes.axes) if cut.writes.axes != (ALL,) else (0,)
            found[place] = (found.get(place, 0) + term(cut, axes, index, read)) % PRIME
        made[cut.writes.buffer] = {
            place: completed(cut, axes, place, value, read) for place, value in found.items()
        }
    return made


def run_nest(
    axes: GroupAxes,
    nest: Nest,
    leaving: Collection[int],
    whole: Collection[int],
    alignment: int = 1,
    offsets: Mapping[tuple[int, int], int] | None = None,
    accumulator: int | None = None,
    wide: Collection[int] = (),
    over: Mapping[int, int] = MappingProxyType({}),
) -> Ran:
    """Run a nest. `leaving` and `whole` are tensors; `offsets` say where the buffer of a use lies.

    A sum that is not finished takes `accumulator` bytes, or those of an element; what is beside the buffer
    of a maker's output lies at the offset of (maker, -1), and what its sums carry at (maker, -2).
    The buffers that are `wide` have no accumulators beside them: all
    that they hold is unfinished at once. A whole input that is a key of `over` lies under the whole output
    there, at one address. Raises `Failed` where it cannot go on.
    """
    return Machine(axes, nest, leaving, whole, alignment, offsets, accumulator, wide, over).run()


class Machine:
    def __init__(
        self,
        axes: GroupAxes,
        nest: Nest,
        leaving: Collection[int],
        whole: Collection[int],
        alignment: int,
        offsets: Mapping[tuple[int, int], int] | None,
        accumulator: int | None,
        wide: Collection[int],
        over: Mapping[int, int],
    ) -> None:
        self.axes, self.nest, self.alignment, self.offsets = axes, nest, alignment, offsets
        self.whole = {n for n, b in enumerate(axes.buffers) if b.tensor in whole}
        self.out = {n for n, b in enumerate(axes.buffers) if b.maker is not None and b.tensor in leaving}
        self.at = {cut.name: at for at, cut in enumerate(axes.operators)}
        self.leaf: dict[int, tuple[Where, Leaf]] = {}
        self.kept: list[tuple[Where, str]] = []
        self.find(nest, ())
        self.lying: dict[int, dict[Index, Entry]] = {n: {} for n in self.whole}
        self.dram: dict[int, dict[Index, Entry]] = {}
        self.taken: list[Box] = []
        self.crossed: dict[tuple[int, Index], tuple[int, bool]] = {}  # elements of outputs: how often
        self.open: set[int] = set()  # outputs with unfinished sums
        self.ran, self.loops = Ran(), 0
        self.sets: set[tuple[frozenset[int], frozenset[int]]] = set()
        self.accumulator, self.wide = accumulator, wide
        self.sums = {cut.writes.buffer: Unfinished() for cut in axes.operators}
        self.over = {t: x for x, t in over.items()}
        self.under: dict[int, int] = {}  # what is written in the place of an output over an input: that input
        self.gone: dict[int, set[int]] = {x: set() for x in over}  # bytes of an input that were written over
        self.boxes = self.homes()
        self.box = {use: box for box in self.boxes for use in box.shared}

    def find(self, nest: Nest | Loop, where: Where) -> None:
        self.kept += [(where, name) for name in nest.keep]
        for n, item in enumerate(nest.body):
            if isinstance(item, Leaf):
                self.leaf[self.at[item.operator]] = (*where, n), item
            else:
                self.find(item, (*where, n))

    def users(self, buffer: int) -> list[tuple[int, int]]:
        return [
            (at, n)
            for at, cut in enumerate(self.axes.operators)
            for n, use in enumerate(cut.uses)
            if use.buffer == buffer
        ]

    def homes(self) -> list[Box]:
        boxes = []
        for n, buffer in enumerate(self.axes.buffers):
            if n in self.whole:
                continue
            users, inner = self.users(n), buffer.maker is not None and n not in self.out
            for where, name in [] if inner else self.kept:
                below = [u for u in users if self.leaf[u[0]][0][: len(where)] == where]
                if name == buffer.name and below:
                    boxes.append(Box(n, where, below, list(below)))
                    users = [u for u in users if u not in below]
            if buffer.maker is not None and (inner or len(users) > 1):
                paths = [self.leaf[at][0][:-1] for at, _ in users]
                deep = max(
                    k for k in range(99) if len({p[:k] for p in paths}) == 1 and k <= min(map(len, paths))
                )
                boxes.append(Box(n, paths[0][:deep], users, list(users)))
            else:
                for at, k in users:
                    where, leaf = self.leaf[at]
                    use = self.axes.operators[at].uses[k]
                    deep = next(
                        (i for i, (a, _) in enumerate(leaf.slices) if a not in use.axes), len(leaf.slices)
                    )
                    boxes.append(Box(n, where, [(at, k)], [(at, k)], deep))
        return self.in_place(boxes)

    def in_place(self, boxes: list[Box]) -> list[Box]:
        """A guest's uses go to the box of the output that is written in its place; to a whole one's, too."""
        host: dict[int, int] = {}
        for at, (_, leaf) in self.leaf.items():
            if leaf.over is not None:
                cut = self.axes.operators[at]
                [guest] = {u.buffer for u in cut.reads if self.axes.buffers[u.buffer].name == leaf.over}
                host[guest] = cut.writes.buffer
        for n in self.whole & self.out:
            if self.axes.buffers[n].tensor in self.over:
                self.under[n] = self.over[self.axes.buffers[n].tensor]
        for guest in host:
            last = guest
            while last in host:
                last = host[last]
            if last in self.whole:
                self.lying[guest] = self.lying[last]
                self.whole.add(guest)
                if last in self.under:
                    self.under[guest] = self.under[last]
            else:
                [box] = [b for b in boxes if b.buffer == last]
                box.shared += self.users(guest)
        return [box for box in boxes if box.buffer not in host]

    # -- running -------------------------------------------------------------------------------------------

    def run(self) -> Ran:
        self.body(self.nest, (), Now({}))
        for n, buffer in enumerate(self.axes.buffers):
            if n in self.out:
                found = self.lying[n] if n in self.whole else self.dram.get(n, {})
                whole = self.terms(n)
                if len(found) < buffer.elements or any(
                    e.terms != whole or e.buffer != n for e in found.values()
                ):
                    raise Failed(f"{buffer.name} does not leave whole")
                self.ran.values[n] = {i: e.value for i, e in found.items()}
        self.peak()
        self.count()
        return self.ran

    def peak(self) -> None:
        """Add up places, each as large as it ever was, and hold their offsets against each other."""
        for numbers, sums in self.sets:
            some = [
                (self.offset(box.uses[0]), self.size(box)) for box in map(self.boxes.__getitem__, numbers)
            ]
            some += [(self.offset((self.maker(n), -1)), self.beside(n)) for n in sums if self.beside(n)]
            some += [(self.offset((self.maker(n), -2)), self.carried(n)) for n in sums if self.carried(n)]
            self.ran.peak = max(self.ran.peak, sum(size for _, size in some))
            if self.offsets is not None:
                spans = sorted((low, low + size) for low, size in some if size)
                assert all(end <= low for (_, end), (low, _) in pairwise(spans)), spans

    def offset(self, use: tuple[int, int]) -> int:
        return 0 if self.offsets is None else self.offsets[use]

    def maker(self, buffer: int) -> int:
        maker = self.axes.buffers[buffer].maker
        assert maker is not None
        return maker

    def rounded(self, size: int) -> int:
        return -(-size // self.alignment) * self.alignment

    def width(self, buffer: int) -> int:
        """The bytes of a sum that is not finished."""
        return max(self.axes.buffers[buffer].element, self.accumulator or 0)

    def size(self, box: Box) -> int:
        width = self.element(box.buffer)
        if box.buffer in self.wide:
            assert box.crossed_unfinished or self.sums[box.buffer].most == box.count
            width = self.width(box.buffer)
        assert box.buffer in self.wide or not box.crossed_unfinished or width == self.width(box.buffer)
        return self.rounded(box.count * width)

    def element(self, buffer: int) -> int:
        return self.axes.buffers[buffer].element

    def beside(self, buffer: int) -> int:
        """The bytes of unfinished sums that lie beside their buffer."""
        if self.width(buffer) == self.element(buffer) or buffer in self.wide:
            return 0
        return self.rounded(self.sums[buffer].most * self.width(buffer))

    def carried(self, buffer: int) -> int:
        """The bytes of what unfinished sums carry."""
        carries = self.axes.operators[self.maker(buffer)].carries
        return self.rounded(self.sums[buffer].states * carries * self.width(buffer))

    def add(self, buffer: int, place: Index, terms: int) -> None:
        """Note that an element has so many terms now."""
        sums = self.sums[buffer]
        if terms < self.terms(buffer):
            sums.now.add(place)
            sums.since.add(place)
            sums.most = max(sums.most, len(sums.since))
            cut = self.axes.operators[self.maker(buffer)]
            axes = zip(place, cut.writes.axes, strict=True)
            sums.rows.add(tuple(i for i, axis in axes if axis not in cut.across))
            sums.states = max(sums.states, len(sums.rows))
            if buffer not in self.open:
                self.open.add(buffer)
                self.note()
        elif place in sums.now:
            sums.now.discard(place)
            self.settle(buffer)

    def settle(self, buffer: int) -> None:
        if not self.sums[buffer].now:
            self.sums[buffer].since.clear()
            self.sums[buffer].rows.clear()
            self.open.discard(buffer)

    def note(self) -> None:
        self.sets.add((frozenset(map(self.boxes.index, self.taken)), frozenset(self.open)))

    def terms(self, buffer: int) -> int:
        maker = self.axes.buffers[buffer].maker
        assert maker is not None
        cut = self.axes.operators[maker]
        return prod(cut.axes[a] for a in cut.sums)

    def body(self, nest: Nest | Loop, where: Where, now: Now) -> None:
        mine = [box for box in self.boxes if box.home == where and not box.ring]
        items = {id(box): [self.leaf[at][0][len(where)] for at, _ in box.shared] for box in mine}
        for n, item in enumerate(nest.body):
            for box in mine:
                if n == min(items[id(box)]):
                    self.take(box, now)
            if isinstance(item, Leaf):
                self.slices(self.at[item.operator], item, (*where, n), 0, now)
            else:
                self.loop(item, (*where, n), now)
            for box in mine:
                if n == max(items[id(box)]):
                    self.give_back(box)

    def loop(self, loop: Loop, where: Where, now: Now) -> None:
        self.loops += 1
        own = {self.at[name]: axis for name, axis in loop.over}
        over = {at: own[at] for at in sorted(own, key=lambda at: self.leaf[at][0])}
        inside = [n for n, box in enumerate(self.boxes) if box.home[: len(where)] == where]
        rings = [
            n
            for n in inside
            if self.boxes[n].home == where and self.axes.buffers[self.boxes[n].buffer].name in loop.ring
        ]
        places = [
            Place(self.boxes[n].buffer, self.boxes[n].uses, self.boxes[n].shared, n in rings) for n in inside
        ]
        try:
            turns = bands(self.axes, over, loop.tile, places, self.out)
        except ValueError as problem:
            raise Failed(str(problem)) from None
        if turns is None:
            count = 0
            for turn in now.turns(self.axes, [*over.items()], loop.tile, self.loops):
                self.body(loop, where, turn)
                count += 1
            self.ran.once |= count == 1
            return
        self.ran.once |= len(turns) == 1
        self.ran.bands[where] = turns, [self.boxes[n].uses[0] for n in inside]
        if any(inside.index(n) not in turns[0].side for n in rings):
            raise Failed("a ring that its loop does not cut")
        for n in rings:
            self.boxes[n].ring = True
        for number, band in enumerate(turns):
            ranges, along = dict(now.ranges), dict(now.bands)
            for at, axis in over.items():
                ranges[at, axis] = band.made[at], (*now.of(self.axes, at, axis)[1], self.loops)
            for i, side in band.side.items():
                along[inside[i], side] = band.there[i]
                self.boxes[inside[i]].redone |= i in band.redone
            for n in rings:
                self.turn(
                    n,
                    band.fetched[inside.index(n)],
                    band.side[inside.index(n)],
                    Now(ranges, along),
                    number == 0,
                )
            self.body(loop, where, Now(ranges, along))
            for n in rings:
                if self.boxes[n].buffer in self.out:
                    self.store(self.boxes[n], band.fetched[inside.index(n)], band.side[inside.index(n)])
        for n in rings:
            self.boxes[n].taken = False
            self.taken.remove(self.boxes[n])

    def turn(self, n: int, new: range, side: int, now: Now, first: bool) -> None:
        """Let a ring go on: drop what no turn needs any more, fetch what is new."""
        box, buffer = self.boxes[n], self.axes.buffers[self.boxes[n].buffer]
        if first:
            box.elements = {}
        box.ranges = self.along(n, now)
        box.elements = {i: e for i, e in box.elements.items() if i[side] in box.ranges[side]}
        if buffer.maker is None:
            fetched = list(product(*(new if s == side else r for s, r in enumerate(box.ranges))))
            assert not box.elements.keys() & set(fetched)
            if self.comes(box, now):
                box.elements |= {
                    i: Entry(start(box.buffer, i), 0, box.buffer)
                    for i in fetched
                    if i[side] in box.ranges[side]
                }
                self.cross(box.buffer, len(fetched))
        if first:
            self.hold(box)
        self.measure(box)

    def slices(self, at: int, leaf: Leaf, where: Where, deep: int, now: Now) -> None:
        mine = [box for box in self.boxes if box.home == where and box.deep == deep]
        for box in mine:
            self.take(box, now)
        if deep == len(leaf.slices):
            self.make(at, now)
        else:
            axis, tile = leaf.slices[deep]
            self.loops += 1
            for turn in now.turns(self.axes, [(at, axis)], tile, self.loops):
                self.slices(at, leaf, where, deep + 1, turn)
        for box in mine:
            self.give_back(box)

    def make(self, at: int, now: Now) -> None:
        cut = self.axes.operators[at]
        along = [now.of(self.axes, at, axis)[0] for axis in range(len(cut.axes))]
        apart = [axis for axis in range(cut.outputs) if axis not in cut.together]
        if cut.writes.buffer not in self.under:
            apart = []
        # Over an input it is written row by row: what stays together is read before any of it is written.
        for row in product(*(along[axis] for axis in apart)):
            for axis, index in zip(apart, row, strict=True):
                along[axis] = range(index, index + 1)
            self.make_box(at, cut, along)

    def make_box(self, at: int, cut: Cut, along: Sequence[range]) -> None:
        added: dict[Index, list[int]] = {}
        for index in product(*along):
            place = tuple(index[a] for a in cut.writes.axes) if cut.writes.axes != (ALL,) else (0,)
            value = term(cut, self.axes, index, lambda buffer, i, n: self.read(at, buffer, i, n))
            added.setdefault(place, []).append(value)
            self.ran.terms += 1
        n, buffer = len(cut.uses) - 1, cut.writes.buffer
        into = self.lying[buffer] if buffer in self.whole else self.there(at, n, cut.writes)
        for place, values in added.items():
            if buffer not in self.whole:
                self.inside(self.box[at, n], place)
            known = into.get(place)
            old = known if known is not None and known.buffer == buffer else Entry(0, 0, buffer)
            made = Entry((old.value + sum(values)) % PRIME, old.terms + len(values), buffer)
            if made.terms == self.terms(buffer):
                made.value = completed(
                    cut, self.axes, place, made.value, lambda b, i, n: self.read(at, b, i, n)
                )
            into[place] = made
            if buffer in self.under:
                self.gone[self.under[buffer]].update(self.bytes_of(buffer, place))
            self.add(buffer, place, into[place].terms)

    def there(self, at: int, n: int, use: Use) -> dict[Index, Entry]:
        box = self.box[at, n]
        if not box.taken:
            raise Failed(f"{self.axes.buffers[use.buffer].name} has no place")
        return box.elements

    def inside(self, box: Box, place: Index) -> None:
        if any(i not in along for i, along in zip(place, box.ranges, strict=True)):
            raise Failed("an element outside of the place")

    def read(self, at: int, buffer: int, place: Index, n: int) -> int:
        made = self.axes.buffers[buffer].maker is not None
        if buffer in self.whole:
            if not made:
                gone = self.gone.get(self.axes.buffers[buffer].tensor or 0)
                if gone and not gone.isdisjoint(self.bytes_of(buffer, place)):
                    raise Failed(f"{self.axes.buffers[buffer].name} was written over")
                return start(buffer, place)
            found = self.lying[buffer].get(place)
        else:
            found = self.there(at, n, self.axes.operators[at].uses[n]).get(place)
        if found is None or found.buffer != buffer or (made and found.terms != self.terms(buffer)):
            raise Failed(f"{self.axes.buffers[buffer].name} is not there, or not finished")
        return found.value

    def bytes_of(self, buffer: int, place: Index) -> range:
        """The bytes of an element in its tensor."""
        one, at = self.axes.buffers[buffer], 0
        for first, index, size in zip(one.first, place, one.whole, strict=True):
            at = at * size + first + index
        at += one.offset
        return range(at * one.element, (at + 1) * one.element)

    # -- places --------------------------------------------------------------------------------------------

    def along(self, n: int, now: Now) -> list[range]:
        """The ranges of a buffer's sides."""
        box, found = self.boxes[n], []
        for side, size in enumerate(self.axes.buffers[box.buffer].sides):
            uses = [(at, self.axes.operators[at].uses[k].axes[side]) for at, k in box.uses]
            every = all(axis != ALL for _, axis in uses)
            left = {now.of(self.axes, *use) for use in uses} if every else set()
            if (n, side) in now.bands and not (every and len(uses) == 1 and box.deep):
                found.append(now.bands[n, side])
            else:
                found.append(next(iter(left))[0] if len(left) == 1 else range(size))
        return found

    def take(self, box: Box, now: Now) -> None:
        buffer = self.axes.buffers[box.buffer]
        box.ranges = self.along(self.boxes.index(box), now)
        elements = list(product(*box.ranges))
        box.elements = {}
        if buffer.maker is None:
            if self.comes(box, now):
                box.elements = {i: Entry(start(box.buffer, i), 0, box.buffer) for i in elements}
                self.cross(box.buffer, len(elements))
        elif box.buffer in self.out and not box.redone:
            before = self.dram.get(box.buffer, {})
            box.elements = {i: before[i] for i in elements if i in before}
            self.send(box, box.elements)
        self.hold(box)
        self.measure(box)

    def comes(self, box: Box, now: Now) -> bool:
        """Whether a place from outside is filled: a late constant comes for the last turns of sums alone."""
        at, n = box.uses[0]
        cut = self.axes.operators[at]
        return not cut.uses[n].late or all(
            now.of(self.axes, at, axis)[0].stop == cut.axes[axis] for axis in cut.sums
        )

    def hold(self, box: Box) -> None:
        box.taken = True
        self.taken.append(box)
        self.note()

    def measure(self, box: Box) -> None:
        box.count = max(box.count, prod(map(len, box.ranges)))

    def store(self, box: Box, new: range, side: int) -> None:
        """Store what a ring holds that is new in this turn."""
        there = self.dram.setdefault(box.buffer, {})
        made = {i: e for i, e in box.elements.items() if e.buffer == box.buffer and i[side] in new}
        made = {i: e for i, e in made.items() if not (box.redone and i in there)}
        there.update(made)
        self.cross(box.buffer, len(made))

    def give_back(self, box: Box) -> None:
        if box.buffer in self.out:
            there = self.dram.setdefault(box.buffer, {})
            made = {i: e for i, e in box.elements.items() if e.buffer == box.buffer}
            self.send(box, {i: e for i, e in made.items() if not (box.redone and i in there)})
            there.update(made)
            self.sums[box.buffer].now -= made.keys()
            self.settle(box.buffer)
        box.taken = False
        self.taken.remove(box)

    def send(self, box: Box, elements: Mapping[Index, Entry]) -> None:
        """Let elements of an output cross; if some are not finished, their place is as wide as these."""
        if any(e.terms < self.terms(box.buffer) for e in elements.values()):
            box.crossed_unfinished = True
            if self.axes.operators[self.maker(box.buffer)].carries:
                raise Failed("what unfinished sums carry would have to cross")
        for place, e in elements.items():
            times, unfinished = self.crossed.get((box.buffer, place), (0, False))
            unfinished |= e.terms < self.terms(box.buffer)
            self.crossed[box.buffer, place] = times + 1, unfinished

    def count(self) -> None:
        """Count what crossed of outputs: what ever did so unfinished, at that width but the last time."""
        for (buffer, _), (times, unfinished) in self.crossed.items():
            self.cross(buffer, 1)
            self.cross(buffer, times - 1, self.width(buffer) if unfinished else None)

    def cross(self, buffer: int, elements: int, width: int | None = None) -> None:
        one = self.axes.buffers[buffer]
        size = elements * (width or one.element)
        if one.tensor is None:
            self.ran.weights += size
        else:
            self.ran.crossed[one.tensor] = self.ran.crossed.get(one.tensor, 0) + size
