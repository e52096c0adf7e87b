"""The nest of one group in tiles."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from onchip.check.as_nests.bands import bands_as_nest
from onchip.check.as_nests.blocks import blocks_as_nest
from onchip.check.as_nests.boxes import boxes_as_nest
from onchip.check.as_nests.letters import Letters
from onchip.check.as_nests.unsaid import NoNest, Unsaid, no_nest
from onchip.check.nests import Nested, nested
from onchip.check.rules import Broken
from onchip.check.tiles import access_in
from onchip.check.units import Unit
from onchip.network.axes import axes_of
from onchip.network.maps import Maps
from onchip.plans import Blocks, Boxes, Group, Nest, Tiling

__all__ = ["AsNest", "as_nest"]

MOST_TRIED = 200
"""The most tensors that are held for a trial, so that a group of any size has an answer soon."""


@dataclass(frozen=True, slots=True)
class AsNest:
    """A group in tiles as one in a nest, and what that costs.

    `held` are the tensors of which the tiling has a few channels at a time, and the nest all.
    """

    group: Group
    cost: Nested
    held: tuple[int, ...] = ()

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
            nest, candidates = self.nest(held)
            if held and (waiting := self.nest(held, read_before=True)[0]) != nest:
                with suppress(NoNest):
                    return self.priced(waiting, held, candidates), candidates
            return self.priced(nest, held, candidates), candidates
        except NoNest as reason:
            return reason.unsaid, list(reason.hold)

    def nest(self, held: Collection[int], *, read_before: bool = False) -> tuple[Nest, list[int]]:
        network, inside = self.maps.network, set(self.unit.operators)
        order = [v for v in network.order if v in inside]
        axes = axes_of(network, order)
        if isinstance(axes, str):
            no_nest("no-axes", axes)
        assert self.unit.crossing is not None
        whole = {*self.unit.reads, *self.unit.writes} - self.unit.crossing.keys()
        letters = Letters(self.maps, axes)
        match self.group.tiling:
            case Boxes() as boxes:
                return boxes_as_nest(network, self.group, boxes, axes), []
            case Blocks() as blocks:
                piece = access_in(self.maps, order[0], self.group.name)
                return blocks_as_nest(self.maps, self.group, blocks, letters, piece, whole), []
            case Tiling() as tiling:
                assert self.unit.banded is not None
                return bands_as_nest(
                    self.maps, self.group, tiling, letters, self.unit.banded, whole, held,
                    read_before=read_before,
                )  # fmt: skip
        raise NotImplementedError("not a group in tiles")

    def priced(self, nest: Nest, held: tuple[int, ...], candidates: Collection[int]) -> AsNest:
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
        return AsNest(group, found, held)
