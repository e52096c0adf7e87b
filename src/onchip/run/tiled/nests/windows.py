"""Loops along which windows slide: the range of every operator and every buffer, turn by turn.

The last operators go on by equal steps. From them back, everything else makes what its readers lack.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, lcm

from onchip.network.axes import ALL, GroupAxes, Use
from onchip.network.operators import Side
from onchip.run.tiled.executed import IllegalTiling
from onchip.run.tiled.nests.forms import Span, needed

__all__ = ["Held", "Windows", "follows", "windows_of"]


@dataclass(frozen=True, slots=True)
class Held:
    """A home in a loop's body or deeper: its buffers (the last is the one it is for), that one's maker (None:
    from outside), its uses as (operator, use), whether it keeps rows from turn to turn of this loop, and
    whether it leaves the group."""

    buffers: Sequence[int]
    maker: int | None
    uses: Sequence[tuple[int, int]]
    ring: bool
    leaves: bool


@dataclass(frozen=True, slots=True)
class Windows:
    """`made` has the range of every operator in each turn. For each home that the loop cuts `side` is the
    side, `there` what it has of it in each turn, and `moved` what is made or fetched then."""

    turns: int
    made: Mapping[int, Sequence[Span]]
    side: dict[int, int] = field(default_factory=dict)
    there: dict[int, Sequence[Span]] = field(default_factory=dict)
    moved: dict[int, Sequence[Span]] = field(default_factory=dict)


def follows(use: Use, axis: int) -> dict[int, Side | None]:
    """Return the sides of a use that go along an axis, with the window that slides over each, if one does."""
    found: dict[int, Side | None] = {side: None for side, a in enumerate(use.axes) if a == axis != ALL}
    for side, window in enumerate(use.slides):
        if window is not None and window.axis == axis:
            found[side] = window
    return found


@dataclass(frozen=True, slots=True)
class _Cut:
    """A buffer that the loop cuts along a side of `size` positions, with what each of its readers needs."""

    side: int
    size: int
    readers: Sequence[tuple[int, Side | None]]

    def lack(self, made: Mapping[int, Sequence[Span]], turn: int) -> Span | None:
        """Return the positions that the readers of a turn need, None if they need none."""
        spans = [
            needed(window, made[reader][turn], self.size)
            for reader, window in self.readers
            if made[reader][turn][0] < made[reader][turn][1]
        ]
        spans = [span for span in spans if span[1]]  # others need only what lies before the first position
        return (min(low for low, _ in spans), max(high for _, high in spans)) if spans else None

    def highs(self, made: Mapping[int, Sequence[Span]], turns: int) -> list[int]:
        """Return how far the readers have come, up to each turn."""
        found: list[int] = []
        for turn in range(turns):
            ends = [
                needed(w, (0, made[r][turn][1]), self.size)[1] for r, w in self.readers if made[r][turn][1]
            ]
            found.append(max([*found[-1:], 0, *ends]))
        return found


def windows_of(
    axes: GroupAxes,
    over: Mapping[int, int],
    tile: int,
    order: Sequence[int],
    homes: Mapping[int, Held],
    leaving: Collection[int],
) -> Windows | None:
    """Return the ranges of a loop, None if no window slides along it.

    `order` are the operators in it as they run. Raises `IllegalTiling` if their steps do not agree.
    """
    made = {o: cut for o in order if (cut := _made(axes, over, o)) is not None}
    outside = {h: cut for h, held in homes.items() if (cut := _outside(axes, over, held)) is not None}
    cuts = {**{(0, o): cut for o, cut in made.items()}, **{(1, h): cut for h, cut in outside.items()}}
    if all(window is None for cut in cuts.values() for _, window in cut.readers):
        return None
    drivers = {o for o in order if o not in made or _goes_out(axes, over, o, leaving)}
    scales = _scales(order, cuts)
    sizes = {o: axes.operators[o].axes[over[o]] for o in order}
    counts: dict[int, int] = {}
    for o in drivers:
        part, scale = scales[0, o]
        counts[part] = max(counts.get(part, 0), -(-sizes[o] // (scale * tile)))
    if len(set(counts.values())) > 1:
        raise IllegalTiling("nest-windows", "parts of a loop have different numbers of turns")
    turns = max(counts.values())
    ring = {b: held.ring for held in homes.values() if held.maker is not None for b in held.buffers}
    ranges: dict[int, list[Span]] = {}
    for o in reversed(order):
        step = scales[0, o][1] * tile if o in drivers else 0
        highs = [min(sizes[o], (j + 1) * step) for j in range(turns)]
        if o in made:
            highs = [max(both) for both in zip(highs, made[o].highs(ranges, turns), strict=True)]
        lows = [0, *highs[:-1]]
        b = axes.operators[o].writes.buffer
        if o in made and b in ring and not ring[b]:
            for j in range(turns):
                lack = made[o].lack(ranges, j)
                first = highs[j] if lack is None else min(lack[0], highs[j])
                lows[j] = min(lows[j], first) if o in drivers else first
        ranges[o] = list(zip(lows, highs, strict=True))
    found = Windows(turns, ranges)
    for h, held in homes.items():
        cut = outside.get(h) if held.maker is None else made.get(held.maker)
        if cut is not None:
            _hold(found, h, held, cut)
        elif held.maker is not None and (
            sides := follows(axes.operators[held.maker].writes, over[held.maker])
        ):
            [found.side[h]] = sides
            found.there[h] = found.moved[h] = ranges[held.maker]
    return found


def _made(axes: GroupAxes, over: Mapping[int, int], o: int) -> _Cut | None:
    """Return how the loop cuts what an operator makes for others in it, None if it does not."""
    cut = axes.operators[o]
    b = cut.writes.buffer
    sides = follows(cut.writes, over[o])
    uses = [(r, use) for r in over for use in axes.operators[r].uses[:-1] if use.buffer == b]
    if not sides or not uses:
        return None
    return _cut_along(axes, over, b, next(iter(sides)), uses)


def _outside(axes: GroupAxes, over: Mapping[int, int], held: Held) -> _Cut | None:
    """Return how the loop cuts a buffer from outside, None if its uses do not follow along one side."""
    if held.maker is not None:
        return None
    uses = [(o, axes.operators[o].uses[i]) for o, i in held.uses]
    sides = [set(follows(use, over[o])) for o, use in uses]
    if not sides[0] or any(one != sides[0] for one in sides):
        return None
    return _cut_along(axes, over, held.buffers[-1], min(sides[0]), uses)


def _cut_along(
    axes: GroupAxes, over: Mapping[int, int], b: int, side: int, uses: Iterable[tuple[int, Use]]
) -> _Cut:
    readers = []
    for r, use in uses:
        along = follows(use, over[r])
        if side not in along:
            name, reader = axes.buffers[b].name, axes.operators[r].name
            raise IllegalTiling("nest-finished", f"a loop cuts {name}, and {reader} reads more of it")
        readers.append((r, along[side]))
    return _Cut(side, axes.buffers[b].sides[side], readers)


def _goes_out(axes: GroupAxes, over: Mapping[int, int], o: int, leaving: Collection[int]) -> bool:
    b = axes.operators[o].writes.buffer
    others = (r for r in range(len(axes.operators)) if r not in over)
    return b in leaving or any(use.buffer == b for r in others for use in axes.operators[r].reads)


_Node = tuple[int, int]
"""(0, an operator) or (1, the home of a buffer from outside)."""


def _scales(order: Iterable[int], cuts: Mapping[_Node, _Cut]) -> dict[_Node, tuple[int, int]]:
    """Return for everything that is linked the part that it belongs to, and how many of its positions go with
    one step of the loop: the smallest whole numbers."""
    near: dict[_Node, list[tuple[_Node, Fraction]]] = {(0, o): [] for o in order}
    for node, cut in cuts.items():
        for reader, window in cut.readers:
            step = Fraction(window.stride, window.per) if window is not None else Fraction(1)
            near[0, reader].append((node, step))
            near.setdefault(node, []).append(((0, reader), 1 / step))
    found: dict[_Node, tuple[int, int]] = {}
    for start in near:
        if start in found:
            continue
        part = {start: Fraction(1)}
        waiting = [start]
        while waiting:
            node = waiting.pop()
            for other, step in near[node]:
                if other not in part:
                    part[other] = part[node] * step
                    waiting.append(other)
                elif part[other] != part[node] * step:
                    raise IllegalTiling("nest-windows", "the windows of a loop do not go on together")
        whole = lcm(*(scale.denominator for scale in part.values()))
        least = gcd(*(int(scale * whole) for scale in part.values()))
        number = len(found)
        found |= {node: (number, int(scale * whole) // least) for node, scale in part.items()}
    return found


def _hold(found: Windows, h: int, held: Held, cut: _Cut) -> None:
    """Add what a home has of the side that the loop cuts."""
    turns = found.turns
    highs = cut.highs(found.made, turns)
    if held.maker is not None:
        highs = [high for _, high in found.made[held.maker]]
    before = [0, *highs[:-1]]
    found.side[h] = cut.side
    lacks = [cut.lack(found.made, j) for j in range(turns)]
    firsts = [high if lack is None else lack[0] for lack, high in zip(lacks, highs, strict=True)]
    if not held.ring:
        found.there[h] = list(zip(firsts, highs, strict=True))
        if held.maker is not None:
            found.there[h] = found.made[held.maker]
        found.moved[h] = found.there[h]
        if held.leaves and held.maker is not None:  # what is made again was stored before
            pairs = zip(before, found.made[held.maker], strict=True)
            found.moved[h] = [(max(last, low), high) for last, (low, high) in pairs]
        return
    found.moved[h] = list(zip(before, highs, strict=True))
    for j in reversed(range(turns - 1)):  # what a later turn needs stays, too
        firsts[j] = min(firsts[j], firsts[j + 1])
    lows = [min(both) for both in zip(firsts, before, strict=True)]
    found.there[h] = list(zip(lows, highs, strict=True))
