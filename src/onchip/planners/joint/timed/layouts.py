"""The tiles in which tensors between groups lie in DRAM, so that their fills come and go in few pieces.

Nests are found as if every fill were one piece. Then each tensor is laid in the tiles that take its channel
least time, among those on which the nests of its maker and of its readers agree: boxes of some of them, and
their common divisors, along every side. Row by row is one of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import gcd, prod

from onchip.check.nest_durations import PICOSECONDS
from onchip.check.nest_layouts import disagreement, tile_along
from onchip.check.nest_pieces import pieces_of
from onchip.check.nests import Layout
from onchip.machines.tile_rates import TileRates
from onchip.network import Network
from onchip.plans import TensorLayout

__all__ = ["Streams", "layouts_for"]

MOST_SIZES = 12
"""The most extents of a tile that are tried along one side."""

MOST_TILES = 600
"""The most tiles that are tried for one tensor."""


@dataclass(frozen=True)
class Streams:
    """A group's nest, and the tensors (roots) that it streams, and those that it uses otherwise."""

    layout: Layout
    streamed: frozenset[int]
    whole: frozenset[int]


def layouts_for(
    network: Network, groups: Sequence[Streams], may: Iterable[int], tiles: TileRates
) -> dict[int, TensorLayout]:
    """Return the layouts of those of the tensors `may` that are better off in tiles than row by row."""
    found = {}
    for t in sorted(may):
        using = [one for one in groups if t in one.streamed]
        if len(using) < 2 or any(t in one.whole for one in groups):
            continue
        moves = [move for one in using for move in _moves(one.layout, t)]
        sides = _common([move.sides for move in moves])
        if sides is None or any(not move.plain for move in moves):
            continue
        best = _best(network.tensors[t].name, t, sides, using, moves, tiles)
        if best is not None:
            found[t] = best
    return found


@dataclass(frozen=True)
class _Move:
    """A buffer of a tensor that crosses: its sides, a box of it, its bytes an element, how many boxes cross,
    the extents that loops leave along each side, and the sides over which windows slide."""

    sides: tuple[int, ...]
    plain: bool
    box: tuple[int, ...]
    width: int
    count: int
    cuts: tuple[tuple[int, ...], ...]
    slid: frozenset[int]


def _moves(layout: Layout, t: int) -> Iterator[_Move]:
    windows = {w.where: w for w in layout.windows}
    for number, (home, place) in enumerate(zip(layout.homes, layout.places, strict=True)):
        buffer = layout.axes.buffers[home.buffer]
        if buffer.tensor != t or not place.crosses:
            continue
        uses = [(at, layout.axes.operators[at].uses[n]) for at, n in home.uses]
        cuts = tuple(
            tuple(turn.tile for turn in home.above if turn.cuts(uses, side))
            for side in range(len(buffer.sides))
        )
        count = -(-place.crosses // (prod(place.sides) * place.width))
        over = [windows[turn.where] for turn in home.above if turn.where in windows]
        slid = frozenset(one.side[number] for one in over if number in one.side)
        plain = buffer.sides == buffer.whole
        yield _Move(buffer.sides, plain, place.sides, place.width, count, cuts, slid)


def _common(all_sides: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the sides that all others refine; None if they are of different sizes."""
    ends = [set(_ends(sides)) for sides in all_sides]
    if not ends or len({max(some) for some in ends}) > 1:
        return None
    shared = sorted(set.intersection(*ends), reverse=True)
    return tuple(high // low for high, low in pairwise(shared)) or (1,)


def _ends(sides: Sequence[int]) -> Iterator[int]:
    total = 1
    yield total
    for side in reversed(sides):
        total *= side
        yield total


def _sizes(sides: Sequence[int], n: int, moves: Iterable[_Move]) -> list[int]:
    """Return the extents to try along side `n` of the common sides: those of boxes, and common divisors; one
    index where windows slide."""
    side, low = sides[n], prod(sides[n + 1 :])
    found = {side}
    for move in moves:
        inner = 1
        for at in reversed(range(len(move.sides))):
            size = move.sides[at]
            if low <= inner < low * side:
                found |= {tile * inner // low for tile in move.cuts[at] if tile < size}
                found |= {1} if at in move.slid else set()
            inner *= size
    apart = sorted(found)
    found |= {gcd(a, b) for a in apart for b in apart}
    return sorted(found, reverse=True)[:MOST_SIZES]


def _best(
    name: str,
    t: int,
    sides: tuple[int, ...],
    using: Sequence[Streams],
    moves: Sequence[_Move],
    tiles: TileRates,
) -> TensorLayout | None:
    channel = tiles.channels[tiles.first("loads")]

    def cost(one: TensorLayout) -> int | None:
        total = 0
        for move in moves:
            tile = tile_along(one, move.sides)
            if tile is None:
                return None
            for piece, n in pieces_of(move.box, move.sides, tile).items():
                bytes_ = -(-piece * move.width // channel.burst_bytes) * channel.burst_bytes
                through = -(-bytes_ * PICOSECONDS // channel.bytes_per_second)
                total += move.count * n * (channel.piece_picoseconds + through)
        return total

    rows = TensorLayout(name, sides, sides)
    best, least = None, cost(rows)
    assert least is not None
    every = product(*(_sizes(sides, n, moves) for n in range(len(sides))))
    for _, tile in zip(range(MOST_TILES), every, strict=False):
        one = TensorLayout(name, sides, tile)
        found = cost(one)
        if found is None or found >= least or any(disagreement(g.layout, {t: one}) for g in using):
            continue
        best, least = one, found
    return best
