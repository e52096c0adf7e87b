"""A nest with every slice as a loop, and every buffer kept by name: so that each can have copies.

A buffer that no body keeps has no copies. A slice of a leaf is a loop with that leaf alone inside, and what
lives within some of the slices is kept in the body of the last of these.
"""

from __future__ import annotations

from dataclasses import replace

from onchip.check.nests import Layout
from onchip.plans import Leaf, Loop, Nest, Ways

__all__ = ["bare", "spelled"]

Where = tuple[int, ...]


def spelled(nest: Nest, layout: Layout) -> Nest:
    """Return the nest of a layout without slices, each buffer that moves kept by a body if it can be.

    It cannot where another leaf of that body uses the same tensor for itself: they would share it.
    """
    spell = _Spell(layout)
    body, kept = spell.items(nest.body, (), nest.keep)
    return replace(nest, body=body, keep=(*nest.keep, *kept))


def bare(nest: Nest) -> Nest:
    """Return the nest without copies, channels and sides of the array."""

    def item(one: Loop | Leaf) -> Loop | Leaf:
        if isinstance(one, Leaf):
            return replace(one, array=())
        return replace(one, body=tuple(map(item, one.body)), ways=Ways())

    return replace(nest, body=tuple(map(item, nest.body)), ways=Ways(), beside=False)


class _Spell:
    """The private buffers of every leaf, by the number of its slices around them."""

    def __init__(self, layout: Layout) -> None:
        axes = layout.axes
        self.private: dict[Where, dict[int, list[str]]] = {}
        self.users: dict[str, set[Where]] = {}
        path_of = {path.at: path for path in layout.paths}
        for path in layout.paths:
            cut = axes.operators[path.at]
            for use in cut.uses:
                self.users.setdefault(axes.buffers[use.buffer].name, set()).add(path.items)
        for home in layout.homes:
            path = path_of[home.uses[0][0]]
            buffer = axes.buffers[home.buffer]
            inner = buffer.maker is not None and len(self.users[buffer.name]) > 1
            if home.body == path.items and not inner:
                deep = len(home.above) - len(path.loops)
                self.private.setdefault(path.items, {}).setdefault(deep, []).append(buffer.name)

    def items(
        self, body: tuple[Loop | Leaf, ...], where: Where, keep: tuple[str, ...]
    ) -> tuple[tuple[Loop | Leaf, ...], tuple[str, ...]]:
        """Return the items of a body spelled out, and what that body keeps besides."""
        made: list[Loop | Leaf] = []
        more: list[str] = []
        for n, item in enumerate(body):
            at = (*where, n)
            if isinstance(item, Loop):
                inner, kept = self.items(item.body, at, item.keep)
                made.append(replace(item, body=inner, keep=(*item.keep, *kept)))
                continue
            private = self.private.get(at, {})
            for name in private.get(0, ()):
                others = [one for one in self.users[name] if one != at and one[: len(where)] == where]
                if not others and name not in (*keep, *more):
                    more.append(name)
            made.append(_in_loops(item, private))
        return tuple(made), tuple(more)


def _in_loops(leaf: Leaf, private: dict[int, list[str]]) -> Loop | Leaf:
    """Return a leaf in loops instead of its slices."""
    found: Loop | Leaf = replace(leaf, slices=())
    for deep in range(len(leaf.slices), 0, -1):
        axis, tile = leaf.slices[deep - 1]
        names = tuple(dict.fromkeys(private.get(deep, ())))
        found = Loop(((leaf.operator, axis),), tile, (found,), names)
    return found
