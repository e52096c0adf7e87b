"""Groups of operators for tests of nests: in a few words, or at random; and the law of nests by walking
turns.

`Walk` knows no closed form: it enters every turn of every loop, fills and gives back every buffer, and adds
up what crosses and what is held.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod
from random import Random

from onchip.network.axes import ALL, Buffer, Cut, GroupAxes, Use
from onchip.network.operators import Side
from onchip.plans.nest import Leaf, Loop, Nest, leaves


def group_of(sizes: str, lines: Sequence[str], element: int = 1) -> GroupAxes:
    """A group in few words: `m=4 d=4`, then operators as `up: h(m,f) = x(m,d) A(d,f) | f`.

    Letters are an operator's own axes; those of its output come first. A side `*d` has the size of d, and
    all of its positions are needed. Over a side `H@h:2:1:3`, of the size of H, a window of 3 slides along h
    by steps of 2, from 1 before its begin on. Behind the bar stand axes along which the operator is not cut,
    behind another one how many values its sums carry, and the axes whose elements share them: `| v | 2 v`.
    """
    size = {name: int(n) for name, _, n in (word.partition("=") for word in sizes.split())}
    places: dict[str, int] = {}
    rows: list[tuple[str, tuple[int, ...], int | None]] = []
    operators = []
    for at, line in enumerate(lines):
        name, _, rest = line.partition(":")
        made, _, operands = rest.partition("=")
        operands, _, together = operands.partition("|")
        together, _, carried = together.partition("|")
        carries, *across = carried.split() or ["0"]
        terms = [_term(word) for word in (made.strip(), *operands.split())]
        axes = [*terms[0][1]]
        for _, sides in terms[1:]:
            axes += [s for s in sides if s[0] != "*" and "@" not in s and s not in axes]
        uses = []
        for i, (tensor, sides) in enumerate(terms):
            if tensor not in places:
                places[tensor] = len(rows)
                sized = tuple(size[s.lstrip("*").partition("@")[0]] for s in sides)
                rows.append((tensor, sized, at if i == 0 else None))
            along = tuple(ALL if s[0] == "*" or "@" in s else axes.index(s) for s in sides)
            uses.append(Use(places[tensor], along, tuple(_window(s, size, axes) for s in sides)))
        operators.append(
            Cut(at, name.strip(), tuple(size[a] for a in axes), len(terms[0][1]),
                frozenset(axes.index(a) for a in together.split()), tuple(uses[1:]), (), uses[0],
                int(carries), frozenset(axes.index(a) for a in across))
        )  # fmt: skip
    buffers = [
        Buffer(name, i, sides, element, maker, (0,) * len(sides), sides, name)
        for i, (name, sides, maker) in enumerate(rows)
    ]
    return GroupAxes(tuple(operators), tuple(buffers))


def _window(side: str, size: Mapping[str, int], axes: Sequence[str]) -> Side | None:
    name, _, window = side.partition("@")
    if not window:
        return None
    axis, *numbers = window.split(":")
    stride, before, span = map(int, numbers)
    return Side(size[name], axes.index(axis), stride, before, span)


def _term(word: str) -> tuple[str, list[str]]:
    name, _, sides = word.partition("(")
    return name, sides.rstrip(")").split(",")


def named(group: GroupAxes, names: str) -> list[int]:
    """The places of buffers by name."""
    return [i for i, b in enumerate(group.buffers) if b.name in names.split()]


@dataclass(frozen=True)
class NestCase:
    """A group with the buffers that leave it and those that lie on chip whole, and how wide its sums are."""

    group: GroupAxes
    leaving: frozenset[int]
    whole: frozenset[int]
    alignment: int
    accumulator: int | None = None

    def wide(self, buffer: int) -> int:
        """The bytes of a sum of a buffer that is not complete."""
        return max(self.group.buffers[buffer].element, self.accumulator or 0)

    def sums(self, buffer: int) -> bool:
        """Whether a buffer may hold sums that are wider than its elements."""
        return self.wide(buffer) > self.group.buffers[buffer].element and bool(self.summed(buffer))

    def summed(self, buffer: int) -> list[int]:
        """The axes that a buffer's maker sums over."""
        maker = self.group.buffers[buffer].maker
        op = None if maker is None else self.group.operators[maker]
        return [] if op is None else [a for a in op.sums if op.axes[a] > 1]

    def costs(self, buffer: int) -> bool:
        """Whether sums of a buffer that are not complete take more than its elements."""
        maker = self.group.buffers[buffer].maker
        carries = maker is not None and self.group.operators[maker].carries > 0
        return self.sums(buffer) or (carries and bool(self.summed(buffer)))


def random_nest_case(rng: Random, operators: int, sides: Sequence[int] = (2, 3, 4)) -> NestCase:
    """A wild small group: shared operands, whole sides, sums, axes that are not cut."""
    rows: list[tuple[str, tuple[int, ...], int | None, int]] = []
    cuts = []
    for at in range(operators):
        made = [i for i, row in enumerate(rows) if row[2] is not None]
        if made and rng.random() < 0.3:
            cuts.append(_like(rng, rows, at))
            continue
        known = rows[rng.choice(made)][1] if made else ()
        pool = [n for n in known if rng.random() < 0.8]
        while len(pool) < 2 or rng.random() < 0.4:
            pool.append(rng.choice(sides))
        axes = tuple(rng.sample(pool, min(len(pool), 3)))
        outputs = rng.randint(1, len(axes))
        reads = []
        for _ in range(rng.choice((1, 2, 2, 3))):
            if rows and rng.random() < 0.7:
                buffer = rng.choice(made) if made and rng.random() < 0.7 else rng.randrange(len(rows))
            else:
                chosen = [a for a in range(len(axes)) if rng.random() < 0.7] or [0]
                buffer = len(rows)
                rows.append((f"t{buffer}", tuple(axes[a] for a in chosen), None, rng.choice((1, 1, 2))))
            free = list(range(len(axes)))
            rng.shuffle(free)
            along = []
            for n in rows[buffer][1]:
                axis = next((a for a in free if axes[a] == n), ALL)
                along.append(ALL if rng.random() < 0.15 else axis)
                if along[-1] != ALL:
                    free.remove(along[-1])
            reads.append(Use(buffer, tuple(along)))
        together = frozenset(a for a in range(outputs) if rng.random() < 0.1)
        across, carries = frozenset[int](), 0
        if outputs < len(axes) and rng.random() < 0.3:
            across, carries = frozenset(a for a in range(outputs) if rng.random() < 0.3), rng.choice((1, 2))
        rows.append((f"t{len(rows)}", axes[:outputs], at, rng.choice((1, 1, 2))))
        writes = Use(len(rows) - 1, tuple(range(outputs)))
        cuts.append(
            Cut(at, f"o{at}", axes, outputs, together | across, tuple(reads), (), writes, carries, across)
        )
    buffers = tuple(
        Buffer(name, i, shape, element, maker, (0,) * len(shape), shape, name)
        for i, (name, shape, maker, element) in enumerate(rows)
    )
    read = {use.buffer for cut in cuts for use in cut.reads}
    own = [i for i, b in enumerate(buffers) if b.maker is not None]
    whole = frozenset(i for i in range(len(buffers)) if rng.random() < 0.1)
    leaving = frozenset(i for i in own if i not in read or rng.random() < 0.2) - whole
    alignment, accumulator = rng.choice((1, 1, 1, 2, 4)), rng.choice((None, None, 2, 3, 4))
    return NestCase(GroupAxes(tuple(cuts), buffers), leaving, whole, alignment, accumulator)


def _like(rng: Random, rows: list[tuple[str, tuple[int, ...], int | None, int]], at: int) -> Cut:
    """The last output element by element, or in rows; perhaps with another tensor of the same sides."""
    operand = max(i for i, row in enumerate(rows) if row[2] is not None)
    _, shape, _, element = rows[operand]
    axes = tuple(range(len(shape)))
    row = rng.randrange(len(shape)) if rng.random() < 0.3 else None
    reads = [Use(operand, tuple(ALL if a == row else a for a in axes))]
    others = [i for i, other in enumerate(rows) if other[1] == shape and i != operand]
    if others and rng.random() < 0.7:
        reads.insert(rng.randrange(2), Use(rng.choice(others), axes))
    rows.append((f"t{len(rows)}", shape, at, element))
    together = frozenset() if row is None else frozenset({row})
    return Cut(at, f"o{at}", shape, len(shape), together, tuple(reads), (), Use(len(rows) - 1, axes))


Interval = tuple[int, int, int]
"""Positions along an axis from the first on, before the second; the loop that cuts there (-1: none)."""


Loops = list[tuple[Mapping[int, int], int]]
"""The loops around a leaf, and its slices: axes by operator, tile."""


class Walk:
    """One execution of a nest. With any order a leaf that has no slices gets those that hold least."""

    def __init__(self, case: NestCase, nest: Nest, *, any_order: bool = False) -> None:
        self.case, self.any_order = case, any_order
        self.group = case.group
        self.place = {op.name: i for i, op in enumerate(self.group.operators)}
        self.bytes = 0
        self.scratch = 0
        self.stateless = True
        """No sum crosses with a state."""
        self.written: dict[tuple[object, ...], int] = {}
        self.loops = 0
        self.uses = [(at, use) for at, op in enumerate(self.group.operators) for use in op.uses]
        self.inner = {
            i
            for i, b in enumerate(self.group.buffers)
            if b.maker is not None and sum(u.buffer == i for _, u in self.uses) > 1 and i not in case.leaving
        }
        self.path: dict[int, Loops] = {}
        self.find(nest.body, [])
        self.homed = dict.fromkeys(case.whole, 0)  # loops around homes
        self.host: dict[int, int] = {}
        for _, leaf in reversed(list(leaves(nest.body))):
            if leaf.over is not None:
                self.replace(leaf)
        boxes = {
            at: {a: (0, n, -1) for a, n in enumerate(op.axes)} for at, op in enumerate(self.group.operators)
        }
        self.body(nest.body, nest.keep, boxes, frozenset(), 0, 0)

    def find(self, items: Sequence[Loop | Leaf], around: Loops) -> None:
        """Find the loops around every leaf."""
        for item in items:
            if isinstance(item, Leaf):
                at = self.place[item.operator]
                self.path[at] = around + [({at: axis}, tile) for axis, tile in item.slices]
            else:
                self.find(item.body, [*around, ({self.place[n]: axis for n, axis in item.over}, item.tile)])

    def summed(self, buffer: int, deep: int) -> tuple[bool, int | None]:
        """Whether a buffer inside so many loops of its maker is as wide as its sums; else the loop, by
        number, as long as which accumulators lie beside it."""
        maker = self.group.buffers[buffer].maker
        assert maker is not None
        op, left = self.group.operators[maker], {}
        left = dict(enumerate(op.axes))
        sides = False
        for n, (over, tile) in enumerate(self.path[maker]):
            axis = over[maker]
            if axis in op.sums and tile < left[axis]:
                return (n < deep or not sides) and buffer not in self.case.whole, n
            left[axis] = min(left[axis], tile)
            sides |= n >= deep and axis in op.writes.axes
        return False, None

    def accumulators(
        self, deep: int, buffer: int, kept: Collection[int], boxes: dict[int, dict[int, Interval]]
    ) -> int:
        """The bytes of the accumulators that live as long as loop number `deep` around their maker runs."""
        place = self.host.get(buffer, buffer)
        if not self.case.costs(buffer) or place not in {*kept, *self.case.whole}:
            return 0
        maker = self.group.buffers[buffer].maker
        assert maker is not None
        op = self.group.operators[maker]
        wide, loop = self.summed(buffer, self.homed[place])
        if loop != deep:
            return 0
        if place != buffer and place in self.case.whole:
            wide = not any(over[maker] in op.writes.axes for over, _ in self.path[maker][:loop])
        assert not (wide and place != buffer and self.case.sums(buffer))
        box = self.box([(maker, op.writes)], boxes)
        found = 0
        if self.case.sums(buffer) and not wide:
            found = self.rounded(self.case.wide(buffer) * prod(hi - lo for lo, hi, _ in box))
        rows = prod(hi - lo for (lo, hi, _), a in zip(box, op.writes.axes, strict=True) if a not in op.across)
        return found + self.rounded(self.case.wide(buffer) * op.carries * rows)

    def replace(self, leaf: Leaf) -> None:
        """An operand, made here and read by this leaf alone, lies in the place of its output."""
        op = self.group.operators[self.place[leaf.operator]]
        operand = next(u.buffer for u in op.reads if self.group.buffers[u.buffer].name == leaf.over)
        assert operand in self.inner - self.case.whole
        assert sum(u.buffer == operand for _, u in self.uses) == 2
        assert all(op.axes[a] == 1 for a in op.sums)
        x, y = self.group.buffers[operand], self.group.buffers[op.writes.buffer]
        assert (x.sides, x.element) == (y.sides, y.element)
        self.host[operand] = self.host.get(op.writes.buffer, op.writes.buffer)

    def members(self, item: Loop | Leaf) -> set[int]:
        if isinstance(item, Leaf):
            return {self.place[item.operator]}
        return {at for part in item.body for at in self.members(part)}

    def rounded(self, size: int) -> int:
        return -(-size // self.case.alignment) * self.case.alignment

    def box(self, uses: Sequence[tuple[int, Use]], boxes: dict[int, dict[int, Interval]]) -> list[Interval]:
        """The part of a buffer that lies in a home: a side is cut if all of its uses cut it in one loop."""
        found: list[Interval] = []
        for side, size in enumerate(self.group.buffers[uses[0][1].buffer].sides):
            cuts = {boxes[at][use.axes[side]] if use.axes[side] != ALL else (0, size, -1) for at, use in uses}
            found.append(cuts.pop() if len(cuts) == 1 else (0, size, -1))
        return found

    def cross(self, home: object, buffer: int, box: list[Interval]) -> None:
        """Fill a buffer from outside, or give back an output, whose partial sums may have to come first."""
        size = self.group.buffers[buffer].element * prod(b - a for a, b, _ in box)
        if self.group.buffers[buffer].maker is None:
            self.bytes += size
        elif buffer in self.case.leaving:
            key = (home, buffer, *((a, b) for a, b, _ in box))
            sums = size // self.group.buffers[buffer].element * self.case.wide(buffer)
            self.bytes += size if key not in self.written else 2 * sums
            maker = self.group.buffers[buffer].maker
            assert maker is not None
            self.stateless &= key not in self.written or not self.group.operators[maker].carries
            self.written[key] = 1

    def body(
        self,
        items: Sequence[Loop | Leaf],
        keep: Sequence[str],
        boxes: dict[int, dict[int, Interval]],
        kept: frozenset[int],
        held: int,
        deep: int,
    ) -> None:
        inside = [self.members(item) for item in items]
        all_inside = set().union(*inside)
        here = []
        for i, b in enumerate(self.group.buffers):
            if i in self.case.whole or i in kept or i in self.host:
                continue
            uses = [(at, use) for at, use in self.uses if use.buffer == i and at in all_inside]
            if i in self.inner:
                total = sum(use.buffer == i for _, use in self.uses)
                if len(uses) < total or any({at for at, _ in uses} <= part for part in inside):
                    continue
            elif b.name not in keep:
                continue
            assert uses, f"{b.name} is kept where nobody uses it"
            box = self.box(uses, boxes)
            if i not in self.inner:
                self.cross(id(items), i, box)
            guests = {at for at, use in self.uses if self.host.get(use.buffer) == i}
            assert guests <= all_inside
            at_items = [n for n, part in enumerate(inside) if part & (guests | {at for at, _ in uses})]
            self.homed[i] = deep
            wide = self.case.sums(i) and self.summed(i, deep)[0]
            size = self.rounded(
                (self.case.wide(i) if wide else b.element) * prod(hi - lo for lo, hi, _ in box)
            )
            here.append((i, size, at_items[0], at_items[-1]))
        kept |= {i for i, _, _, _ in here}
        for n, item in enumerate(items):
            alive = held + sum(size for _, size, first, last in here if first <= n <= last)
            if isinstance(item, Leaf):
                self.leaf(item, boxes, kept, alive)
                continue
            alive += sum(
                self.accumulators(deep, self.group.operators[at].writes.buffer, kept, boxes)
                for at in inside[n]
            )
            for at, axis in ((self.place[name], axis) for name, axis in item.over):
                assert axis not in self.group.operators[at].together
            assert {self.place[name] for name, _ in item.over} == inside[n]
            first, size, _ = boxes[self.place[item.over[0][0]]][item.over[0][1]]
            self.loops += 1
            loop = self.loops
            for begin in range(first, size, item.tile):
                part = dict(boxes)
                for name, axis in item.over:
                    at = self.place[name]
                    assert boxes[at][axis][:2] == (first, size)
                    part[at] = boxes[at] | {axis: (begin, min(begin + item.tile, size), loop)}
                self.body(item.body, item.keep, part, kept, alive, deep + 1)

    def leaf(
        self, item: Leaf, boxes: dict[int, dict[int, Interval]], kept: frozenset[int], held: int
    ) -> None:
        at = self.place[item.operator]
        op = self.group.operators[at]
        own = []
        for n, use in enumerate(op.uses):
            if use.buffer in self.case.whole or use.buffer in kept or use.buffer in self.host:
                continue
            assert use.buffer not in self.inner
            assert use.buffer not in self.host.values()
            self.cross((at, n), use.buffer, self.box([(at, use)], boxes))
            own.append(use)
        orders: Iterator[Sequence[tuple[int, int]]] = iter([item.slices])
        if self.any_order and not self.case.costs(op.writes.buffer):
            free = [a for a in range(len(op.axes)) if a not in op.together]
            orders = (tuple((a, 1) for a in order) for order in permutations(free))
        held += self.among_slices(at, item, kept, boxes)
        self.scratch = max(self.scratch, held + min(self.needs(at, own, slices, boxes) for slices in orders))

    def among_slices(
        self, at: int, item: Leaf, kept: frozenset[int], boxes: dict[int, dict[int, Interval]]
    ) -> int:
        """The bytes of accumulators that live as long as one of a leaf's slices."""
        part, total = {**boxes, at: dict(boxes[at])}, 0
        loops = len(self.path[at]) - len(item.slices)
        use = self.group.operators[at].writes
        if use.buffer not in {*kept, *self.host, *self.case.whole}:  # private
            kept |= {use.buffer}
            axes = [axis in use.axes for axis, _ in item.slices]
            self.homed[use.buffer] = loops + (axes.index(False) if False in axes else len(axes))
        for n, (axis, tile) in enumerate(item.slices):
            total += self.accumulators(loops + n, self.group.operators[at].writes.buffer, kept, part)
            low, high, loop = part[at][axis]
            part[at][axis] = (low, min(high, low + tile), loop)
        return total

    def needs(
        self, at: int, own: Sequence[Use], slices: Sequence[tuple[int, int]],
        boxes: dict[int, dict[int, Interval]],
    ) -> int:  # fmt: skip
        total = 0
        for use in own:
            cut = {a: hi - lo for a, (lo, hi, _) in boxes[at].items()}
            deep = len(self.path[at]) - len(slices)
            for axis, tile in slices:
                assert axis not in self.group.operators[at].together
                if axis not in use.axes:
                    break
                cut[axis] = min(cut[axis], tile)
                deep += 1
            b = self.group.buffers[use.buffer]
            sides = (cut[a] if a != ALL else n for a, n in zip(use.axes, b.sides, strict=True))
            wide = use is self.group.operators[at].writes and self.case.sums(use.buffer)
            wide = wide and self.summed(use.buffer, deep)[0]
            total += self.rounded((self.case.wide(use.buffer) if wide else b.element) * prod(sides))
        return total


def legal(case: NestCase, nest: Nest) -> bool:
    """True if every reader sees finished elements, and comes after the maker."""
    group = case.group
    order: list[tuple[str, tuple[int, ...], dict[int, dict[str, int]]]] = []

    def visit(items: Sequence[Loop | Leaf], path: tuple[int, ...], over: dict[int, dict[str, int]]) -> None:
        for item in items:
            if isinstance(item, Leaf):
                order.append((item.operator, path, over))
            else:
                name = id(item)
                visit(item.body, (*path, name), over | {name: dict(item.over)})

    visit(nest.body, (), {})
    seen = {name: (n, path, over) for n, (name, path, over) in enumerate(order)}
    for op in group.operators:
        for use in op.reads:
            maker = group.buffers[use.buffer].maker
            if maker is None:
                continue
            made = group.operators[maker]
            if seen[made.name][0] > seen[op.name][0]:
                return False
            for loop in set(seen[made.name][1]) & set(seen[op.name][1]):
                over = seen[op.name][2][loop]
                a, b = over[made.name], over[op.name]
                if a >= made.outputs:
                    return False
                sides_made = [s for s, axis in enumerate(made.writes.axes) if axis == a]
                if sides_made != [s for s, axis in enumerate(use.axes) if axis == b]:
                    return False
    return True
