"""Loops along which windows slide: how far every operator goes in a turn, and what buffers hold of it.

Such a loop takes its turns from the operators whose output nothing in it reads any more. Every other operator
goes as far as its readers need, by the windows between them; docs/nests.md states the law. Everything here
is found by walking the turns.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import accumulate
from math import lcm
from typing import NoReturn

from onchip.check.nest_homes import Home
from onchip.check.nest_tree import Path, Turns, followed
from onchip.check.rules import broken
from onchip.network.axes import GroupAxes
from onchip.network.operators import Side

__all__ = ["MOST_WALKED", "Ranges", "Windows", "windows_of"]

MOST_WALKED = 1 << 20
"""The most steps, turns times operators and buffers, that the loops with windows of a group are walked."""

_MOST_SCALE = 1 << 62
_EXACT = Side(0)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges of indices, one for every turn of a loop: `low` inclusive, `high` exclusive."""

    low: Sequence[int]
    high: Sequence[int]

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, turn: int) -> range:
        return range(self.low[turn], self.high[turn])

    @property
    def lengths(self) -> Iterator[int]:
        """The number of indices in every turn."""
        return (high - low for low, high in zip(self.low, self.high, strict=True))


@dataclass(frozen=True, slots=True)
class Windows:
    """A loop along which windows slide: `where` says which item of every body leads to its body.

    `made` are the indices along the loop's axis that every operator in it (its position in the group) goes
    through in each of the `turns`. Of a home that the loop cuts (its number) `side` is the side that it cuts;
    `there` are the indices along it that the buffer holds in a turn, `moved` those that are fetched, or made;
    of what leaves those that are stored.
    """

    where: tuple[int, ...]
    turns: int
    made: dict[int, Ranges]
    side: dict[int, int] = field(default_factory=dict)
    there: dict[int, Ranges] = field(default_factory=dict)
    moved: dict[int, Ranges] = field(default_factory=dict)


def windows_of(
    group: str, axes: GroupAxes, paths: Sequence[Path], homes: Sequence[Home], leaving: Collection[int]
) -> dict[Turns, Windows]:
    """Return all loops of a nest along which windows slide, and note in `homes` which of them are rings.

    `leaving` are the tensors that leave the group. Raises `Broken` by the rules nest-axes, nest-windows and
    nest-keep, and by group-unproved for too many turns.
    """
    found: dict[Turns, Windows] = {}
    walked = 0
    nest = _Nest(group, axes, homes, leaving, {path.at: n for n, path in enumerate(paths)})
    loops = dict.fromkeys(turn for path in paths for turn in path.loops)
    outer = {turn.before for turn in loops}
    for turn in loops:
        loop = _Loop(nest, turn)
        slides = any(window is not None for link in loop.links for window in link.windows)
        loop.rings(slides=slides)
        if slides:
            if turn in outer:
                loop.refuse("and a loop inside goes along the same axes")
            loop.cut()
            turns, steps = loop.steps()
            walked += turns * (len(turn.over) + len(loop.links) + len(loop.inside))
            if walked > MOST_WALKED:
                broken("group-unproved", f"group {group} slides windows over {turns:,} turns: too many")
            found[turn] = loop.walked(turns, steps)
        elif turn.before is None:
            loop.alike()
    return found


@dataclass(frozen=True, slots=True)
class _Link:
    """A buffer that a loop cuts for all alike: an output, by its maker, or one from outside, by ~ its home.

    `readers` are operators in the loop, `windows` theirs over `side`, which has `size` indices.
    """

    of: int
    side: int
    size: int
    readers: Sequence[int]
    windows: Sequence[Side | None]

    def end(self, n: int, high: int) -> int:
        """Return one past the last index that reader number `n` needs to go from 0 up to `high`."""
        w = self.windows[n] or _EXACT
        return min(self.size, max(0, ((high - 1) * w.stride - w.before) // w.per + w.span)) if high else 0

    def first(self, n: int, low: int) -> int:
        """Return the first index that reader number `n` needs at `low`."""
        w = self.windows[n] or _EXACT
        return max(0, (low * w.stride - w.before) // w.per)

    def ends(self, made: dict[int, Ranges]) -> array[int]:
        """Return one past the last index that its readers need in each turn or before."""
        each = [map(partial(self.end, n), made[reader].high) for n, reader in enumerate(self.readers)]
        return array("q", map(max, zip(*each, strict=True)))

    def firsts(self, made: dict[int, Ranges], high: Sequence[int]) -> array[int]:
        """Return the first index that its readers need in each turn; `high` of the turn if they need none."""
        found = array("q", high)
        for n, reader in enumerate(self.readers):
            for j, (low, end) in enumerate(zip(made[reader].low, made[reader].high, strict=True)):
                if low < end and self.end(n, end):  # not all of it lies before index 0
                    found[j] = min(found[j], self.first(n, low))
        return found


class _Nest:
    """A nest as its loops see it: `order` says when an operator runs."""

    def __init__(
        self,
        group: str,
        axes: GroupAxes,
        homes: Sequence[Home],
        leaving: Collection[int],
        order: dict[int, int],
    ) -> None:
        self.group, self.axes, self.homes, self.leaving, self.order = group, axes, homes, leaving, order
        self.inside: dict[Turns, list[int]] = defaultdict(list)
        for i, home in enumerate(homes):
            for turn in home.above:
                self.inside[turn].append(i)
        self.readers: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for at, cut in enumerate(axes.operators):
            for n, use in enumerate(cut.uses[:-1]):
                self.readers[use.buffer].append((at, n))


class _Loop:
    """One loop: what it links, and its ranges. Operators are in the order in which they run."""

    def __init__(self, nest: _Nest, turn: Turns) -> None:
        self.nest, self.axes, self.homes, self.turn = nest, nest.axes, nest.homes, turn
        self.operators = sorted(turn.over, key=nest.order.__getitem__)
        self.size = {at: self.axes.operators[at].axes[axis] for at, axis in turn.over.items()}
        self.inside = nest.inside[turn]
        homes = [(i, self.homes[i]) for i in self.inside]
        self.place = {use: i for i, home in homes for use in (*home.uses, *home.guests)}
        self.made = {link.of: link for link in self.between()}
        self.fetched = {~link.of: link for link in self.outside()}
        self.links = [*self.made.values(), *self.fetched.values()]
        self.drivers = [at for at in self.operators if self.drives(at)]

    # -- what it links -------------------------------------------------------------------------------------

    def follows(self, at: int, n: int) -> dict[int, Side | None]:
        return followed(self.axes.operators[at].uses[n], self.turn.over[at])

    def between(self) -> Iterator[_Link]:
        """Yield the outputs that the loop cuts and that operators in it read."""
        for at in self.operators:
            cut = self.axes.operators[at]
            sides = [*self.follows(at, len(cut.uses) - 1)]
            uses = [(r, n) for r, n in self.nest.readers[cut.writes.buffer] if r in self.turn.over]
            if sides and uses:  # the readers follow, too, as they see finished elements
                [side] = sides
                windows = [self.follows(r, n)[side] for r, n in uses]
                yield _Link(at, side, self.size[at], [r for r, _ in uses], windows)

    def outside(self) -> Iterator[_Link]:
        """Yield the buffers from outside that it cuts: all of the uses that share one follow one side."""
        for i in self.inside:
            home = self.homes[i]
            buffer = self.axes.buffers[home.buffer]
            sides = [self.follows(at, n) for at, n in home.uses]
            if buffer.maker is None and sides[0] and all(one.keys() == sides[0].keys() for one in sides):
                [side] = sides[0]
                windows = [one[side] for one in sides]
                yield _Link(~i, side, buffer.sides[side], [at for at, _ in home.uses], windows)

    def drives(self, at: int) -> bool:
        """Return whether an operator goes its own way: something else than readers in the loop needs it."""
        buffer = self.axes.operators[at].writes.buffer
        return (
            at not in self.made
            or self.axes.buffers[buffer].tensor in self.nest.leaving
            or any(reader not in self.turn.over for reader, _ in self.nest.readers[buffer])
        )

    def alike(self) -> None:
        if len(sizes := set(self.size.values())) > 1:
            shown = " and ".join(f"{n:,}" for n in sorted(sizes)[:4])
            broken("nest-axes", f"{self.named()} goes over axes of {shown} indices")

    def cut(self) -> None:
        for at, axis in self.turn.over.items():
            cut = self.axes.operators[at]
            if axis not in cut.sums and axis not in cut.writes.axes:  # an axis of one index
                self.refuse(f"and cuts nothing of {cut.name}")

    def rings(self, *, slides: bool) -> None:
        for n, name in enumerate(self.turn.ring):
            at = [i for i in self.inside if self.axes.buffers[self.homes[i].buffer].name == name]
            found = next((i for i in at if self.homes[i].body == self.turn.where), None)
            reason = ""
            if not slides:
                reason = "and no windows slide along it"
            elif found is None:
                reason = "which has no home in its body"
            elif (
                found not in self.fetched
                and self.axes.buffers[self.homes[found].buffer].maker not in self.made
            ):
                reason = "which it does not cut, or nothing in it reads"
            elif name in self.turn.ring[:n]:
                reason = "which is said twice"
            if reason or found is None:
                broken("nest-keep", f"{self.named()} has the ring {name}, {reason}")
            self.homes[found].ring = self.turn

    # -- turns ---------------------------------------------------------------------------------------------

    def parts(self) -> Iterator[dict[int, int]]:
        """Yield, for each part that is linked, how far its members go for one index of the loop.

        These are the least whole numbers for which a window takes every reader as far as its maker.
        """
        near: dict[int, list[tuple[int, Fraction]]] = defaultdict(list)
        for link in self.links:
            for reader, window in zip(link.readers, link.windows, strict=True):
                step = Fraction((window or _EXACT).stride, (window or _EXACT).per)
                near[reader].append((link.of, step))
                near[link.of].append((reader, 1 / step))
        seen: set[int] = set()
        for first in self.operators:
            if first in seen:
                continue
            part, new, whole = {first: Fraction(1)}, [first], 1
            while new:
                one = new.pop()
                for other, step in near[one]:
                    if other not in part:
                        part[other] = part[one] * step
                        whole = lcm(whole, part[other].denominator)
                        if max(whole, part[other].numerator) > _MOST_SCALE:
                            self.refuse("of absurd strides")
                        new.append(other)
                    elif part[other] != part[one] * step:
                        self.refuse("whose strides do not agree")
            seen.update(part)
            yield {one: int(scale * whole) for one, scale in part.items()}

    def steps(self) -> tuple[int, dict[int, int]]:
        """Return the number of turns, and the indices that a turn goes on by driver."""
        steps: dict[int, int] = {}
        counts = set()
        for part in self.parts():
            own = {at: part[at] * self.turn.tile for at in self.drivers if at in part}
            counts.add(max(-(-self.size[at] // step) for at, step in own.items()))
            steps |= own
        if len(counts) > 1:
            self.refuse(f"and some of what it holds takes {min(counts):,} turns, some {max(counts):,}")
        turns = counts.pop()
        for at, step in steps.items():
            cut = self.axes.operators[at]
            if self.turn.over[at] in cut.sums and -(-self.size[at] // step) != turns:
                self.refuse(f"and in some of its {turns:,} turns {cut.name} sums nothing")
        return turns, steps

    def walked(self, turns: int, steps: dict[int, int]) -> Windows:
        """Return the ranges in all turns, from the last operator back."""
        found = Windows(self.turn.where, turns, {})
        for at in reversed(self.operators):
            step, size = steps.get(at, 0), self.size[at]
            high = array("q", (min(size, (j + 1) * step) for j in range(turns)))
            low = _before(high)
            if at in self.made:
                link, home = self.made[at], self.place.get((at, len(self.axes.operators[at].uses) - 1))
                high = array("q", map(max, high, link.ends(found.made)))
                low = _before(high)
                if home is not None and self.homes[home].ring is not self.turn:  # made anew
                    first = link.firsts(found.made, high)
                    low = array("q", map(min, low, first)) if at in steps else first
            found.made[at] = Ranges(low, high)
        for i in self.inside:
            self.held(i, found)
        return found

    def held(self, i: int, found: Windows) -> None:
        """Add what a home holds along the side that the loop cuts, if it cuts one."""
        home = self.homes[i]
        maker = self.axes.buffers[home.buffer].maker
        link = self.fetched.get(i) if maker is None else self.made.get(maker)
        if link is not None:
            found.side[i] = link.side
            high = link.ends(found.made) if maker is None else found.made[maker].high
            first = link.firsts(found.made, high)
            found.there[i] = found.moved[i] = Ranges(first, high)
            if maker is not None:
                found.there[i] = found.moved[i] = found.made[maker]
                if self.axes.buffers[home.buffer].tensor in self.nest.leaving:  # what is made again is stored
                    low = array("q", map(max, found.made[maker].low, _before(high)))
                    found.moved[i] = Ranges(low, high)
            elif home.ring is self.turn:
                found.moved[i] = Ranges(_before(high), high)
            if home.ring is self.turn:  # until the last turn that needs it
                last = array("q", accumulate(reversed(first), min))[::-1]
                found.there[i] = Ranges(array("q", map(min, last, _before(high))), high)
        elif maker is not None and (sides := self.follows(maker, len(self.axes.operators[maker].uses) - 1)):
            [found.side[i]] = sides
            found.there[i] = found.moved[i] = found.made[maker]

    # -- refusals ------------------------------------------------------------------------------------------

    def named(self) -> str:
        names = [self.axes.operators[at].name for at in self.operators]
        shown = ", ".join(names[:3]) + " and more" * (len(names) > 3)
        return f"a loop of group {self.nest.group}, around {shown},"

    def refuse(self, reason: str) -> NoReturn:
        broken("nest-windows", f"{self.named()} goes along windows, {reason}")


def _before(high: Sequence[int]) -> array[int]:
    """Return how far the turns before went."""
    return array("q", (0, *high[:-1]))
