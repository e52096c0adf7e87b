"""The need of a box of an output: the parts of a value that it reads, in a form that survives every reshape.

A value's need is a row of sides, outermost first, whose sizes multiply to its elements. They need not be the
value's own dimensions: a reshape leaves them unchanged. If one must be cut at a dimension's end, a side that
is needed whole becomes two, and one that goes along an axis of the output requires the axis to be cut there
too (`CutAxis`). A need that cannot be stated exactly becomes the whole value, which is never too little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from onchip.network import Side

__all__ = ["CutAxis", "Need", "everything", "flat", "grouped", "moved", "together", "widened"]

Need = tuple[Side, ...]


class CutAxis(Exception):
    """An axis of the output must become two, the outer of `outer` indices."""

    def __init__(self, axis: int, outer: int) -> None:
        super().__init__(axis, outer)
        self.axis, self.outer = axis, outer


def everything(size: int) -> Side:
    """Return a side of that size that is needed whole."""
    return Side(size, span=size)


def flat(dims: Sequence[Need]) -> Need:
    """Return the sides of all dimensions, one after the other."""
    return tuple(side for sides in dims for side in sides) or (everything(1),)


def grouped(need: Need, shape: Sequence[int], axes: Sequence[int]) -> list[Need]:
    """Return the sides of every dimension of `shape`; `axes` are the sizes of the output's axes.

    Raises `CutAxis` if a side ends inside a dimension and goes along an axis index by index.
    """
    rest = [side for side in reversed(need) if side.size > 1]
    found: list[Need] = []
    for size in shape:
        sides: list[Side] = []
        while size > 1:
            side = rest.pop()
            if size % side.size == 0:
                sides.append(side)
                size //= side.size
            elif side.size % size == 0:
                outer, inner = _cut(side, size, axes)
                sides.append(outer)
                rest.append(inner)
                size = 1
            else:
                return [(everything(n),) if n > 1 else () for n in shape]
        found.append(tuple(sides))
    return found


def _cut(side: Side, outer: int, axes: Sequence[int]) -> tuple[Side, Side]:
    inner = side.size // outer
    if 0 <= side.axis < len(axes) and side == Side(side.size, side.axis, before=side.before):
        parts, left = divmod(axes[side.axis], inner)
        if parts > 1 and not left and side.before % inner == 0:
            raise CutAxis(side.axis, parts)
    return everything(outer), everything(inner)


def one(sides: Need) -> Side:
    """Return a dimension as a single side: whole indices of the outermost one, if they go along an axis."""
    if len(sides) == 1:
        return sides[0]
    outer, inner = sides[0], prod(side.size for side in sides[1:])
    if outer.axis < 0 or outer.per > 1:
        return everything(outer.size * inner)
    stride, before, span = outer.stride * inner, outer.before * inner, outer.span * inner
    return Side(outer.size * inner, outer.axis, stride, before, span)


def moved(sides: Need, size: int, stride: int = 1, before: int = 0, span: int = 1, per: int = 1) -> Need:
    """Return the sides of a dimension of `size` of which index v of another dimension, needed as `sides`,
    reads [floor((v * stride - before) / per), ... + span)."""
    if size == 1:
        return ()
    side = one(sides) if sides else Side(1)
    if (stride, before, span, per) == (1, 0, 1, 1) and side.size == size:
        return sides
    part = prod(s.size for s in sides)
    shifted = len(sides) > 1 and (stride, span, per) == (1, 1, 1) and part - size <= before <= 0
    if shifted and before % part == 0 and size % part == 0:  # one of several parts, cut as it is
        return Side(size // part, before=before // part), *sides
    inner = prod(s.size for s in sides[1:])
    if shifted and before % inner == 0 and size % inner == 0:  # whole indices of the outermost side
        return *moved(sides[:1], size // inner, before=before // inner), *sides[1:]
    if side.per > 1 and (stride, per) != (1, 1):
        return (everything(size),)
    reach = (side.span - 1) * stride
    return (
        Side(
            size,
            side.axis,
            side.stride * stride,
            side.before * stride + before * side.per,
            -(-reach // per) + span,
            side.per * per,
        ),
    )


def widened(sides: Need) -> Need:
    """Return the same dimension, needed whole."""
    return tuple(everything(side.size) for side in sides)


def together(one_: Need, other: Need) -> Need:
    """Return the union of two needs of a value."""
    if one_ == other:
        return one_
    if [s.size for s in one_] != [s.size for s in other]:
        return (everything(prod(s.size for s in one_)),)
    return tuple(_hull(a, b) for a, b in zip(one_, other, strict=True))


def _hull(a: Side, b: Side) -> Side:
    if a == b:
        return a
    if (a.axis, a.stride, a.per) != (b.axis, b.stride, b.per) or a.per != 1:
        return everything(a.size)
    before = max(a.before, b.before)
    span = before + max(a.span - a.before, b.span - b.before)
    if span >= a.size:
        return everything(a.size)
    return replace(a, before=before, span=span)
