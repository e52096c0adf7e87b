"""A nest of one group for another group that differs from it in names alone."""

from __future__ import annotations

from dataclasses import replace

from onchip.network.axes import GroupAxes
from onchip.plans import Leaf, Loop, Nest, Ways
from onchip.plans.nest import COUNTED

__all__ = ["renamed"]


def renamed(nest: Nest, before: GroupAxes, after: GroupAxes) -> Nest:
    """Return the nest of one group for another of the same text."""
    operators = {a.name: b.name for a, b in zip(before.operators, after.operators, strict=True)}
    buffers = {a.name: b.name for a, b in zip(before.buffers, after.buffers, strict=True)}

    def names(keep: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(buffers[name] for name in keep)

    def ways(old: Ways) -> Ways:
        given = (getattr(old, key) for key in COUNTED)
        return Ways(*(tuple((buffers[name], n) for name, n in one) for one in given))

    def item(old: Loop | Leaf) -> Loop | Leaf:
        if isinstance(old, Leaf):
            over = None if old.over is None else buffers[old.over]
            return replace(old, operator=operators[old.operator], over=over)
        along = tuple((operators[name], axis) for name, axis in old.over)
        return replace(
            old,
            over=along,
            body=tuple(map(item, old.body)),
            keep=names(old.keep),
            ring=names(old.ring),
            ways=ways(old.ways),
        )

    return replace(nest, body=tuple(map(item, nest.body)), keep=names(nest.keep), ways=ways(nest.ways))
