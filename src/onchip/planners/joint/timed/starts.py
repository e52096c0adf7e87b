"""Plans in nests without a search for time. No plan for time is slower than any of them.

*Fewest bytes*: every run of the plan of fewest bytes in its own nest, or in one of fewest bytes, with the
best copies of its buffers. *Whole operators*: the plan of least latency of whole operators with streamed
weights, which are cut along one axis into slices with two copies. That plan leaves the slices the bytes that
are free while an operator runs; so it is also made for less than the budget.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from math import isqrt, prod

from onchip.base.errors import NegativeAnswer
from onchip.machines.chip import Chip, Rates
from onchip.network.axes import GroupAxes, axes_of
from onchip.planners.fusion import FusionProblem
from onchip.planners.joint.large_tiles import larger
from onchip.planners.joint.timed.compiled import NestTime
from onchip.planners.joint.timed.hasten import Fastest
from onchip.planners.joint.timed.nests_for import NestsFor
from onchip.planners.joint.timed.pricing import Priced
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions
from onchip.planners.placement import plan as place
from onchip.plans import Leaf, Loop, Nest, Plan, Ways

__all__ = ["FewestBytes", "Sliced", "slices", "whole_operators"]

PARTS = (1.0, 0.85, 0.7, 0.5)
"""The parts of the budget for which whole operators are placed; the rest is room for slices."""

PLACING_SECONDS, PLACING_SHARE = 10.0, 0.05
"""The most seconds that one plan of whole operators takes, and the share of the time that is left."""

MOST_MULTIPLES = 64
"""The most multiples of a side of the array that are tried as slices along one axis."""


class FewestBytes(Fastest):
    """Every run in its own nest, or in one of fewest bytes, with its best copies."""

    def search(
        self,
        operators: tuple[int, ...],
        streamed: Collection[int],
        room: int,
        own: Nest | None,
        effort: int,
        seed: int = 0,
        others: Iterable[Nest] = (),
    ) -> Priced | None:
        group = self.group(operators, streamed)
        nest = own or NestsFor(self.problem, group, self.limits).fewest_bytes(room)
        if nest is None:
            return None
        of, wide = self.problem, None
        if own is None:
            made = larger(
                of.network,
                group.group(nest),
                operators,
                group.streamed,
                room,
                alignment=of.alignment,
                accumulator=of.accumulator,
            )
            assert isinstance(made.tiling, Nest)
            wide = self.priced(group, made.tiling, room)
        small = self.priced(group, nest, room)
        return min((one for one in (wide, small) if one is not None), key=self.cost, default=None)


class Sliced(FewestBytes):
    """Every operator with its weights in the best slices along one axis, two copies of each; where none of
    these fit, in a nest of fewest bytes."""

    def search(
        self,
        operators: tuple[int, ...],
        streamed: Collection[int],
        room: int,
        own: Nest | None,
        effort: int,
        seed: int = 0,
        others: Iterable[Nest] = (),
    ) -> Priced | None:
        axes = axes_of(self.problem.network, operators)
        compiled = self.compiled(operators, streamed)
        best: NestTime | None = None
        if compiled is not None and isinstance(axes, GroupAxes) and len(operators) == 1:
            sides = {side.size for side in self.tiles.sides}
            for nest in slices(axes, sides):
                found = compiled.price(nest)
                if found is None or found.scratch > room:
                    continue
                if best is None or self.cost(found) < self.cost(best):
                    best = found
        if best is not None:
            made = self.group(operators, streamed).priced(best.nest, room)
            if made is not None:
                return made
        return super().search(operators, streamed, room, own, effort)


def slices(axes: GroupAxes, sides: Collection[int]) -> Iterator[Nest]:
    """Yield one operator's nests without a loop, and with one along an axis of its constants, which have two
    copies in its body."""
    [cut] = axes.operators
    leaf = Leaf(cut.name)
    constants = {use.buffer: axes.buffers[use.buffer].name for use in cut.constants}
    everything = tuple(dict.fromkeys(constants.values()))
    yield Nest((leaf,), everything)
    for axis, size in enumerate(cut.axes):
        varying = tuple(dict.fromkeys(constants[use.buffer] for use in cut.constants if axis in use.axes))
        if not varying:
            continue
        rest = tuple(name for name in everything if name not in varying)
        ways = Ways(tuple((name, 2) for name in varying))
        for tile in _tiles(size, sides):
            yield Nest((Loop(((cut.name, axis),), tile, (leaf,), varying, (), ways),), rest)


def whole_operators(plan: Plan, problem: FusionProblem, limits: Limits) -> Iterator[Plan]:
    """Yield plans of least latency of whole operators with streamed weights, for the budget and for less.

    They rest on the chip's rates for whole operators, or where it states none on what its tiles say of them.
    Their times are not those of nests yet.
    """
    on, tiles = plan.chip, plan.chip.tiles
    assert tiles is not None
    rate = sum(channel.bytes_per_second for channel in tiles.channels)
    chip = Chip(
        on.name,
        on.alignment_bytes,
        rates=Rates(
            dram_bytes_per_second=on.dram_bytes_per_second or rate,
            macs_per_second=on.macs_per_second or tiles.clock_hertz * prod(side.size for side in tiles.sides),
            scratchpad_bytes_per_second=on.scratchpad_bytes_per_second or tiles.scratchpad_bytes_per_second,
        ),
    )
    options = PlacementOptions(objective="latency", weights="streamed")
    seen = set()
    for part in PARTS:
        quiet = replace(limits.share(PLACING_SHARE).at_most(PLACING_SECONDS), progress=None)
        try:
            made = place(plan.network, chip, int(plan.budget * part), options, quiet)
        except NegativeAnswer:
            return  # nor for less
        if made.program not in seen:
            seen.add(made.program)
            yield replace(made, network=plan.network, chip=on, budget=plan.budget, options=plan.options)


def _tiles(size: int, sides: Collection[int]) -> list[int]:
    """Return the sizes of slices that cut an axis evenly, and multiples of the array's sides."""
    turns = range(1, isqrt(size) + 1)
    even = {-(-size // n) for n in turns} | set(turns)
    multiples = {side * n for side in sides for n in range(1, min(MOST_MULTIPLES, size // side) + 1)}
    return sorted(tile for tile in even | multiples if tile < size)
