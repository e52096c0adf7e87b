"""Random groups of operators with reaches, and random nests of them, wild on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from random import Random

from onchip.network import Constant, Network, OperatorSpec, Reach, Side
from onchip.network.axes import ALL, GroupAxes, Use
from onchip.plans import Group, Leaf, Loop, Nest

__all__ = ["Grower", "group_of", "groups_network", "random_nest", "random_whole", "window_over"]

SMALL = (1, 2, 2, 3, 3, 4, 5)
MOST_WORK = 700


def groups_network(random: Random, most: int = 4, *, windows: bool = False) -> Network:
    """A network of 1 to `most` operators: sums, broadcasts, transposes, norms, parts, new sides, aliases.

    With `windows` also strides, pads, spans, resizes and parts of concats, along outputs and sums.
    """
    tensors: dict[str, tuple[tuple[int, ...], int]] = {}
    made: list[str] = []
    specs: list[OperatorSpec] = []
    views: list[tuple[str, str, int]] = []
    element = random.choice((1, 1, 2))
    for v in range(random.randint(1, most)):
        for _ in range(50):
            names = [t for t in dict.fromkeys(made[-2:]) if random.random() < 0.75]
            names += [t for t in tensors if t not in names and random.random() < 0.15]
            new: dict[str, tuple[int, ...]] = {}
            while not names or (len(names) < 3 and random.random() < 0.3):
                new[f"x{len(tensors) + len(new)}"] = tuple(
                    random.choice(SMALL) for _ in range(random.randint(1, 3))
                )
                names += [list(new)[-1]]
            parts = {}
            for i, name in enumerate(names):
                if name in tensors and name not in {view[0] for view in views} and random.random() < 0.12:
                    alias, shape, first = _part(random, f"{name}.part{v}", tensors[name][0])
                    parts[alias] = (alias, name, first * element)
                    new[alias], names[i] = shape, alias
            shapes = [new[t] if t in new else tensors[t][0] for t in names]
            found = _reach(random, shapes, v, windows)
            if found is None:
                continue
            tensors |= {t: (shape, element) for t, shape in new.items()}
            views += parts.values()
            if len(names) == 1 and random.random() < 0.1 and prod(found.output) > 1:
                [name] = names  # two uses of one tensor, by an alias
                other = _reach(random, [shapes[0], shapes[0]], v, windows)
                if other is not None and name not in {view[0] for view in views}:
                    found, alias = other, f"{name}.alias{v}"
                    views.append((alias, name, 0))
                    tensors[alias] = tensors[name]
                    names.append(alias)
            weights = sum(c.bytes for c in found.weights)
            work = prod(found.extents)
            specs.append(OperatorSpec(f"op{v}", "Any", names, [f"t{v}"], weights, macs=work, reach=found))
            tensors[f"t{v}"] = (found.output, element)
            made.append(f"t{v}")
            break
    read = {t for spec in specs for t in spec.inputs}
    outputs = [t for t in made if t not in read or random.random() < 0.15]
    rows = [
        (t, prod(shape) * e, "activation" if t in made or t in {view[0] for view in views} else "input")
        for t, (shape, e) in tensors.items()
    ]
    return Network.build("random", rows, specs, outputs, views=views)  # type: ignore[arg-type]


def _part(random: Random, name: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...], int]:
    """Some indices of the outermost side, and the first element of them; now and then equal parts."""
    outer, *inner = shape
    count = random.randint(1, outer)
    first = random.randint(0, outer - count)
    if random.random() < 0.5 and outer % count == 0:
        first -= first % count
    return name, (count, *inner), first * prod(inner)


def window_over(random: Random, size: int, extent: int) -> Side:
    """A window along an axis of a given size."""
    return _window(random, size, 0, extent)[0]


def _window(random: Random, size: int, axis: int, extent: int = 0) -> tuple[Side, int]:
    """A window over a side, and the size of its axis: `extent` if that is given."""
    stride, per = random.choice((1, 1, 1, 2, 2, 3)), random.choice((1, 1, 1, 1, 2, 3))
    span = random.choice((1, 1, 2, 3, 3, 4, 5))
    before = random.choice((0, 0, 1, 1, span // 2, random.randint(-2, 4)))
    natural = ((size + random.choice((before, before, 0, 1)) - span) * per + max(0, before)) // stride + 1
    return Side(size, axis, stride, before, span, per), extent or max(1, min(natural, 7))


def _reach(random: Random, shapes: Sequence[tuple[int, ...]], v: int, windows: bool) -> Reach | None:
    """A reach over operands of these shapes; None if its work is too much."""
    kind = random.choice(("sum", "sum", "map", "norm", "any"))
    output: list[int] = []
    sums: list[int] = []
    reads: list[list[tuple[int, str, int]]] = []  # size, "out", "sum" or "all", number
    sliding: dict[tuple[int, int], Side] = {}  # by read and side
    maps = windows and random.random() < 0.7  # windows over all sides in order, as over the rows of an image
    for n, shape in enumerate(shapes):
        sides = _resided(random, shape) if random.random() < (0.05 if windows else 0.3) else shape
        used: set[tuple[str, int]] = set()
        row: list[tuple[int, str, int]] = []
        for k, size in enumerate(sides):
            pool = [("out", i) for i, m in enumerate(output) if m == size]
            pool += [("sum", i) for i, m in enumerate(sums) if m == size]
            pool = [one for one in pool if one not in used]
            share = random.random()
            if maps and size > 1 and (k < len(output) if n else True) and random.random() < 0.9:
                if n and output[k] == size and random.random() < 0.5:
                    how = ("out", k)
                elif n:
                    how = ("out", k)
                    sliding[n, k], _ = _window(random, size, 0, output[k])
                elif random.random() < 0.6:
                    sliding[n, k], extent = _window(random, size, 0)
                    output.append(extent)
                    how = ("out", len(output) - 1)
                else:
                    output.append(size)
                    how = ("out", len(output) - 1)
                if how in used:
                    return None
            elif windows and size > 1 and random.random() < 0.55:
                free = [("out", i) for i in range(len(output)) if ("out", i) not in used]
                free += [("sum", i) for i in range(len(sums)) if ("sum", i) not in used]
                if free and random.random() < 0.8:
                    how = random.choice(free)
                    extent = (output if how[0] == "out" else sums)[how[1]]
                    window, _ = _window(random, size, 0, extent)
                else:
                    window, extent = _window(random, size, 0)
                    summed = kind == "sum" and random.random() < 0.25
                    (sums if summed else output).append(extent)
                    how = ("sum", len(sums) - 1) if summed else ("out", len(output) - 1)
                sliding[n, k] = window
            elif pool and share < 0.75:
                how = random.choice(pool)
            elif kind == "sum" and share < 0.9 and (n or random.random() < 0.5):
                sums.append(size)
                how = ("sum", len(sums) - 1)
            elif kind != "map" and random.random() < (0.5 if kind == "norm" else 0.15):
                how = ("all", 0)
            else:
                output.append(size)
                how = ("out", len(output) - 1)
            used.add(how)
            row.append((size, *how))
        reads.append(row)
    if kind == "norm" and len(shapes) == 1:
        for size, how, _ in reads[0]:
            if how == "all":
                output.append(size)
    elif random.random() < 0.1:
        output.append(random.choice(SMALL))
    order = list(range(len(output)))
    if random.random() < 0.3:
        random.shuffle(order)
    place = {old: new for new, old in enumerate(order)}
    out = tuple(output[old] for old in order) or (1,)
    if prod(out) * prod(sums) > MOST_WORK or prod(out) > 150 or len(out) > 5:
        return None

    def side(read: int, number: int, size: int, how: str, n: int) -> Side:
        if window := sliding.get((read, number)):
            return replace(window, axis=place[n] if how == "out" else len(out) + n)
        if how == "all":
            return (
                Side(size, span=size) if size == 1 or random.random() < 0.8 else Side(size, before=-1, span=1)
            )
        return Side(size, place[n] if how == "out" else len(out) + n)

    constants = []
    for w in range(random.choice((0, 0, 1, 2))):
        axes = [a for a in range(len(out) + len(sums)) if random.random() < 0.5]
        random.shuffle(axes)
        extents = (*out, *sums)
        own = tuple(Side(extents[a], a) for a in axes)
        if prod(s.size for s in own) <= 100:
            name = random.choice((f"w{v}.{w}", "shared"))
            if name not in [c.name for c in constants]:
                late = (v + w) % 2 == 0 and all(s.axis < len(out) for s in own)
                constants.append(Constant(name, prod(s.size for s in own) * random.choice((1, 2)), own, late))
    if any(len(row) == 0 for row in reads):
        return None
    made = tuple(tuple(side(n, k, *s) for k, s in enumerate(row)) for n, row in enumerate(reads))
    carries, across = 0, tuple[int, ...]()
    if sums and random.random() < 0.35:  # as the sum behind a softmax
        carries = random.choice((1, 2))
        across = tuple(a for a in range(len(out)) if random.random() < 0.4)
    return Reach(out, made, tuple(constants), tuple(sums), carries, across)


def _resided(random: Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Other sides for the same elements: some merged, some cut."""
    left, found = prod(shape), list[int]()
    while left > 1 and len(found) < 3:
        sizes = [n for n in range(2, left + 1) if left % n == 0]
        found.append(random.choice(sizes))
        left //= found[-1]
    return (*found, *((left,) if left > 1 else ())) or (1,)


# -- nests -------------------------------------------------------------------------------------------------


@dataclass
class Grower:
    """Grows nests of a group."""

    random: Random
    axes: GroupAxes
    outside: dict[str, bool]
    """What may be kept: whether it leaves."""
    tries: int = 1
    """How often a loop is tried, with other axes."""

    def body(
        self,
        ops: Sequence[int],
        cuts: dict[int, tuple[tuple[int, int], ...]],
        deep: int,
        kept: frozenset[str],
    ) -> tuple[Loop | Leaf, ...]:
        random, items, n = self.random, list[Loop | Leaf](), 0
        while n < len(ops):
            count = random.randint(1, len(ops) - n) if deep < 4 else 1
            some = ops[n : n + count]
            loop = None
            for _ in range(self.tries if random.random() < (0.8 if deep < 2 else 0.5) else 0):
                loop = loop or self.loop(some, cuts, deep, kept)
            if loop is None:
                loop, some = self.leaf(ops[n], cuts), ops[n : n + 1]  # type: ignore[assignment]
            items.append(loop)  # type: ignore[arg-type]
            n += len(some)
        return tuple(items)

    def left(self, at: int, axis: int, cuts: dict[int, tuple[tuple[int, int], ...]]) -> tuple[int, int]:
        """The indices of an axis that outer loops leave, and how many of them cut it: 0 for none."""
        own = [tile for a, tile in cuts.get(at, ()) if a == axis]
        return (min(own), len(own)) if own else (self.axes.operators[at].axes[axis], 0)

    def free(self, at: int) -> list[int]:
        cut = self.axes.operators[at]
        return [a for a in range(len(cut.axes)) if a not in cut.together]

    def loop(
        self,
        ops: Sequence[int],
        cuts: dict[int, tuple[tuple[int, int], ...]],
        deep: int,
        kept: frozenset[str],
    ) -> Loop | None:
        random, over = self.random, dict[int, int]()
        first = random.choice(ops)
        axes = [a for a in self.free(first) if self.left(first, a, cuts)[0] > 1]
        if not axes:
            return None
        over[first] = random.choice(axes)
        size = self.left(first, over[first], cuts)
        for at in sorted(ops, key=lambda at: abs(at - first)):
            if at == first:
                continue
            fit = [a for a in self.free(at) if self.left(at, a, cuts) == size]
            linked = [a for a in fit if self.linked(at, a, over)]
            slid = [a for a in self.free(at) if not self.left(at, a, cuts)[1] and self.slid(at, a, over)]
            if slid and not size[1] and random.random() < 0.95:
                over[at] = random.choice(slid)
                continue
            if not fit or (not linked and random.random() < 0.7):
                return None
            over[at] = random.choice(linked if linked and random.random() < 0.95 else fit)
        keep = self.keep(ops, kept)
        tile, windows = random.randint(1, size[0] - 1), self.windows(over)
        if windows and random.random() < 0.7:
            tile = random.choice((1, 1, 2))
        left = 1 if windows and random.random() < 0.95 else tile
        inner = {at: (*cuts.get(at, ()), (over[at], left)) for at in ops}
        body = self.body(ops, inner, deep + 1, kept | {*keep})
        ring = self.ring(body, keep, over) if windows or random.random() < 0.01 else ()
        return Loop(tuple((self.axes.operators[at].name, over[at]) for at in ops), tile, body, keep, ring)

    def windows(self, over: dict[int, int]) -> bool:
        """Whether some use slides along a loop."""
        uses = [(use, axis) for at, axis in over.items() for use in self.axes.operators[at].uses]
        return any(axis in along(use) and axis not in use.axes for use, axis in uses)

    def slid(self, at: int, axis: int, over: dict[int, int]) -> bool:
        """Whether a buffer is cut along one side here and there, and a window slides over it."""
        for other, a in over.items():
            for mine in self.axes.operators[at].uses:
                for theirs in self.axes.operators[other].uses:
                    if mine.buffer == theirs.buffer:
                        sides = zip(along(mine), along(theirs), strict=True)
                        exact = zip(mine.axes, theirs.axes, strict=True)
                        if (axis, a) in sides and (axis, a) not in exact:
                            return True
        return False

    def ring(
        self, body: Sequence[Loop | Leaf], keep: tuple[str, ...], over: dict[int, int]
    ) -> tuple[str, ...]:
        """Some buffers with their home in a body, and now and then another one."""
        item = {name: n for n, one in enumerate(body) for name in _names(one)}
        found = []
        for b, buffer in enumerate(self.axes.buffers):
            users = [
                (at, use) for at, cut in enumerate(self.axes.operators) for use in cut.uses if use.buffer == b
            ]
            inside = [(at, use) for at, use in users if at in over]
            sides = [{s for s, a in enumerate(along(use)) if a == over[at]} for at, use in inside]
            inner = buffer.maker is not None and len(users) == len(inside) > 1
            inner = inner and len({item[self.axes.operators[at].name] for at, _ in inside}) > 1
            good = (inner or (buffer.maker is None and buffer.name in keep)) and bool(
                set.intersection(*sides)
            )
            if self.random.random() < (0.6 if good else 0.003):
                found.append(buffer.name)
        return tuple(found)

    def linked(self, at: int, axis: int, over: dict[int, int]) -> bool:
        mine = {
            (u.buffer, s) for u in self.axes.operators[at].uses for s, a in enumerate(u.axes) if a == axis
        }
        others = {
            (u.buffer, s)
            for other, a in over.items()
            for u in self.axes.operators[other].uses
            for s, x in enumerate(u.axes)
            if x == a
        }
        return bool(mine & others)

    def keep(self, ops: Sequence[int], kept: frozenset[str]) -> tuple[str, ...]:
        found = []
        for name, leaves in self.outside.items():
            users = [
                at
                for at, cut in enumerate(self.axes.operators)
                for u in cut.uses
                if self.axes.buffers[u.buffer].name == name
            ]
            inside = [at in ops for at in users]
            if name not in kept and (all(inside) if leaves else any(inside)) and self.random.random() < 0.4:
                found.append(name)
        return tuple(found)

    def leaf(self, at: int, cuts: dict[int, tuple[tuple[int, int], ...]]) -> Leaf:
        random, cut = self.random, self.axes.operators[at]
        axes = [a for a in self.free(at) if self.left(at, a, cuts)[0] > 1 and random.random() < 0.6]
        random.shuffle(axes)
        slices = tuple((a, random.randint(1, self.left(at, a, cuts)[0])) for a in axes)
        over = None
        if random.random() < 0.6:
            fit = [
                self.axes.buffers[u.buffer].name
                for u in cut.reads
                if self.axes.buffers[u.buffer].maker is not None
                and (self.readers(u.buffer) == 1 or random.random() < 0.5)
                and self.axes.buffers[u.buffer].sides == self.axes.buffers[cut.writes.buffer].sides
                and all(a in (b, ALL) for a, b in zip(along(u), cut.writes.axes, strict=True))
                and (not any(u.slides) or random.random() < 0.05)
            ]
            over = random.choice(fit) if fit else None
        return Leaf(cut.name, slices, over)

    def readers(self, buffer: int) -> int:
        if self.axes.buffers[buffer].name in self.outside:
            return 2  # it leaves as well
        return sum(use.buffer == buffer for cut in self.axes.operators for use in cut.reads)


def along(use: Use) -> list[int]:
    """For every side the axis that a use follows, or `ALL`."""
    slides = use.slides or (None,) * len(use.axes)
    return [a if w is None else w.axis for a, w in zip(use.axes, slides, strict=True)]


def _names(item: Loop | Leaf) -> list[str]:
    if isinstance(item, Leaf):
        return [item.operator]
    return [name for inner in item.body for name in _names(inner)]


def random_nest(random: Random, axes: GroupAxes, outside: dict[str, bool]) -> Nest:
    """A nest that may be legal: loops go over one axis of each operator in them, mostly a linked one.

    `outside` are the buffers that may be kept, each with whether it leaves the group.
    """
    ops = list(range(len(axes.operators)))
    if random.random() < 0.1:
        random.shuffle(ops)
    grower = Grower(random, axes, outside)
    if any(any(use.slides) for cut in axes.operators for use in cut.reads):
        grower.tries = random.choice((1, 4, 8))
    keep = grower.keep(ops, frozenset())
    return Nest(grower.body(ops, {}, 0, frozenset(keep)), keep)


def random_whole(random: Random, tensors: Sequence[int]) -> frozenset[int]:
    """Some operands that lie whole on chip."""
    return frozenset(t for t in tensors if random.random() < random.choice((0.0, 0.0, 0.3)))


def group_of(network: Network, nest: Nest, scratch: int = 0) -> Group:
    """The group of all operators of a network in a nest."""
    return Group("g", tuple(op.name for op in network.operators), scratch, tiling=nest)
