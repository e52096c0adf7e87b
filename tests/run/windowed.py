"""Random nests along windows: over a side of the last operators, and what those need of it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from onchip.network.axes import ALL, GroupAxes, Use
from onchip.plans import Leaf, Loop, Nest

__all__ = ["windowed_nest"]


def windowed_nest(random: Random, axes: GroupAxes, leaving: frozenset[str], deep: int = 2) -> Nest:
    """Draw a nest; the law may refuse it."""
    return _Draw(random, axes, leaving).nest(deep)


class _Draw:
    def __init__(self, random: Random, axes: GroupAxes, leaving: frozenset[str]) -> None:
        self.random, self.axes, self.leaving = random, axes, leaving
        self.names = [cut.name for cut in axes.operators]

    def nest(self, deep: int) -> Nest:
        keep = self.keep(range(len(self.names)), frozenset())
        return Nest(self.body(range(len(self.names)), deep, frozenset(keep), []), keep)

    def body(
        self, ops: range, deep: int, kept: frozenset[str], above: list[dict[int, int]]
    ) -> tuple[Loop | Leaf, ...]:
        items: list[Loop | Leaf] = []
        at = ops.start
        while at < ops.stop:
            end = self.random.choice((ops.stop, self.random.randint(at + 1, ops.stop)))
            inside = range(at, end)
            over = self.over(inside, above) if deep and self.random.random() < 0.9 else None
            if over is None:
                items.append(self.leaf(at, above))
                at += 1
                continue
            keep = self.keep(inside, kept)
            body = self.body(inside, deep - 1, kept | set(keep), [*above, over])
            tile = self.random.randint(1, max(1, self.axes.operators[end - 1].axes[over[end - 1]] // 2))
            named = tuple((self.names[o], axis) for o, axis in over.items())
            items.append(Loop(named, tile, body, keep, self.rings(inside, body, keep)))
            at = end
        return tuple(items)

    def over(self, ops: range, above: Sequence[dict[int, int]]) -> dict[int, int] | None:
        """Draw an axis of the last operators, and find those of the others by what reads them."""
        found: dict[int, int] = {}
        for o in reversed(ops):
            cut = self.axes.operators[o]
            taken = {over[o] for over in above if o in over} | cut.together
            wanted = {
                side
                for r, axis in found.items()
                for use in self.axes.operators[r].reads
                if use.buffer == cut.writes.buffer
                for side in _followed(use, axis)
            }
            sides = wanted or {
                side for side, axis in enumerate(cut.writes.axes) if axis not in taken and cut.axes[axis] > 1
            }
            if not sides or cut.writes.axes[side := self.random.choice(sorted(sides))] in taken | {ALL}:
                return None
            found[o] = cut.writes.axes[side]
        return dict(sorted(found.items()))

    def leaf(self, o: int, above: Sequence[dict[int, int]]) -> Leaf:
        cut = self.axes.operators[o]
        free = [axis for axis in range(len(cut.axes)) if axis not in cut.together and cut.axes[axis] > 1]
        chosen = self.random.sample(free, self.random.randint(0, min(2, len(free))))
        return Leaf(cut.name, tuple((axis, self.random.randint(1, cut.axes[axis])) for axis in chosen))

    def keep(self, inside: Sequence[int], kept: frozenset[str]) -> tuple[str, ...]:
        found = []
        for b, buffer in enumerate(self.axes.buffers):
            users = {o for o, cut in enumerate(self.axes.operators) if any(u.buffer == b for u in cut.uses)}
            outside = buffer.maker is None and users & set(inside)
            made = buffer.maker is not None and buffer.model_name in self.leaving and users <= set(inside)
            if (outside or made) and buffer.name not in kept and self.random.random() < 0.4:
                found.append(buffer.name)
        return tuple(dict.fromkeys(found))

    def rings(
        self, inside: Sequence[int], body: Sequence[Loop | Leaf], keep: Sequence[str]
    ) -> tuple[str, ...]:
        """Draw some of the buffers at home in a body: kept there, or used by different items of it."""
        items = [_names(item) for item in body]
        home = set(keep)
        for b, buffer in enumerate(self.axes.buffers):
            users = {o for o, cut in enumerate(self.axes.operators) if any(u.buffer == b for u in cut.uses)}
            apart = {n for n, names in enumerate(items) for o in users if self.names[o] in names}
            if buffer.maker is not None and users <= set(inside) and len(apart) > 1:
                home.add(buffer.name)
        return tuple(name for name in sorted(home) if self.random.random() < 0.5)


def _followed(use: Use, axis: int) -> set[int]:
    found = {side for side, a in enumerate(use.axes) if a == axis}
    return found | {side for side, w in enumerate(use.slides) if w is not None and w.axis == axis}


def _names(item: Loop | Leaf) -> set[str]:
    return {item.operator} if isinstance(item, Leaf) else {name for name, _ in item.over}
