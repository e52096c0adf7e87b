"""The tree of a nest as it runs: levels of items, and the homes of buffers that begin and end among them.

A level is the body of a loop, the root, or a leaf; below a leaf its slices are loops of one item each. A home
is the level where a buffer is filled before the first item that uses it and given back after the last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from onchip.network.axes import ALL, GroupAxes, Use
from onchip.plans.nest import Leaf, Loop, Nest
from onchip.run.tiled.executed import IllegalTiling
from onchip.run.tiled.nests.forms import Span
from onchip.run.tiled.nests.levels import Beside, Compute, Home, Level, Turns, UseKey
from onchip.run.tiled.nests.windows import Held, windows_of

__all__ = ["Tree"]


class Tree:
    """The levels of a nest over the axes of its group. Raises `IllegalTiling` for one that cannot run.

    `whole` are buffers that lie in ranges of their own. Partial sums take `accumulator` bytes, if that is
    more than an element.
    """

    def __init__(
        self,
        nest: Nest,
        axes: GroupAxes,
        leaving: Collection[int],
        whole: Collection[int],
        accumulator: int | None = None,
    ) -> None:
        self.axes, self.leaving, self.whole = axes, leaving, whole
        self.number = {cut.name: i for i, cut in enumerate(axes.operators)}
        self.bottom: dict[int, Level] = {}
        """The level in which an operator computes."""
        self.leaf: dict[int, Level] = {}
        """The level of its leaf, above its slices."""
        self.last: dict[tuple[int, int], Turns] = {}
        self.computes: dict[int, Compute] = {}
        self.slices: dict[int, Leaf] = {}
        self.sharing: dict[int, tuple[int, ...]] = {}
        """The buffers that lie in the place of one, itself the last."""
        self.loops: list[Turns] = []
        self.count = 0
        self.root = Level((), (), frozenset(nest.keep), copies=dict(nest.ways.copies))
        self.root.path = (self.root,)
        self.fill(self.root, nest.body)
        if len(self.leaf) != len(self.number):
            missing = next(name for name, i in self.number.items() if i not in self.leaf)
            raise IllegalTiling("nest-operators", f"its nest does not run {missing}")
        self.homes = [self._home(n, *found) for n, found in enumerate(self._homes())]
        for turns in self.loops:
            self._slide(turns)
        for home in self.homes:
            self._cut(home)
        for o, compute in self.computes.items():
            above = [t for t in self.bottom[o].above if o in t.over]
            compute.cut = frozenset(t.over[o] for t in above if t.windows or t.most(o) < t.sizes[o])
        self._attach()
        self.beside = [made for o in self.computes for made in self._sums(o, accumulator or 0)]
        for made in self.beside:
            made.level.beside.setdefault(made.item, []).append(made)

    # -- levels ----------------------------------------------------------------------------------------------

    def fill(self, level: Level, body: Sequence[Loop | Leaf]) -> None:
        """Add the items of a body to its level."""
        level.start = self.count
        for item in body:
            before = set(self.leaf)
            level.items.append(self.loop(level, item) if isinstance(item, Loop) else self.run(level, item))
            level.inside.append(set(self.leaf) - before)
        level.stop = self.count

    def below(self, level: Level, turns: Turns | None, keep: Collection[str]) -> Level:
        """Return a new level in another one, in a loop of it if `turns` is one."""
        above = level.above if turns is None else (*level.above, turns)
        made = Level(above, (), frozenset(keep))
        made.path = (*level.path, made)
        return made

    def turns(
        self,
        level: Level,
        over: dict[int, int],
        tile: int,
        keep: Collection[str],
        ring: tuple[str, ...] = (),
    ) -> Turns:
        """Return a loop in a level; it continues the loop around it over the same axes."""
        sizes, outer = dict[int, int](), set()
        for o, axis in over.items():
            cut = self.axes.operators[o]
            if not 0 <= axis < len(cut.axes):
                raise IllegalTiling("nest-axis", f"{cut.name} has no axis {axis}")
            sizes[o] = cut.axes[axis]
            outer.add(self.last.get((o, axis)))
        if len(outer) != 1 or tile < 1:
            raise IllegalTiling(
                "nest-axis", "a loop goes over axes that others cut differently, or by no tile"
            )
        made = Turns(over, sizes, tile, level, outer.pop(), ring)
        made.level = self.below(level, made, keep)
        self.loops.append(made)
        return made

    def loop(self, level: Level, loop: Loop) -> Turns:
        """Return a loop with everything in it."""
        unknown = next((name for name, _ in loop.over if name not in self.number), None)
        if unknown is not None or not loop.over:
            raise IllegalTiling("nest-operators", f"a loop is over an axis of {unknown or 'nothing'}")
        over = {self.number[name]: axis for name, axis in loop.over}
        made = self.turns(level, over, loop.tile, loop.keep, loop.ring)
        made.level.copies = dict(loop.ways.copies)
        known = {(o, axis): self.last.get((o, axis)) for o, axis in over.items()}
        self.last |= dict.fromkeys(known, made)
        before = set(self.leaf)
        self.fill(made.level, loop.body)
        if set(self.leaf) - before != set(over):
            raise IllegalTiling("nest-operators", "a loop states no axis of an operator in it, or of others")
        for key, outer in known.items():
            if outer is None:
                del self.last[key]
            else:
                self.last[key] = outer
        return made

    def run(self, level: Level, leaf: Leaf) -> Level:
        """Return the level of a leaf, with its slices."""
        o = self.number.get(leaf.operator)
        if o is None or o in self.leaf:
            raise IllegalTiling("nest-operators", f"its nest runs {leaf.operator} twice, or it is not inside")
        made = self.below(level, None, ())
        self.leaf[o], self.slices[o] = made, leaf
        at, known = made, dict(self.last)
        for axis, tile in leaf.slices:
            turns = self.turns(at, {o: axis}, tile, ())
            self.last[o, axis] = turns
            self.place(at, turns, o)
            at = turns.level
        cut = self.axes.operators[o]
        over = None
        if leaf.over is not None:
            names = [self.axes.buffers[use.buffer].name for use in cut.reads]
            if leaf.over not in names:
                raise IllegalTiling("nest-over", f"{cut.name} does not read {leaf.over}")
            over = names.index(leaf.over)
        self.computes[o] = Compute(o, over)
        self.place(at, self.computes[o], o)
        self.bottom[o] = at
        self.last = known
        self.count += 1
        return made

    def place(self, level: Level, item: Turns | Compute, o: int) -> None:
        """Make an item the only one of a level of a leaf."""
        level.items, level.inside = [item], [{o}]
        level.start, level.stop = self.count, self.count + 1

    # -- homes -----------------------------------------------------------------------------------------------

    def use(self, key: UseKey) -> Use:
        """Return a use by its key."""
        return self.axes.operators[key[0]].uses[key[1]]

    def _homes(self) -> Iterator[tuple[tuple[int, ...], Level, list[UseKey]]]:
        """Yield the buffers of every home, its level and its uses."""
        uses: dict[int, list[UseKey]] = {}
        for o, cut in enumerate(self.axes.operators):
            for i, use in enumerate(cut.uses):
                uses.setdefault(use.buffer, []).append((o, i))
        under = self._under()
        joined: dict[int, list[int]] = {}
        for b in uses:
            joined.setdefault(_place(under, b), []).append(b)
        for b, sharing in joined.items():
            sharing = [*(x for x in sharing if x != b), b]
            self.sharing[b] = tuple(sharing)
            keys = [key for x in sharing for key in uses[x]]
            if b in self.whole:
                continue
            inner = self.axes.buffers[b].maker is not None and (
                b not in self.leaving or len(uses[b]) > 1 or len(sharing) > 1
            )
            groups: dict[tuple[Level, UseKey | None], list[UseKey]] = {}
            for key in keys:
                kept = next((x for x in self.leaf[key[0]].path[-2::-1] if self._keeps(x, b)), None)
                alone = key if kept is None and not inner else None  # private: of this use only
                if kept is None:
                    kept = self._common(keys) if inner else self._private(key)
                groups.setdefault((kept, alone), []).append(key)
            if inner and len(groups) > 1:
                raise IllegalTiling(
                    "nest-home", f"{self.axes.buffers[b].name} is kept where not all of its uses are"
                )
            for (level, _), members in groups.items():
                yield tuple(sharing), level, members

    def _keeps(self, level: Level, b: int) -> bool:
        return self.axes.buffers[b].name in level.keep

    def _under(self) -> dict[int, int]:
        """Return the buffer in whose place another one is made, by the one below."""
        found = {}
        for o, compute in self.computes.items():
            if compute.over is None:
                continue
            cut = self.axes.operators[o]
            below, above = cut.reads[compute.over], cut.writes
            one, other = self.axes.buffers[below.buffer], self.axes.buffers[above.buffer]
            alike = one.sides == other.sides and one.element == other.element
            alike = alike and all(
                a == b or (a == ALL and b in cut.together)
                for a, b in zip(below.axes, above.axes, strict=True)
            )
            outside = one.maker is None or below.buffer in self.leaving or below.buffer in found
            if not alike or outside or below.buffer in self.whole:
                raise IllegalTiling("nest-over", f"{other.name} cannot be made in the place of {one.name}")
            found[below.buffer] = above.buffer
        return found

    def _common(self, keys: Sequence[UseKey]) -> Level:
        """Return the innermost level that holds all uses, above the slices of leaves."""
        paths = [self.leaf[o].path[:-1] for o, _ in keys]
        depth = 0
        while all(len(path) > depth and path[depth] is paths[0][depth] for path in paths):
            depth += 1
        return paths[0][depth - 1]

    def _private(self, key: UseKey) -> Level:
        """Return the level of a private use: as deep in the slices as each of them cuts it."""
        o, i = key
        cut = self.axes.operators[o]
        axes = self.use(key).axes
        output = i == len(cut.uses) - 1
        level = self.leaf[o]
        for axis, _ in self.slices[o].slices:
            if axis not in axes or (output and axis in cut.together):
                break
            item = level.items[0]
            assert isinstance(item, Turns)
            level = item.level
        return level

    def _home(self, number: int, buffers: tuple[int, ...], level: Level, keys: Sequence[UseKey]) -> Home:
        name, last = self.axes.buffers[buffers[-1]].name, level.above[-1:]
        ring = last[0] if last and last[0].level is level and name in last[0].ring else None
        copies = level.copies.get(name, 1) if name in level.keep else 1
        return Home(number, buffers, level, tuple(keys), ring=ring, copies=copies)

    def _slide(self, turns: Turns) -> None:
        """Find the ranges of a loop along which windows slide, and refuse other loops over several sizes."""
        held = {
            home.number: Held(
                home.buffers,
                self.axes.buffers[home.buffers[-1]].maker,
                home.uses,
                home.ring is turns,
                home.buffers[-1] in self.leaving,
            )
            for home in self.homes
            if turns in home.level.above
        }
        order = sorted(turns.over, key=lambda o: self.leaf[o].start)
        turns.windows = windows_of(self.axes, turns.over, turns.tile, order, held, self.leaving)
        if turns.windows is None:
            if turns.outer is None and len(set(turns.sizes.values())) > 1:
                raise IllegalTiling("nest-axis", "a loop goes over axes of different sizes")
            if turns.ring:
                raise IllegalTiling("nest-keep", f"no window slides over {turns.ring[0]}, which is a ring")
            return
        if turns.outer is not None or any(t.outer is turns and len(t.over) > 1 for t in self.loops):
            raise IllegalTiling("nest-windows", "windows slide along one of several loops over an axis")
        turns.rings = [home for home in self.homes if home.ring is turns]
        if len(turns.rings) < len(turns.ring):
            raise IllegalTiling("nest-keep", "a loop has a ring that is not at home in its body")

    def _cut(self, home: Home) -> None:
        """Find the loops that cut a home's sides, and those over a sum of what it is for."""
        buffer = self.axes.buffers[home.buffers[-1]]
        sides: list[Turns | None] = [None] * len(buffer.sides)
        for turns in home.level.above:
            if turns.windows is not None:
                if home.number in turns.windows.side:
                    sides[turns.windows.side[home.number]] = turns
                    home.redone |= buffer.maker is not None and home.ring is not turns
                continue
            for side in range(len(sides)):
                if all(turns.over.get(o) == self.use((o, i)).axes[side] != ALL for o, i in home.uses):
                    sides[side] = turns
        home.sides = tuple(sides)
        if home.ring is not None and home.turning is None:
            raise IllegalTiling("nest-keep", f"a loop does not cut {buffer.name}, which is a ring of it")
        if buffer.maker is not None:
            o = buffer.maker
            cut = self.axes.operators[o]
            home.sums = tuple((o, t.over[o]) for t in home.level.above if t.over.get(o, -1) >= cut.outputs)

    def _attach(self) -> None:
        """Let every home begin before the first item that uses it, and end after the last."""
        levels = {id(level): level for o in self.bottom for level in self.bottom[o].path}
        for level in levels.values():
            level.begin = [[] for _ in level.items]
            level.end = [[] for _ in level.items]
        for home in self.homes:
            users = {o for o, _ in home.uses}
            if home.ring is not None:
                home.first, home.last = 0, len(home.level.items) - 1
                continue
            at = [i for i, inside in enumerate(home.level.inside) if inside & users]
            home.first, home.last = at[0], at[-1]
            home.level.begin[home.first].append(home)
            home.level.end[home.last].append(home)

    def _sums(self, o: int, accumulator: int) -> Iterator[Beside]:
        """Yield what lies beside an operator's output while it sums: its accumulators, where they are wider
        than its elements and its home is not as wide, and what its sums carry."""
        cut = self.axes.operators[o]
        b = cut.writes.buffer
        buffer, above = self.axes.buffers[b], self.bottom[o].above
        first = next((n for n, t in enumerate(above) if t.over[o] >= cut.outputs and _several(t, o)), None)
        if first is None:
            return
        sides: list[Turns | None] = [None] * len(buffer.sides)
        for turns in above[:first]:
            if turns.over[o] in cut.writes.axes:
                sides[cut.writes.axes.index(turns.over[o])] = turns
        turns = above[first]
        level = turns.level.path[-2]
        made = Beside(o, b, level, level.items.index(turns), tuple(sides))
        home = next((home for home in self.homes if (o, len(cut.uses) - 1) in home.uses), None)
        known = 0 if home is None else len(home.level.above)
        if cut.carries:
            if first < known:
                raise IllegalTiling("nest-carried", f"the sums of {cut.name} would cross with their state")
            shared = frozenset(n for n, axis in enumerate(cut.writes.axes) if axis in cut.across)
            yield replace(made, values=cut.carries, shared=shared)
        if accumulator <= buffer.element:
            return
        if home is not None:
            between = {t.over[o] for t in above[known:first]} & set(cut.writes.axes)
            kept = made.most(buffer.sides) != home.most(buffer.sides)
            home.wide = first < known or not (between or kept)
            if home.wide and len(home.buffers) > 1:
                other = self.axes.buffers[home.buffers[-1]].name
                raise IllegalTiling("nest-over", f"{other} is narrower than the sums of {buffer.name}")
        if home is None or not home.wide:
            yield made

    def lives(self, home: Home | Beside) -> Span:
        """Return the leaves while which a home is alive, by their order."""
        if isinstance(home, Beside):
            return _leaves(home.level, home.level.items[home.item])
        if home.copies > 1:
            return 0, self.count
        first, last = (home.level.items[at] for at in (home.first, home.last))
        return _leaves(home.level, first)[0], _leaves(home.level, last)[1]


def _place(under: Mapping[int, int], b: int) -> int:
    while b in under:
        b = under[b]
    return b


def _several(turns: Turns, o: int) -> bool:
    """Return whether an operator goes on along its axis in more than one turn of a loop."""
    if turns.windows is not None:
        return sum(low < high for low, high in turns.windows.made[o]) > 1
    return turns.tile < (turns.sizes[o] if turns.outer is None else turns.outer.most(o))


def _leaves(level: Level, item: Turns | Level | Compute) -> Span:
    if isinstance(item, Turns):
        level = item.level
    elif isinstance(item, Level):
        level = item
    return level.start, level.stop
