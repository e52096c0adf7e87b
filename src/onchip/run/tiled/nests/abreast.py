"""The loops whose turns may run side by side, and how many of them do so at once.

Turns run abreast where the order in which they run cannot be seen: none reads what another one makes. A loop
along which windows slide is not such a loop, nor is one that spills sums, nor one that an operator in it sees
otherwise than the maker of what it reads. All these run turn by turn, so that a nest that reads too early is
found out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from types import MappingProxyType

from onchip.network.axes import GroupAxes
from onchip.run.tiled.nests.forms import Span
from onchip.run.tiled.nests.levels import Home, Level, Turns, UseKey
from onchip.run.tiled.nests.tree import Tree

__all__ = ["ABREAST_BYTES", "FEW", "WITNESSES", "Abreast"]

ABREAST_BYTES = 1 << 26
"""The most bytes that turns abreast may have, all together."""

FEW = 64
"""A loop that computes no more boxes than these runs them one by one."""

WITNESSES = 2
"""The number of times that a loop begins with turns that run one by one."""


class Abreast:
    """The loops of a nest that run abreast, and those that do now; `scale` stretches planned bytes.

    `under` are whole inputs that lie, element by element, where an output does: what writes there is seen by
    what reads them. With `ordered` every turn of every loop runs by itself, and always those of loops around
    the operators `alone` or around sums that have accumulators wider than their elements.
    """

    def __init__(
        self,
        tree: Tree,
        axes: GroupAxes,
        scale: int,
        *,
        ordered: bool,
        alone: Collection[int] = (),
        under: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self.tree, self.axes = tree, axes
        apart = {*alone, *_accumulating(tree)}
        home = {key: home for home in tree.homes for key in home.uses}
        self.may = {
            turns: not ordered and apart.isdisjoint(turns.over) and _may(tree, axes, turns, home, under)
            for turns in tree.loops
        }
        self.count = {turns: _count(turns) for turns in tree.loops}
        self.computes = {turns: self.count[turns] * self._boxes(turns.level) for turns in tree.loops}
        self.begun = dict.fromkeys(tree.loops, 0)
        self.now: list[tuple[Turns, int]] = []
        """The loops of which several turns run now, outermost first, and how many."""
        self.bytes = dict.fromkeys(tree.loops, 0)
        """Of one turn, all of whose inner loops that may run abreast do."""
        for place in tree.homes:
            sizes = axes.buffers[place.buffers[-1]].sides
            size = prod(place.most(sizes)) * axes.buffers[place.buffers[-1]].element * scale
            cut = _cutting(place)
            for turns in reversed(place.level.above):
                if turns in cut:
                    self.bytes[turns] += size
                    size *= self.count[turns] if self.may[turns] else 1

    def _boxes(self, level: Level) -> int:
        found = 0
        for item in level.items:
            if isinstance(item, Turns):
                found += self.count[item] * self._boxes(item.level)
            else:
                found += self._boxes(item) if isinstance(item, Level) else 1
        return found

    def parts(self, turns: Turns, span: Span) -> Iterator[tuple[Span, int]]:
        """Yield the parts of a loop's range that run one after the other, and the turns in each."""
        low, high = span
        tile, count = turns.tile, -(-(high - low) // turns.tile)
        first, last = low, low + count * tile
        alone = not self.now and self.begun[turns] < WITNESSES
        self.begun[turns] += alone
        if not self.may[turns] or (alone and self.computes[turns] <= FEW):
            most = 1
        else:
            around = prod(count for _, count in self.now)
            most = max(1, ABREAST_BYTES // max(1, self.bytes[turns] * around))
            if alone and count > 1:
                yield (low, low + tile), 1
                first = low + tile
                last -= tile if last > high else 0
        for at in range(first, last, most * tile):
            end = min(at + most * tile, last)
            yield (at, min(end, high)), (end - at) // tile
        if last < low + count * tile:
            yield (last, high), 1

    @contextmanager
    def side_by_side(self, turns: Turns, count: int) -> Iterator[None]:
        """Let `count` turns of a loop run as one."""
        if count == 1:
            yield
            return
        self.now.append((turns, count))
        try:
            yield
        finally:
            self.now.pop()

    def turns_of(self, home: Home, *, apart: bool = False, sums: Collection[int] = ()) -> int:
        """Return the number of turns that run as one around a home: with `apart` of loops that do not cut it.

        Those of loops over the axes `sums` of the operator that alone uses it do not count.

        A loop that goes on with the axes of one around it has all of that one's turns among its own.
        """
        if not self.now:
            return 1
        above = home.level.above
        without = {outer for turns in above for outer in _around(turns)}
        if apart:
            without |= _cutting(home)
        if sums:
            [(o, _), *_] = home.uses
            without |= {turns for turns in above if turns.over.get(o) in sums}
        return prod(count for turns, count in self.now if turns in above and turns not in without)


def _accumulating(tree: Tree) -> set[int]:
    """Return the operators whose sums have accumulators, in the place of their elements or beside them."""
    found = {o for home in tree.homes if home.wide for o, _ in home.uses}
    levels = {level for bottom in tree.bottom.values() for level in bottom.path}
    return found | {sums.operator for level in levels for all_ in level.beside.values() for sums in all_}


def _around(turns: Turns) -> Iterator[Turns]:
    """Yield the loops around one over the same axes."""
    while turns.outer is not None:
        turns = turns.outer
        yield turns


def _cutting(home: Home) -> set[Turns]:
    """Return the loops that cut a home, each with those around it over the same axes."""
    return {turns for side in home.sides if side is not None for turns in (side, *_around(side))}


def _count(turns: Turns) -> int:
    """Return the most turns of a loop."""
    if turns.windows is not None:
        return turns.windows.turns
    o = next(iter(turns.over))
    size = turns.sizes[o] if turns.outer is None else turns.outer.most(o)
    return max(1, -(-size // turns.tile))


def _may(
    tree: Tree, axes: GroupAxes, turns: Turns, homes: Mapping[UseKey, Home], under: Mapping[int, int]
) -> bool:
    if turns.windows is not None:
        return False
    if any(turns in _around(inner) and turns.tile % inner.tile for inner in tree.loops):
        return False  # its turns would not end where those inside do
    made: dict[int, list[UseKey]] = {}
    for o, axis in turns.over.items():
        cut = axes.operators[o]
        home = homes.get((o, len(cut.uses) - 1))
        inside = home is not None and turns in home.level.above
        if inside if axis >= cut.outputs else axis not in cut.writes.axes:
            return False  # a sum that is spilled, or the same box in every turn
        made[_place(tree, cut.writes.buffer)] = []
    for o in turns.over:
        for i, use in enumerate(axes.operators[o].uses):
            if (place := _place(tree, under.get(use.buffer, use.buffer))) in made:
                made[place].append((o, i))
    return all(_alike(tree, turns, keys) for keys in made.values())


def _place(tree: Tree, b: int) -> int:
    """Return the buffer in whose place another one lies."""
    return next(place for place, sharing in tree.sharing.items() if b in sharing)


def _alike(tree: Tree, turns: Turns, keys: list[UseKey]) -> bool:
    """Return whether a loop cuts all uses of what is made in it along one side."""
    if len(keys) == 1:
        return True
    uses = [(turns.over[o], tree.use((o, i)).axes) for o, i in keys]
    return any(all(side[at] == axis for axis, side in uses) for at in range(len(uses[0][1])))
