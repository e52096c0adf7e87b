"""Where outputs may lie over inputs, byte by byte, and the least memory of small chains by trying everything.

Written down from docs/plan-program.md; shares no code with the planner or the checker but for the bytes of a
group's rings, which are the checker's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations, product
from math import prod

import numpy as np

from onchip.check.rings import rings_of
from onchip.network import Geometry, Network, Operator
from onchip.network.maps import Maps
from onchip.plans import Group, Rings, Stage
from oracles.ring_machine import RingMachine, Sizes, map_of

__all__ = ["Piece", "group_times", "least_bytes", "legal", "lone_times"]

Times = tuple[list[int], list[int]]
"""For each byte of the input when it is last read (-1: never); for each of the output when it is written."""


def legal(times: Times) -> set[int]:
    """The distances, input minus output, at which no byte is written before it is read; those beside too."""
    reads, writes = np.array(times[0]), np.array(times[1])
    given, made = reads.size, writes.size
    early = writes[None, :] < reads[:, None]
    apart = np.arange(made)[None, :] - np.arange(given)[:, None]
    return set(range(-given, made + 1)) - set(np.unique(apart[early]).tolist())


# -- a layer alone ---------------------------------------------------------------------------------------


def lone_times(g: Geometry, given: int, made: int, *, reverse: bool = False) -> Times:
    """A layer of one image in NHWC alone: its first operand of `given` bytes, its output of `made`."""
    (height, width, deep), (rows, columns, channels) = _map(g.input), _map(g.output)
    read, write = given // (height * width), made // (rows * columns)
    reads, writes = [-1] * given, [0] * made
    clock = 0

    def taps(y: int, x: int) -> Iterator[int]:
        """The pixels of the input that a pixel of the output reads."""
        if g.kind in ("conv", "depthwise", "pool"):
            (down, right), (dy, dx) = g.stride or (1, 1), g.dilation or (1, 1)
            top, left = (g.padding or (0, 0))[:2]
            places = [
                (y * down - top + i * dy, x * right - left + j * dx)
                for i, j in product(range(g.kernel[0]), range(g.kernel[1]))
            ]
        elif g.kind == "pad":
            places = [(y - g.padding[0], x - g.padding[1])]
        else:
            places = [(y, x)]
        for row, column in places:
            if 0 <= row < height and 0 <= column < width:
                yield row * width + column

    def touch(bytes_: Iterator[int] | range) -> None:
        for b in bytes_:
            reads[b] = clock

    plain = (g.pixels, g.channels) == (1, 0)
    by_element = g.kind in ("elementwise", "rowwise") and plain
    element, wide = write // channels, read // deep
    matrix = g.kind == "fully_connected"
    lines, length = (1, rows) if matrix else (rows, columns)
    for y in reversed(range(lines)) if reverse else range(lines):
        starts = range(length, 0, -g.pixels) if reverse else range(0, length, g.pixels)
        for start in starts:
            step = (
                range(max(start - g.pixels, 0), start)
                if reverse
                else range(start, min(start + g.pixels, length))
            )
            places = [(x, 0) if matrix else (y, x) for x in step]
            size = 1 if by_element else (g.channels or channels)
            chunks = [(c, min(c + size, channels)) for c in range(0, channels, size)]
            for low, high in reversed(chunks) if reverse else chunks:
                clock += 1
                for place in places:
                    for pixel in taps(*place):
                        first, end = 0, deep
                        if by_element:
                            first, end = (0, high) if reverse else (low, deep)
                        touch(range(pixel * read + first * wide, pixel * read + end * wide))
                clock += 1
                for row, column in places:
                    at = (row * columns + column) * write
                    for b in range(at + low * element, at + high * element):
                        writes[b] = clock
    return reads, writes


def _map(shape: Sequence[int]) -> tuple[int, int, int]:
    return (shape[1], shape[2], shape[3]) if len(shape) == 4 else (shape[0], 1, shape[1])


# -- a group in rings ------------------------------------------------------------------------------------


class _Watched(RingMachine):
    """The machine with the input beside the output, and a note of when each byte is read and written."""

    def times(self, resident: str) -> Times:
        self.clock, size = 0, prod(self.shape[self.last])
        self.when: Times = [-1] * prod(self.shape[resident]), [0] * size
        self.memory = _Noted(self)
        lines = dict.fromkeys(self.shape, 1 << 20)
        memory = self.memory
        assert not self.run_with(Sizes(dict(lines), dict(lines)), resident, size, memory)
        return self.when

    def run_with(self, sizes: Sizes, resident: str, by: int, memory: _Noted) -> bool:
        self.sizes, self.by, self.over = sizes, by, resident
        self.pixels = {op.name: 0 for op in self.ops}
        self.fetched = dict.fromkeys(self.streamed, 0)
        self.most_rows = {}
        for i in range(prod(self.shape[resident])):
            dict.__setitem__(memory, by + i, (resident, i))
        width = self.shape[self.last][1]
        step = -(-width // self.rings.strips)
        for left in range(0, width, step):
            self.strip((left, min(left + step, width)))
        return False


class _Counted(_Watched):
    """The machine, and whether some pixel was made `again`."""

    def __init__(self, network: Network, group: Group) -> None:
        super().__init__(network, group)
        self.made_pixels: set[tuple[str, int, int]] = set()
        self.again = False

    def count(self, op: Operator, row: int, column: int) -> None:
        super().count(op, row, column)
        self.again |= (op.name, row, column) in self.made_pixels
        self.made_pixels.add((op.name, row, column))


class _Noted(dict[int, tuple[str, int]]):
    """A memory whose every access is a moment later than the one before."""

    def __init__(self, machine: _Watched) -> None:
        super().__init__()
        self.machine = machine

    def __getitem__(self, at: int) -> tuple[str, int]:
        self.machine.clock += 1
        self.machine.when[0][at - self.machine.by] = self.machine.clock
        return super().__getitem__(at)

    def __setitem__(self, at: int, what: tuple[str, int]) -> None:
        self.machine.clock += 1
        self.machine.when[1][at] = self.machine.clock
        super().__setitem__(at, what)


def group_times(network: Network, group: Group, resident: str) -> Times:
    """A group in rings whose input is whole in memory."""
    return _Watched(network, group).times(resident)


# -- chains ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """Layers [first, end) run one way: bytes of scratch and legal distances; None for beside only."""

    first: int
    end: int
    scratch: int
    legal: frozenset[int]


def least_bytes(
    network: Network, heights: Sequence[int], strips: Sequence[int], *, joined: bool, anew: bool
) -> int:
    """The least memory of any plan of whole layers and groups in rings, over all distances and placements.

    Layers run in every order that the network allows inside a group. Stages of one layer sweep single rows,
    those of several (`joined`) bands of these heights; unless `anew` no row or column is made twice.
    """
    count = len(network.operators)
    size = {t.id: t.bytes for t in network.tensors}
    cuts = _cuts(network)
    ends = {0: network.operators[network.order[0]].inputs[0]} | {c: _made(network, c) for c in cuts[1:]}
    best = max(size[ends[0]], size[ends[count]])
    high = sum(size.values()) + sum(op.workspace for op in network.operators) + 4 * count
    pieces = [
        piece
        for first, end in product(cuts, cuts)
        if first < end
        for piece in _pieces(network, first, end, ends, high, heights, strips, joined=joined, anew=anew)
    ]
    pieces = _undominated(pieces)
    while not _fits(pieces, ends, size, count, best):
        best += 1
    return best


def _undominated(pieces: Sequence[Piece]) -> list[Piece]:
    """Without those that need no less scratch than another and have no distance that it has not."""
    kept: list[Piece] = []
    for new in sorted(pieces, key=lambda p: (p.scratch, -len(p.legal))):
        same = (old for old in kept if (old.first, old.end) == (new.first, new.end))
        if not any(old.scratch <= new.scratch and old.legal >= new.legal for old in same):
            kept.append(new)
    return kept


def _fits(pieces: Sequence[Piece], ends: dict[int, int], size: dict[int, int], count: int, pool: int) -> bool:
    """Whether some row of pieces has a placement in so many bytes, address by address."""
    reached = {place: set[int]() for place in ends}
    reached[0] = set(range(pool - size[ends[0]] + 1))
    for first in sorted(ends):
        for piece in pieces:
            if piece.first != first:
                continue
            x, y = size[ends[first]], size[ends[piece.end]]
            if max(x, y) + piece.scratch > pool:
                continue
            apart = [by for by in range(-pool, pool + 1) if by <= -x or by >= y or by in piece.legal]
            for at in reached[first]:
                for by in apart:
                    out = at - by
                    if not 0 <= out <= pool - y or out in reached[piece.end]:
                        continue
                    if not piece.scratch or _room(piece.scratch, ((at, at + x), (out, out + y)), pool):
                        reached[piece.end].add(out)
    return bool(reached[count])


def _room(scratch: int, taken: Sequence[tuple[int, int]], pool: int) -> bool:
    starts = range(0, pool - scratch + 1, 4)
    return not scratch or any(all(at + scratch <= a or at >= b for a, b in taken) for at in starts)


def _made(network: Network, place: int) -> int:
    return network.operators[network.order[place - 1]].outputs[0]


def _cuts(network: Network) -> list[int]:
    """Places at which one tensor alone, the last one made, is still to be read."""
    found = [0]
    for place in range(1, len(network.order) + 1):
        before, behind = network.order[:place], network.order[place:]
        kept = {t for i in behind for t in network.operators[i].inputs} | set(network.outputs)
        made = {t for i in before for t in network.operators[i].outputs}
        if kept & (made | {t.id for t in network.tensors if t.kind == "input"}) <= {_made(network, place)}:
            found.append(place)
    return found


def _pieces(
    network: Network,
    first: int,
    end: int,
    ends: dict[int, int],
    high: int,
    heights: Sequence[int],
    strips: Sequence[int],
    *,
    joined: bool,
    anew: bool,
) -> Iterator[Piece]:
    mine = [network.operators[i] for i in network.order[first:end]]
    x, y = network.tensors[ends[first]], network.tensors[ends[end]]
    if len(mine) == 1:
        g = mine[0].geometry
        assert g is not None
        for reverse in (False, True):
            found = legal(lone_times(g, x.bytes, y.bytes, reverse=reverse))
            yield Piece(first, end, mine[0].workspace, frozenset(found))
    width = map_of(mine[-1].geometry.output)[1] if mine[-1].geometry is not None else 1
    for stages in _stagings(network, mine, joined=joined):
        tall = [heights if len(stage) > 1 else (1,) for stage in stages]
        for rows, n, way in product(
            product(*tall), sorted({min(n, width) for n in strips}), ("forward", "reverse")
        ):
            told = tuple(Stage(tuple(op.name for op in s), r) for s, r in zip(stages, rows, strict=True))
            names = tuple(name for stage in told for name in stage.operators)
            group = Group("g", names, 0, tiling=Rings(told, n, "rows", way))  # type: ignore[arg-type]
            run = rings_of(Maps(network), group, (), alignment=1)
            if not anew and _twice(network, group):
                continue
            if run.need + max(x.bytes, y.bytes) > high:
                continue
            found = set()
            if n == 1:
                found = legal(group_times(network, replace(group, scratch_bytes=run.need), x.name))
            yield Piece(first, end, run.need, frozenset(found))


def _twice(network: Network, group: Group) -> bool:
    """Whether some row or column of what an operator makes is made twice."""
    machine = _Counted(network, group)
    x = next(
        t for op in machine.ops for t in machine.ins(op) if all(t != machine.out(o) for o in machine.ops)
    )
    machine.times(x)
    return machine.again


def _stagings(
    network: Network, mine: Sequence[Operator], *, joined: bool
) -> Iterator[tuple[tuple[Operator, ...], ...]]:
    """Every order of the layers, cut into stages that hand on one tensor each."""
    for order in permutations(mine):
        made: set[int] = set()
        for op in order:
            inside = {t for other in mine for t in other.outputs}
            if not set(op.inputs) & inside <= made:
                break
            made |= set(op.outputs)
        else:
            if order[-1] is not mine[-1]:
                continue
            for cut in product((False, True), repeat=len(order) - 1):
                bounds = [0, *(i + 1 for i, c in enumerate(cut) if c), len(order)]
                stages = tuple(order[a:b] for a, b in pairwise(bounds))
                if (joined or all(len(s) == 1 for s in stages)) and all(_one(network, s) for s in stages):
                    yield stages


def _one(network: Network, stage: Sequence[Operator]) -> bool:
    """Whether nobody outside reads what is made before its end, and no pool over a map stands there."""
    ids = {op.id for op in stage}
    for op in stage[:-1]:
        (t,) = op.outputs
        if t in network.outputs or any(
            t in other.inputs for other in network.operators if other.id not in ids
        ):
            return False
        g = op.geometry
        assert g is not None
        whole = g.kind == "pool" and map_of(g.output)[:2] == (1, 1) and tuple(g.kernel) == map_of(g.input)[:2]
        if whole and not any((g.padding or (0, 0))[:2]) and set(g.dilation or (1,)) == {1}:
            return False
    return True
