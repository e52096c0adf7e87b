"""The picoseconds of a transfer and of a step of a nest, each rounded up once: docs/nest-times.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from onchip.check.nest_pieces import pieces_of
from onchip.check.nest_walk import Moving, Visit
from onchip.check.nests import Layout
from onchip.check.rules import broken
from onchip.machines.tile_rates import Channel, TileRates
from onchip.network.axes import Use

__all__ = ["Durations", "Work", "prove_array"]

PICOSECONDS = 10**12

NONE_IN_TILES: Mapping[int, Sequence[int]] = MappingProxyType({})


@dataclass(frozen=True)
class Work:
    """The work of an operator: products for every index of all of its axes, if any, and vector operations
    for every element of its output.
    """

    products: int
    vector: int


def prove_array(group: str, visit: Visit, layout: Layout, tiles: TileRates) -> None:
    """Refuse a leaf whose axes do not lie on the sides of the chip's array. The rule is nest-array.

    No operand may vary along two sides for outputs: each of their elements goes to one row, or one column.
    Where every multiplier has operands of its own, it may.
    """
    cut = layout.axes.operators[visit.path.at]
    if len(visit.array) > len(tiles.sides):
        _refuse(group, cut.name, f"{len(visit.array)} sides of an array that has {len(tiles.sides)}")
    axes = [axis for side in visit.array for axis in side]
    if len(set(axes)) < len(axes):
        _refuse(group, cut.name, "an axis twice")
    for side, on in zip(tiles.sides, visit.array, strict=False):
        for axis in on:
            if not 0 <= axis < len(cut.axes) or (axis in cut.sums) != (side.kind == "sum"):
                _refuse(group, cut.name, f"axis {axis} on a side for {side.kind}")
    out = [on for side, on in zip(tiles.sides, visit.array, strict=False) if side.kind == "out"]
    if tiles.own_operands:
        return
    for use in (*cut.reads, *cut.constants):
        follows = {*use.axes, *(window.axis for window in use.slides if window is not None)}
        if sum(any(axis in follows for axis in on) for on in out) > 1:
            name = layout.axes.buffers[use.buffer].name
            _refuse(group, cut.name, f"{name} along two sides for outputs")


def _refuse(group: str, operator: str, what: str) -> None:
    broken("nest-array", f"{operator} in group {group} lays {what}")


class Durations:
    """The durations of one nest on a chip with `tiles`. `work` is that of its operators, by position.

    `accumulator` are the bytes of a sum that is not complete, if that is more than an element. `in_tiles` are
    the tiles of buffers that lie in DRAM in tiles, by number, in the sides of the buffer.
    """

    def __init__(
        self,
        layout: Layout,
        tiles: TileRates,
        work: Sequence[Work],
        accumulator: int | None,
        in_tiles: Mapping[int, Sequence[int]] = NONE_IN_TILES,
    ) -> None:
        self.layout, self.tiles, self.work, self.accumulator = layout, tiles, work, accumulator
        self.in_tiles = in_tiles
        count = [0] * len(layout.axes.buffers)
        for home in layout.homes:
            count[home.buffer] += 1
        self.in_fills = [b.tensor is None and n == 1 for b, n in zip(layout.axes.buffers, count, strict=True)]
        """The weights with one buffer, which lie in DRAM in the order of their fills."""

    def transfer(self, one: Moving, lengths: Sequence[int], width: int, channel: Channel) -> int:
        """Return the picoseconds of the transfer of a box of a buffer, `width` bytes an element."""
        pieces = self.pieces(one, lengths)
        burst, count = channel.burst_bytes, sum(pieces.values())
        moved = sum(n * (-(-piece * width // burst) * burst) for piece, n in pieces.items())
        through = -(-moved * PICOSECONDS // channel.bytes_per_second)
        return channel.transfer_picoseconds + count * channel.piece_picoseconds + through

    def pieces(self, one: Moving, lengths: Sequence[int]) -> Mapping[int, int]:
        """Return how many contiguous pieces of how many elements a box has."""
        buffer = self.layout.axes.buffers[one.home.buffer]
        if self.in_fills[one.home.buffer]:
            return {prod(lengths): 1}
        if one.home.buffer in self.in_tiles:
            return pieces_of(lengths, buffer.sides, self.in_tiles[one.home.buffer])
        piece, rest = 1, len(lengths)
        while rest:
            rest -= 1
            piece *= lengths[rest]
            if lengths[rest] < buffer.whole[rest]:
                break
        return {piece: prod(lengths[:rest])}

    def step(self, visit: Visit, ranges: Sequence[range], *, goes_on: bool) -> tuple[int, int]:
        """Return the picoseconds of a step over these indices, and those of its products alone.

        `goes_on` says that it adds to sums of steps before it.
        """
        at, tiles = visit.path.at, self.tiles
        cut, work = self.layout.axes.operators[at], self.work[visit.path.at]
        extents = [len(r) for r in ranges]
        cycles = tiles.step_cycles
        if work.products:
            on = {axis for side in visit.array for axis in side}
            blocks = prod(n for axis, n in enumerate(extents[: cut.outputs]) if axis not in on)
            sums = prod(n for axis, n in enumerate(extents) if axis not in on and axis >= cut.outputs)
            for side, size in zip(visit.array, tiles.sides, strict=False):
                fills = -(-prod(extents[axis] for axis in side) // size.size)
                if size.kind == "out":
                    blocks *= fills
                else:
                    sums *= fills
            cycles += blocks * (tiles.block_cycles + work.products * sums)
        busy = -(-cycles * PICOSECONDS // tiles.clock_hertz)
        longest, made = busy, prod(extents[: cut.outputs])
        if tiles.vector_operations_per_second is not None:
            longest = max(longest, -(-work.vector * made * PICOSECONDS // tiles.vector_operations_per_second))
        if tiles.scratchpad_bytes_per_second is not None:
            buffers = self.layout.axes.buffers
            read = sum(
                needed(use, buffers[use.buffer].sides, ranges) * buffers[use.buffer].element
                for use in (*cut.reads, *cut.constants)
            )
            element = buffers[cut.writes.buffer].element
            width = max(element, self.accumulator or 0) if cut.sums else element
            read += made * width * (2 if goes_on else 1)
            longest = max(longest, -(-read * PICOSECONDS // tiles.scratchpad_bytes_per_second))
        return longest, busy


def needed(use: Use, sides: Sequence[int], ranges: Sequence[range]) -> int:
    """Return the elements of a buffer that a use needs for these indices of its operator."""
    found = 1
    for n, size in enumerate(sides):
        window = use.slides[n] if use.slides else None
        if use.axes[n] >= 0:
            found *= len(ranges[use.axes[n]])
        elif window is not None:
            go = ranges[window.axis]
            low = max(0, (go.start * window.stride - window.before) // window.per)
            last = (go[-1] * window.stride - window.before) // window.per + window.span
            found *= max(0, min(size, last) - min(low, size))
        else:
            found *= size
    return found
