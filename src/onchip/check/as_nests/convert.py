"""The nest of one group in tiles."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from onchip.check.as_nests.bands import bands_as_nest
from onchip.check.as_nests.blocks import blocks_as_nest
from onchip.check.as_nests.boxes import boxes_as_nest
from onchip.check.as_nests.letters import Letters
from onchip.check.as_nests.plain import plain_nest
from onchip.check.as_nests.unsaid import NoNest, Unsaid, no_nest
from onchip.check.nests import Nested, nested
from onchip.check.rules import Broken
from onchip.check.tiles import access_in
from onchip.check.units import Unit
from onchip.network import Network
from onchip.network.axes import GroupAxes, axes_of
from onchip.network.maps import Maps
from onchip.plans import Blocks, Boxes, Group, Nest, Tiling

__all__ = ["AsNest", "as_nest"]

MOST_TRIED = 200
"""The most tensors that are held for a trial, so that a group of any size has an answer soon."""


@dataclass(frozen=True, slots=True)
class AsNest:
    """A group in tiles as one in a nest, and what that costs.

    `held` are the tensors of which the tiling has a few channels at a time, and the nest all. What else
    it does `otherwise` than the tiling has names of `DIFFERENCES`.
    """

    group: Group
    cost: Nested
    held: tuple[int, ...] = ()
    otherwise: frozenset[str] = frozenset()

    @property
    def dram_bytes(self) -> int:
        """All bytes that cross."""
        return sum(self.cost.crossing.values()) + self.cost.weights


def as_nest(
    maps: Maps,
    group: Group,
    unit: Unit,
    *,
    alignment: int = 1,
    accumulator: int | None = None,
    room: int | None = None,
) -> AsNest | Unsaid:
    """Return a group in bands, blocks or boxes as one in a nest, with what that costs; or why there is none.

    `unit` is the group as the checker derives it: it is legal, and its run streams what crosses there. Where
    slices of channels cannot pass so in a nest, or cost more there, some of the tensors are held: those with
    which the nest fits in `room` bytes (None: those of the tiling), then those that let the fewest bytes
    cross, then those that take the least scratch, chosen one after the other.
    """
    return _Conversion(maps, group, unit, alignment, accumulator, room or unit.taken_bytes).best()


class _Conversion:
    def __init__(
        self,
        maps: Maps,
        group: Group,
        unit: Unit,
        alignment: int,
        accumulator: int | None,
        room: int,
    ) -> None:
        self.maps, self.group, self.unit, self.room = maps, group, unit, room
        self.alignment, self.accumulator = alignment, accumulator

    def best(self) -> AsNest | Unsaid:
        held: tuple[int, ...] = ()
        best, candidates = self.attempt(held)
        left = MOST_TRIED
        while candidates and not self.as_good(best) and left > 0:
            left -= len(candidates)
            tried = [((*held, t), *self.attempt((*held, t))) for t in candidates]
            better = [one for one in tried if isinstance(one[1], AsNest) and self.less(one[1], best)]
            if better:
                held, best, candidates = min(better, key=lambda one: self.worth(one[1]))
            elif isinstance(best, Unsaid):  # as none of them helps alone
                held, best, candidates = tried[0]
            else:
                break
        return self.simpler(best) if isinstance(best, Unsaid) and best.why != "no-axes" else best

    def simpler(self, best: Unsaid) -> AsNest | Unsaid:
        """Return a nest where none runs as the tiling does: nothing passes in slices, or no loop turns."""
        if (banded := self.unit.banded) is not None:
            streamed = zip(banded.bands.tensors, banded.bands.streamed, strict=True)
            made, _ = self.attempt(tuple(t for t, one in streamed if one))
            if isinstance(made, AsNest):
                return made
        network, axes, whole = self.surroundings()
        try:
            return self.priced(plain_nest(network, axes, whole), {"plain"})
        except NoNest:
            return best

    def as_good(self, made: AsNest | Unsaid) -> bool:
        """Return whether a nest takes no more of anything than the tiling."""
        if isinstance(made, Unsaid):
            return False
        assert self.unit.crossing is not None
        most = sum(self.unit.crossing.values()) + self.unit.weights
        return made.dram_bytes <= most and made.group.scratch_bytes <= self.unit.taken_bytes

    def worth(self, made: AsNest | Unsaid) -> tuple[bool, int, int]:
        """Return a key that is less for a better nest."""
        assert isinstance(made, AsNest)
        return made.group.scratch_bytes > self.room, made.dram_bytes, made.group.scratch_bytes

    def less(self, made: AsNest, best: AsNest | Unsaid) -> bool:
        return isinstance(best, Unsaid) or self.worth(made) < self.worth(best)

    def attempt(self, held: tuple[int, ...]) -> tuple[AsNest | Unsaid, list[int]]:
        """Return the nest in which some streamed tensors are held, with others that may be held besides."""
        try:
            if isinstance(self.group.tiling, Boxes | Blocks):
                return self.priced(*self.single(self.group.tiling)), []
            nest, candidates = self.bands(held)
            if held and (waiting := self.bands(held, read_before=True)[0]) != nest:
                with suppress(NoNest):
                    return self.priced(waiting, set(), held, candidates), candidates
            return self.priced(nest, set(), held, candidates), candidates
        except NoNest as reason:
            return reason.unsaid, list(reason.hold)

    def single(self, tiling: Boxes | Blocks) -> tuple[Nest, set[str]]:
        """Return the nest of one operator, and what it does otherwise."""
        network, axes, whole = self.surroundings()
        if isinstance(tiling, Boxes):
            return boxes_as_nest(network, tiling, axes)
        piece = access_in(self.maps, axes.operators[0].operator, self.group.name)
        return blocks_as_nest(self.maps, tiling, Letters(self.maps, axes), piece, whole)

    def bands(self, held: Collection[int], *, read_before: bool = False) -> tuple[Nest, list[int]]:
        """Return the nest of bands, and what may be held besides."""
        _, axes, whole = self.surroundings()
        tiling, banded = self.group.tiling, self.unit.banded
        assert isinstance(tiling, Tiling)
        assert banded is not None
        letters = Letters(self.maps, axes)
        return bands_as_nest(
            self.maps, self.group, tiling, letters, banded, whole, held, read_before=read_before
        )

    def surroundings(self) -> tuple[Network, GroupAxes, set[int]]:
        """Return the network, the group's axes, and the operands that lie whole outside the group."""
        network, inside = self.maps.network, set(self.unit.operators)
        axes = axes_of(network, [v for v in network.order if v in inside])
        if isinstance(axes, str):
            no_nest("no-axes", axes)
        assert self.unit.crossing is not None
        return network, axes, {*self.unit.reads, *self.unit.writes} - self.unit.crossing.keys()

    def priced(
        self,
        nest: Nest,
        otherwise: Collection[str],
        held: tuple[int, ...] = (),
        candidates: Collection[int] = (),
    ) -> AsNest:
        assert self.unit.crossing is not None
        made = Group(self.group.name, self.group.operators, 0, tiling=nest)
        try:
            found = nested(
                self.maps.network, made, self.unit.operators, set(self.unit.crossing), self.alignment,
                self.accumulator,
            )  # fmt: skip
        except Broken as problem:
            refusal = problem.illegal()
            no_nest("law", f"{refusal.rule}: {refusal}", candidates)
        group = Group(made.name, made.operators, found.layout.extent, tiling=made.tiling)
        return AsNest(group, found, held, frozenset(otherwise))
