"""Larger tiles for a nest: fewer and larger pieces of work in the room that is there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from onchip.network.axes import ALL, GroupAxes, Use
from onchip.planners.nests.sums import Above, PartialSums
from onchip.plans.nest import Leaf, Loop, Nest, leaves

__all__ = ["Place", "places", "scratch_of", "tile_at", "widened", "with_tile"]

Place = tuple[int, ...]
"""The way to an item, by its place in every body; at a leaf, a slice of it stands behind."""


def widened(
    group: GroupAxes,
    leaving: Collection[int],
    whole: Collection[int],
    nest: Nest,
    room: int,
    *,
    alignment: int = 1,
    accumulator: int | None = None,
) -> Nest:
    """Return the nest with larger tiles, as far as its scratch fits in `room` bytes.

    The search leaves slices, and loops that no buffer is charged for, at their least tile. A loop keeps two
    turns: so the nest stays one of those that the search has judged, and its bytes stay the same. A nest of
    operators over which windows slide stays as it is. Arguments are those of `best_nest`.
    """
    if any(window is not None for op in group.operators for use in op.uses for window in use.slides):
        return nest
    return _Wide(group, leaving, whole, nest, room, alignment, accumulator).widest()


def scratch_of(
    group: GroupAxes,
    leaving: Collection[int],
    whole: Collection[int],
    nest: Nest,
    alignment: int = 1,
    accumulator: int | None = None,
) -> int:
    """Return the bytes of scratch that a nest needs: of its first turns, which hold most."""
    return _Scratch(group, leaving, whole, alignment, accumulator).of(nest)


class _Wide:
    """A nest whose tiles grow while it fits."""

    def __init__(
        self,
        group: GroupAxes,
        leaving: Collection[int],
        whole: Collection[int],
        nest: Nest,
        room: int,
        alignment: int,
        accumulator: int | None,
    ) -> None:
        self.nest, self.room = nest, room
        self.scratch = _Scratch(group, leaving, whole, alignment, accumulator)
        self.scratch.of(nest)
        self.sizes = {op.name: op.axes for op in group.operators}

    def widest(self) -> Nest:
        """Return the nest with tiles doubled while that fits, then as large as they can be between.

        A tile that may not grow seldom may after others have grown: where a sum becomes whole, and its parts
        take no more scratch. So all are tried again once none of those that grew before may.
        """
        every = list(places(self.nest.body))
        for step in (self.double, self.fill):
            while growing := [place for place in every if step(place)]:
                while growing := [place for place in growing if step(place)]:
                    pass
        return self.nest

    def tile(self, place: Place) -> tuple[int, int]:
        """The tile at a place, and the largest that it may have."""
        tile, size, of_loop = tile_at(self.nest, self.sizes, place)
        return tile, -(-size // 2) if of_loop else size

    def attempt(self, place: Place, tile: int) -> bool:
        nest = replace(self.nest, body=with_tile(self.nest.body, place, tile))
        if self.scratch.again(nest) > self.room:
            return False
        self.nest = nest
        return True

    def double(self, place: Place) -> bool:
        tile, size = self.tile(place)
        return tile < size and self.attempt(place, min(2 * tile, size))

    def fill(self, place: Place) -> bool:
        """Take the largest tile that fits, between the present one and its double."""
        tile, size = self.tile(place)
        low, high = tile, min(2 * tile, size)
        if low >= high or not self.attempt(place, low + 1):
            return False
        low += 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.attempt(place, middle):
                low = middle
            else:
                high = middle - 1
        return True


def places(items: Sequence[Loop | Leaf], above: Place = ()) -> Iterator[Place]:
    """Yield the place of every loop and of every slice of a leaf, inner slices first."""
    for i, item in enumerate(items):
        if isinstance(item, Leaf):
            yield from ((*above, i, n) for n in reversed(range(len(item.slices))))
        else:
            yield (*above, i)
            yield from places(item.body, (*above, i))


def tile_at(nest: Nest, sizes: Mapping[str, Sequence[int]], place: Place) -> tuple[int, int, bool]:
    """Return the tile at a place, the size of its axis, and whether it is a loop's; `sizes` are those of
    every operator's axes."""
    items, item = nest.body, None
    for i in place:
        if isinstance(item, Leaf):
            axis, tile = item.slices[i]
            return tile, sizes[item.operator][axis], False
        item = items[i]
        items = item.body if isinstance(item, Loop) else ()
    assert isinstance(item, Loop)
    name, axis = item.over[0]
    return item.tile, sizes[name][axis], True


def with_tile(items: tuple[Loop | Leaf, ...], place: Place, tile: int) -> tuple[Loop | Leaf, ...]:
    """Return a body with another tile at a place."""
    at, *rest = place
    item = items[at]
    new: Loop | Leaf
    if isinstance(item, Leaf):
        slices = list(item.slices)
        slices[rest[0]] = (slices[rest[0]][0], tile)
        new = replace(item, slices=tuple(slices))
    elif rest:
        new = replace(item, body=with_tile(item.body, tuple(rest), tile))
    else:
        new = replace(item, tile=tile)
    return (*items[:at], new, *items[at + 1 :])


@dataclass(frozen=True, slots=True)
class _Home:
    """A buffer that a body keeps for some uses, from its first item that has one to its last."""

    buffer: int
    uses: tuple[tuple[int, Use], ...]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Body:
    """A body whatever its tiles: what it keeps, the axes of its loops by operator, all kept inside."""

    homes: tuple[_Home, ...]
    over: tuple[dict[int, int], ...]
    kept: frozenset[int]


class _Scratch:
    """The scratch of nests of one group, by the sizes of first tiles."""

    def __init__(
        self,
        group: GroupAxes,
        leaving: Collection[int],
        whole: Collection[int],
        alignment: int,
        accumulator: int | None,
    ) -> None:
        self.group, self.alignment, self.whole = group, alignment, whole
        self.sums = PartialSums(group, accumulator)
        self.place = {op.name: i for i, op in enumerate(group.operators)}
        self.uses: dict[int, list[tuple[int, Use]]] = {}
        for at, op in enumerate(group.operators):
            for use in op.uses:
                if use.buffer not in whole:
                    self.uses.setdefault(use.buffer, []).append((at, use))
        self.inner = {
            b
            for b, uses in self.uses.items()
            if group.buffers[b].maker is not None and len(uses) > 1 and b not in leaving
        }

    def of(self, nest: Nest) -> int:
        """Return the bytes that a nest needs."""
        self.place_guests(nest)
        self.bodies: dict[Place, _Body] = {}
        return self.again(nest)

    def again(self, nest: Nest) -> int:
        """Return the bytes that a nest needs which differs from the last one in tiles alone."""
        self.sums.follow(nest)
        self.homed = dict.fromkeys(self.whole, 0)
        return self.body(nest.body, nest.keep, (), (), frozenset())

    def place_guests(self, nest: Nest) -> None:
        """Find what lies in the place of an output, and for how long that is taken then."""
        self.also: dict[int, list[tuple[int, Use]]] = {}
        self.gone: set[int] = set()
        self.host = host = dict[int, int]()
        for _, leaf in reversed(list(leaves(nest.body))):
            if leaf.over is None:
                continue
            op = self.group.operators[self.place[leaf.operator]]
            operand = next(use.buffer for use in op.reads if self.group.buffers[use.buffer].name == leaf.over)
            host[operand] = host.get(op.writes.buffer, op.writes.buffer)
            self.also.setdefault(host[operand], []).extend(self.uses[operand])
            self.gone.add(operand)

    def tile(self, buffer: int, uses: Sequence[tuple[int, Use]], above: Above, *, wide: bool = False) -> int:
        """The bytes of the part that the loops above leave."""
        width = self.sums.wide(buffer) if wide else self.group.buffers[buffer].element
        return self.rounded(prod(self.sides(buffer, uses, above)) * width)

    def rounded(self, size: int) -> int:
        return -(-size // self.alignment) * self.alignment

    def sides(self, buffer: int, uses: Sequence[tuple[int, Use]], above: Above) -> list[int]:
        """The sizes of the part that the loops above leave: a side is cut if all uses cut it alike."""
        sides = list(self.group.buffers[buffer].sides)
        for s in range(len(sides)):
            for over, tile in above:
                if all(use.axes[s] != ALL and over.get(at) == use.axes[s] for at, use in uses):
                    sides[s] = min(sides[s], tile)
        return sides

    def wide(self, buffer: int, deep: int) -> bool:
        """True if a buffer inside so many loops is as wide as its sums."""
        return self.sums.all_of(buffer, deep)

    def accumulators(self, at: int, deep: int, above: Above) -> int:
        """The bytes beside an operator's output that live as long as loop number `deep` around it: its
        accumulators, and what its sums carry."""
        op = self.group.operators[at]
        use, total = op.writes, 0
        place = self.host.get(use.buffer, use.buffer)
        if place not in self.homed or self.sums.first(use.buffer) != deep:
            return 0
        if self.sums.widens(use.buffer) and (
            place in self.whole or not self.wide(use.buffer, self.homed[place])
        ):
            total = self.tile(use.buffer, [(at, use)], above, wide=True)
        if op.carries:
            sides = self.sides(use.buffer, [(at, use)], above)
            rows = prod(n for n, axis in zip(sides, use.axes, strict=True) if axis not in op.across)
            total += self.rounded(rows * op.carries * self.sums.wide(use.buffer))
        return total

    def body(
        self,
        items: Sequence[Loop | Leaf],
        keep: Sequence[str],
        where: Place,
        above: Above,
        kept: frozenset[int],
    ) -> int:
        here = self.bodies.get(where)
        if here is None:
            here = self.bodies[where] = self.kept_in(items, keep, kept)
        deep = len(above)
        sizes = []
        for one in here.homes:
            self.homed[one.buffer] = deep
            sizes.append(self.tile(one.buffer, one.uses, above, wide=self.wide(one.buffer, deep)))
        most = 0
        for i, item in enumerate(items):
            if isinstance(item, Leaf):
                below = self.leaf(item, above, here.kept)
            else:
                over = here.over[i]
                below = self.body(item.body, item.keep, (*where, i), (*above, (over, item.tile)), here.kept)
                below += sum(self.accumulators(op, deep, above) for op in over)
            for one, size in zip(here.homes, sizes, strict=True):
                if one.first <= i <= one.last:
                    below += size
            most = max(most, below)
        return most

    def kept_in(self, items: Sequence[Loop | Leaf], keep: Sequence[str], kept: frozenset[int]) -> _Body:
        """Return what a body keeps, of what those around it do not."""
        inside = [_members(item, self.place) for item in items]
        homes = []
        for b, all_uses in self.uses.items():
            if b in kept or b in self.gone:
                continue
            at = [i for i, part in enumerate(inside) if any(op in part for op, _ in all_uses)]
            if b in self.inner:
                within = any(all(op in inside[i] for op, _ in all_uses) for i in at)
                if not at or within or not all(any(op in inside[i] for i in at) for op, _ in all_uses):
                    continue
            elif self.group.buffers[b].name not in keep:
                continue
            uses = tuple([(op, use) for op, use in all_uses if any(op in inside[i] for i in at)])
            also = self.also.get(b, ())
            at += [i for i, part in enumerate(inside) if any(op in part for op, _ in also)]
            homes.append(_Home(b, uses, min(at), max(at)))
        over = [
            {} if isinstance(item, Leaf) else {self.place[name]: axis for name, axis in item.over}
            for item in items
        ]
        return _Body(tuple(homes), tuple(over), kept | {one.buffer for one in homes})

    def leaf(self, leaf: Leaf, above: Above, kept: frozenset[int]) -> int:
        at = self.place[leaf.operator]
        total = 0
        for use in self.group.operators[at].uses:
            if use.buffer in kept or use.buffer in self.gone or use.buffer not in self.uses:
                continue
            path = above
            for axis, tile in leaf.slices:
                if axis not in use.axes:
                    break
                path = (*path, ({at: axis}, tile))
            self.homed[use.buffer] = len(path)
            total += self.tile(use.buffer, [(at, use)], path, wide=self.wide(use.buffer, len(path)))
        path = above
        for axis, tile in leaf.slices:
            total += self.accumulators(at, len(path), path)
            path = (*path, ({at: axis}, tile))
        return total


def _members(item: Loop | Leaf, place: Mapping[str, int]) -> frozenset[int]:
    if isinstance(item, Leaf):
        return frozenset((place[item.operator],))
    return frozenset(place[name] for name, _ in item.over)
