"""Small changes of a nest: other tiles, other homes, a loop more, a loop less, two loops the other way round.

None of them is proved legal here: the checker says so of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from onchip.machines.tile_rates import TileRates
from onchip.network.axes import GroupAxes
from onchip.plans import Leaf, Loop, Nest

__all__ = ["Moves"]

Where = tuple[int, ...]
Body = tuple[Loop | Leaf, ...]


class Moves:
    """The changes of nests of one group, in random order."""

    def __init__(self, axes: GroupAxes, tiles: TileRates, random: Random) -> None:
        self.random = random
        self.sizes = {cut.name: cut.axes for cut in axes.operators}
        self.classes = _classes(axes)
        self.uses = {cut.name: {axes.buffers[use.buffer].name for use in cut.uses} for cut in axes.operators}
        self.grain = sorted({side.size for side in tiles.sides} | {64})

    def one(self, nest: Nest) -> Nest | None:
        """Return the nest with one change; None if the one that was drawn cannot be made."""
        loops = list(_loops(nest.body, ()))
        draw = self.random.random()
        if draw < 0.55 and loops:
            return self.retiled(nest, *self.random.choice(loops))
        if draw < 0.75:
            return self.moved(nest)
        if draw < 0.87:
            return self.inserted(nest)
        if draw < 0.94 and loops:
            return self.removed(nest, self.random.choice(loops)[0])
        return self.swapped(nest, *self.random.choice(loops)) if loops else None

    def several(self, nest: Nest) -> Nest | None:
        """Return the nest with one change or two."""
        found = self.one(nest)
        if found is not None and self.random.random() < 0.35:
            return self.one(found) or found
        return found

    # -- each ----------------------------------------------------------------------------------------------

    def retiled(self, nest: Nest, where: Where, loop: Loop) -> Nest | None:
        name, axis = loop.over[0]
        size, tile = self.sizes[name][axis], loop.tile
        turns = -(-size // tile)
        grain = self.random.choice(self.grain)
        options = {
            2 * tile, tile // 2, tile * 3 // 2, tile * 2 // 3, tile + 1, tile - 1, tile * 5 // 4,
            tile * 4 // 5,
            -(-size // (turns + 1)), -(-size // max(turns - 1, 1)), -(-size // turns),
            tile // grain * grain, -(-tile // grain) * grain, tile // grain * grain + grain,
            tile // grain * grain - grain,
        }  # fmt: skip
        fit = sorted(t for t in options if 1 <= t < size and t != tile)
        if not fit:
            return None
        chosen = self.random.choice(fit)
        return replace(nest, body=_changed(nest.body, where, lambda one: (replace(one, tile=chosen),)))

    def moved(self, nest: Nest) -> Nest | None:
        """Return the nest with a name kept by the body around, or by one inside."""
        kept = [(w, name) for w, names in _kept(nest, ()) for name in names]
        if not kept:
            return None
        where, name = self.random.choice(kept)
        if where and self.random.random() < 0.5:
            target = [where[:-1]]
        else:
            inner = _body_at(nest, where)
            target = [
                (*where, n)
                for n, item in enumerate(inner)
                if isinstance(item, Loop) and any(name in self.uses[op] for op, _ in item.over)
            ]
        if not target:
            return None
        without = _with_keep(nest, where, lambda keep: tuple(k for k in keep if k != name))
        for to in target:
            without = _with_keep(without, to, lambda keep: keep if name in keep else (*keep, name))
        return without

    def inserted(self, nest: Nest) -> Nest | None:
        """Return the nest with a loop around some items of a body."""
        bodies = [where for where, _ in _kept(nest, ())]
        where = self.random.choice(bodies)
        items = _body_at(nest, where)
        first = self.random.randrange(len(items))
        behind = self.random.randint(first + 1, len(items))
        if self.random.random() < 0.4:
            first, behind = 0, len(items)
        inside = [op for item in items[first:behind] for op in _operators(item)]
        over = []
        shared = self.random.choice(self.classes)
        for op in inside:
            axes = [axis for name, axis in shared if name == op]
            if len(axes) != 1:
                return None
            over.append((op, axes[0]))
        size = self.sizes[over[0][0]][over[0][1]]
        if size < 2:
            return None
        tile = -(-size // self.random.choice((2, 2, 3, 4, 6, 8, 12, 16, 32)))
        around = [name for w, names in _kept(nest, ()) if w == where for name in names]
        used = {name for op in inside for name in self.uses[op]}
        rest = {
            name
            for item in (*items[:first], *items[behind:])
            for op in _operators(item)
            for name in self.uses[op]
        }
        own = tuple(
            name for name in around if name in used and name not in rest and self.random.random() < 0.6
        )
        loop = Loop(tuple(over), tile, items[first:behind], own)
        made = _with_body(nest, where, (*items[:first], loop, *items[behind:]))
        return _with_keep(made, where, lambda keep: tuple(k for k in keep if k not in own))

    def removed(self, nest: Nest, where: Where) -> Nest:
        """Return the nest without a loop: the body around keeps what it kept."""
        loop = _at(nest, where)
        assert isinstance(loop, Loop)
        made = replace(nest, body=_changed(nest.body, where, lambda one: one.body))
        return _with_keep(made, where[:-1], lambda keep: (*keep, *(k for k in loop.keep if k not in keep)))

    def swapped(self, nest: Nest, where: Where, loop: Loop) -> Nest | None:
        """Return the nest with a loop and the only one inside it the other way round."""
        if len(loop.body) != 1 or not isinstance(loop.body[0], Loop):
            return None
        inner = loop.body[0]
        outer = replace(inner, body=(replace(loop, body=inner.body, keep=inner.keep),), keep=loop.keep)
        return replace(nest, body=_changed(nest.body, where, lambda _: (outer,)))


def _classes(axes: GroupAxes) -> list[list[tuple[str, int]]]:
    """Return the axes of operators that go along the same sides of the tensors they share."""
    parent: dict[tuple[str, int], tuple[str, int]] = {}

    def root(one: tuple[str, int]) -> tuple[str, int]:
        while parent.setdefault(one, one) != one:
            one = parent[one]
        return one

    sides: dict[tuple[int, int], tuple[str, int]] = {}
    for cut in axes.operators:
        for axis, size in enumerate(cut.axes):
            if size > 1 and axis not in cut.together:
                root((cut.name, axis))
        for use in cut.uses:
            for side, axis in enumerate(use.axes):
                if axis >= 0 and (cut.name, axis) in parent:
                    other = sides.setdefault((use.buffer, side), (cut.name, axis))
                    parent[root((cut.name, axis))] = root(other)
    found: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for one in sorted(parent):
        found.setdefault(root(one), []).append(one)
    return list(found.values())


def _operators(item: Loop | Leaf) -> Sequence[str]:
    return [item.operator] if isinstance(item, Leaf) else [name for name, _ in item.over]


def _loops(body: Body, where: Where) -> Iterator[tuple[Where, Loop]]:
    for n, item in enumerate(body):
        if isinstance(item, Loop):
            yield (*where, n), item
            yield from _loops(item.body, (*where, n))


def _kept(nest: Nest | Loop, where: Where) -> Iterator[tuple[Where, tuple[str, ...]]]:
    yield where, nest.keep
    for n, item in enumerate(nest.body):
        if isinstance(item, Loop):
            yield from _kept(item, (*where, n))


def _at(nest: Nest, where: Where) -> Nest | Loop:
    found: Nest | Loop = nest
    for n in where:
        inner = found.body[n]
        assert isinstance(inner, Loop)
        found = inner
    return found


def _body_at(nest: Nest, where: Where) -> Body:
    return _at(nest, where).body


def _changed(body: Body, where: Where, change: object) -> Body:
    at, *rest = where
    item = body[at]
    assert isinstance(item, Loop)
    new = (replace(item, body=_changed(item.body, tuple(rest), change)),) if rest else change(item)  # type: ignore[operator]
    return (*body[:at], *new, *body[at + 1 :])


def _with_body(nest: Nest, where: Where, body: Body) -> Nest:
    if not where:
        return replace(nest, body=body)
    return replace(nest, body=_changed(nest.body, where, lambda one: (replace(one, body=body),)))


def _with_keep(nest: Nest, where: Where, change: object) -> Nest:
    if not where:
        return replace(nest, keep=change(nest.keep))  # type: ignore[operator]
    return replace(
        nest,
        body=_changed(nest.body, where, lambda one: (replace(one, keep=change(one.keep)),)),  # type: ignore[operator]
    )
