"""The sides of an operator's use of a tensor, in products of inner sizes, and the parts that uses share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from onchip.network.operators import Reach, Side

__all__ = ["ALL", "OwnSide", "Part", "joined_parts", "own_side", "part_of", "seen_across", "side_over"]

ALL = -1
"""In place of an axis: the use needs every position of that side."""


@dataclass(frozen=True, slots=True)
class OwnSide:
    """A side of a use: elements from `low` on, `high` exclusive, in multiples of `low`.

    `window` is what slides over it; a part of it begins at `first`. A view shows `seen` (first, count) of it.
    """

    low: int
    high: int
    axis: int
    first: int
    count: int
    window: Side | None = None
    seen: tuple[int, int] | None = None

    @property
    def exact(self) -> bool:
        """True if index i along the axis is index i along the side."""
        return self.axis >= 0


Part = tuple[tuple[int, int, bool], ...]
"""Of every side of a tensor the first index of a part, their number, and whether a use may move along it."""


def part_of(sides: Sequence[OwnSide], spans: Sequence[tuple[int, int]]) -> Part:
    """Return the part of a tensor that a use needs, which must not go on."""
    found = []
    for low, high in spans:
        side = side_over(sides, low, high)
        if side is None or (not side.exact and (side.low, side.high) != (low, high)):
            found.append((0, high // low, False))
        else:
            found.append(
                (0, high // low, True) if side.exact else (side.first, side.count, side.window is not None)
            )
    return tuple(found)


def side_over(sides: Sequence[OwnSide], low: int, high: int) -> OwnSide | None:
    """Return the side of a use in which one of the tensor lies."""
    return next((own for own in sides if own.low <= low and high <= own.high), None)


def joined_parts(parts: Iterable[Part]) -> dict[Part, list[Part]]:
    """Return the least parts around those that share a buffer, each with those."""
    found: dict[Part, list[Part]] = {}
    for part in parts:
        box, inside = part, [part]
        while (other := next((known for known in found if _share(known, box)), None)) is not None:
            inside += found.pop(other)
            box = _around(box, other)
        found[box] = inside
    return found


def _share(one: Part, other: Part) -> bool:
    """Return whether two parts have elements in common, and differ along sides alone that both uses follow or
    that of the part within the other."""
    return all(
        (a, m) == (b, n)
        or (moves and too and a < b + n and b < a + m)
        or (moves and b <= a and a + m <= b + n)
        or (too and a <= b and b + n <= a + m)
        for (a, m, moves), (b, n, too) in zip(one, other, strict=True)
    )


def _around(one: Part, other: Part) -> Part:
    """Return the least part with both."""
    return tuple(
        (min(a, b), max(a + m, b + n) - min(a, b), moves and too)
        for (a, m, moves), (b, n, too) in zip(one, other, strict=True)
    )


def seen_across(sides: Sequence[OwnSide], low: int, high: int) -> tuple[int, int] | None:
    """Return what a view shows of several sides that are one for other uses: part of the outermost, all else.

    A view whose elements do not lie one after the other shows all from its first to its last.
    """
    within = [s for s in sides if low <= s.low and s.high <= high]
    first, count = 0, 1
    for s in within:
        begin, some = (0, s.high // s.low) if s.seen is None else s.seen
        size = s.high // s.low
        first, count = first * size + begin, (count - 1) * size + some
    whole = all(s.seen is None for s in within)
    return None if whole else (first, count)


def own_side(side: Side, low: int, reach: Reach) -> OwnSide:
    """Return a side in products of inner sizes; without a unit step along an axis, the part of it needed."""
    high = low * side.size
    if side.axis >= 0 and side == Side(side.size, side.axis) and reach.extents[side.axis] == side.size:
        return OwnSide(low, high, side.axis, 0, side.size)
    last = 0 if side.axis < 0 else reach.extents[side.axis] - 1
    ends = [(o * side.stride - side.before) // side.per for o in (0, last)]
    first = min(side.size - 1, max(0, min(ends)))  # one is there even if none is needed
    end = min(side.size, max(ends) + side.span)
    window = side if side.axis >= 0 and side.stride > 0 else None
    return OwnSide(low, high, ALL, first, max(1, end - first), window)
