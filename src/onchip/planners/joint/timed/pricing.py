"""The time of one group in a nest, by the checker's law, for any copies of its buffers.

A nest is derived once; its time for other copies, and the bytes that they need, follow from that. Everything
here is of a group that runs alone: its gate is time 0, and its time ends with its last store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from onchip.check.nest_clock import channels_on, tree_for, work_of
from onchip.check.nest_durations import PICOSECONDS
from onchip.check.nest_layouts import disagreement
from onchip.check.nest_times import MOST_STEPS, NestTimes, NoTimes
from onchip.check.nest_walk import Moving, Visit
from onchip.check.nests import Nested, nested
from onchip.check.rules import Broken
from onchip.machines.tile_rates import TileRates
from onchip.network import Network
from onchip.planners.joint.timed.arrays import arrays_of, laid
from onchip.planners.joint.timed.lying import ROWS, Lying, durations_of
from onchip.planners.joint.timed.spelled import bare
from onchip.plans import Group, Loop, Nest, Ways

__all__ = ["Opened", "Priced", "TimedGroup", "Unit"]

Where = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Priced:
    """A nest with copies, its picoseconds, all bytes that cross, and its bytes of scratch."""

    nest: Nest
    time: int
    bytes: int
    scratch: int


@dataclass(frozen=True)
class TimedGroup:
    """A group of operators on a chip: `streamed` are the tensors (roots) that its run streams."""

    network: Network
    operators: tuple[int, ...]
    streamed: frozenset[int]
    tiles: TileRates
    alignment: int = 1
    accumulator: int | None = None
    most_steps: int = MOST_STEPS
    """The most steps of a nest that are walked; one that takes more is left out."""
    lying: Lying = ROWS

    def law(self, nest: Nest) -> Nested:
        """Return what the checker derives of a nest. Raises `Broken`."""
        return nested(
            self.network, self.group(nest), self.operators, self.streamed, self.alignment, self.accumulator
        )

    def lawful(self, nest: Nest) -> Nested | None:
        """Return the same; None if the nest is not legal, or does not agree on how its tensors lie."""
        try:
            law = self.law(nest)
        except Broken:
            return None
        return None if disagreement(law.layout, self.lying.layouts) else law

    def priced(self, nest: Nest, room: int) -> Priced | None:
        """Return a nest as it is with its figures; None if it does not fit, or has no times."""
        law = self.lawful(nest)
        if law is None or law.layout.extent > room:
            return None
        clock = NestTimes(self.tiles)
        try:
            work = work_of(self.network, law.layout)
            durations = durations_of(law.layout, self.tiles, work, self.accumulator, self.lying)
            clock.run(
                tree_for(self.network, self.group(nest), law.layout), durations, channels_on(self.tiles)
            )
        except NoTimes:
            return None
        return Priced(nest, clock.finish(), law.moved, law.layout.extent)

    def group(self, nest: Nest, name: str = "nest", scratch: int = 0) -> Group:
        """Return the group's declaration."""
        names = tuple(self.network.operators[v].name for v in self.operators)
        return Group(name, names, scratch, tiling=nest)

    def opened(self, nest: Nest) -> Opened | None:
        """Return a nest ready to be priced, without copies and on the best sides of the array; None if it is
        not legal, or the law gives it no times.
        """
        nest = bare(nest)
        law = self.lawful(nest)
        if law is None:
            return None
        try:
            work = work_of(self.network, law.layout)
        except NoTimes:
            return None
        arrays = arrays_of(law.layout, self.tiles, [one.products for one in work])
        return Opened(self, laid(nest, arrays), law, sum(cycles for _, cycles in arrays.values()))


@dataclass(frozen=True, eq=False)
class Unit:
    """A name that a body keeps: its buffers have copies together. `more` are the bytes of one more copy."""

    where: Where
    name: str
    moving: tuple[Moving, ...]
    root: bool
    more: int


class _Beaten(Exception):  # an answer, not an error
    """A nest takes as long as another one already, or too many steps."""


class _Clock(NestTimes):
    """A clock that stops where a time is reached."""

    def __init__(self, tiles: TileRates, below: int | None, most_steps: int) -> None:
        super().__init__(tiles)
        self.below, self.most_steps = below, most_steps

    def visit(self, visit: Visit) -> None:
        if self.walked >= self.most_steps or (self.below is not None and self.everything() >= self.below):
            raise _Beaten
        super().visit(visit)


class Opened:
    """A nest of a group, derived once. Copies are given by unit, in the order of `units`."""

    def __init__(self, group: TimedGroup, nest: Nest, law: Nested, cycles: int) -> None:
        self.group, self.nest, self.law = group, nest, law
        layout = law.layout
        self.tree = tree_for(group.network, group.group(nest), layout)
        work = work_of(group.network, layout)
        self.durations = durations_of(layout, group.tiles, work, group.accumulator, group.lying)
        self.bytes = law.moved
        self.cycles = cycles
        leaf_of = {path.at: n for n, path in enumerate(layout.paths)}
        self.transfers = sum(
            layout.entries[leaf_of[one.home.uses[0][0]]][len(one.home.above)]
            for one in self.tree.moving
            if not one.waits
        )
        self.units = self._units()
        self._shared: list[int] = []
        self._extents: dict[tuple[int, ...], int | None] = {}
        self._times: dict[tuple[int, ...], int | None] = {}
        self._fixed()

    def floor(self) -> int:
        """Return picoseconds that this nest takes at least, whatever its copies and channels."""
        tiles = self.group.tiles
        steps = sum(entries[-1] for entries in self.law.layout.entries)
        cycles = self.cycles + (0 if self.law.layout.windows else steps * tiles.step_cycles)
        rate = sum(channel.bytes_per_second for channel in tiles.channels)
        crossing = -(-self.bytes * PICOSECONDS // rate)
        if len(tiles.channels) == 1 and not self.law.layout.windows:
            crossing += self.transfers * tiles.channels[0].transfer_picoseconds
        return max(-(-cycles * PICOSECONDS // tiles.clock_hertz), crossing)

    def time(self, copies: Sequence[int], below: int | None = None) -> int | None:
        """Return the picoseconds with these copies; None if they are not below some, or not to be had."""
        key = tuple(copies)
        if key in self._times:
            found = self._times[key]
            return found if found is None or below is None or found < below else None
        for unit, number in zip(self.units, copies, strict=True):
            for one in unit.moving:
                one.home.copies = number
        clock = _Clock(self.group.tiles, below, self.group.most_steps)
        try:
            clock.run(self.tree, self.durations, channels_on(self.group.tiles))
        except (_Beaten, NoTimes):
            if below is None:
                self._times[key] = None
            return None
        self._times[key] = found = clock.finish()
        return found if below is None or found < below else None

    def need(self, copies: Sequence[int]) -> int:
        """Return the bytes alive at the worst moment with these copies: no more than the scratch."""
        own, shared = 0, list(self._shared)
        for unit, number in zip(self.units, copies, strict=True):
            for one in unit.moving:
                place = self.law.layout.places[one.number]
                if number > 1:
                    own += place.bytes + (0 if unit.root else (number - 1) * self._more[one])
                else:
                    for leaf in range(place.first, place.last + 1):
                        shared[leaf] += place.bytes
        return own + max(shared, default=0)

    def scratch(self, copies: Sequence[int]) -> int | None:
        """Return the bytes of scratch with these copies; None if the checker refuses them."""
        key = tuple(copies)
        if key not in self._extents:
            try:
                self._extents[key] = self.group.law(self.with_copies(copies)).layout.extent
            except Broken:
                self._extents[key] = None
        return self._extents[key]

    def with_copies(self, copies: Sequence[int]) -> Nest:
        """Return the nest with these copies."""
        said: dict[Where, list[tuple[str, int]]] = {}
        for unit, number in zip(self.units, copies, strict=True):
            if number > 1:
                said.setdefault(unit.where, []).append((unit.name, number))

        def loop(one: Loop, where: Where) -> Loop:
            body = tuple(loop(i, (*where, n)) if isinstance(i, Loop) else i for n, i in enumerate(one.body))
            return replace(one, body=body, ways=Ways(tuple(said.get(where, ()))))

        body = tuple(loop(i, (n,)) if isinstance(i, Loop) else i for n, i in enumerate(self.nest.body))
        return replace(self.nest, body=body, ways=Ways(tuple(said.get((), ()))))

    def priced(self, copies: Sequence[int], time: int, scratch: int) -> Priced:
        """Return the nest with these copies and its figures."""
        return Priced(self.with_copies(copies), time, self.bytes, scratch)

    def _units(self) -> list[Unit]:
        """Return the names that may have copies: each is asked of the checker alone."""
        found: dict[tuple[Where, str], list[Moving]] = {}
        kept = {(where, name) for where, names in _kept(self.nest, ()) for name in names}
        buffers = self.law.layout.axes.buffers
        for one in self.tree.moving:
            key = one.home.body, buffers[one.home.buffer].name
            if key in kept:
                found.setdefault(key, []).append(one)
        units = [Unit(w, name, tuple(moving), not w, 0) for (w, name), moving in found.items()]
        self.units = units
        twice = self._twice([2] * len(units))
        if twice is None:
            units = [u for u in units if self._alone(units, u)]
            self.units = units
            twice = self._twice([2] * len(units))
        assert twice is not None
        places = self.law.layout.places
        self._more = {
            one: twice.layout.places[one.number].bytes - places[one.number].bytes
            for unit in units
            for one in unit.moving
        }
        return [replace(unit, more=sum(self._more[one] for one in unit.moving)) for unit in units]

    def _alone(self, units: Sequence[Unit], unit: Unit) -> bool:
        return self._twice([2 if one is unit else 1 for one in units]) is not None

    def _twice(self, copies: Sequence[int]) -> Nested | None:
        try:
            return self.group.law(self.with_copies(copies))
        except Broken:
            return None

    def _fixed(self) -> None:
        """Note what is alive at every leaf beside the units."""
        layout = self.law.layout
        free = {one.number for unit in self.units for one in unit.moving}
        self._shared = [0] * len(layout.paths)
        rest = [place for n, place in enumerate(layout.places) if n not in free]
        for place in (*rest, *layout.accumulators):
            for leaf in range(place.first, place.last + 1):
                self._shared[leaf] += place.bytes


def _kept(nest: Nest | Loop, where: Where) -> Iterator[tuple[Where, Collection[str]]]:
    yield where, nest.keep
    for n, item in enumerate(nest.body):
        if isinstance(item, Loop):
            yield from _kept(item, (*where, n))
