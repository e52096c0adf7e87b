"""Whether a chain of layers runs within so many bytes of RAM, by simulating bytes.

A layer alone: for every distance between output and input, whether some byte of the input is written on
before its last reading, step by step as docs/plan-program.md says layers walk. Layers fused in rings are
asked of the checker. Then every address of every tensor is followed from the network's input to its output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from onchip.check.ring_overlap import loses_a_byte
from onchip.check.rings import RingRun, rings_of
from onchip.check.rules import Broken
from onchip.network import Geometry, Network
from onchip.network.maps import Maps
from onchip.plans import Alloc, Free, Group, Instruction, Load, Rings, Run, Scratch, Stage, Store

__all__ = ["Chain", "Piece"]

HEIGHTS = (1, 2, 3, 4, 6, 8, 12)
"""Heights of bands that stages of several layers have."""


STRIPS = (1, 2, 3, 4, 6, 8)
"""Numbers of strips that claims range over."""


@dataclass(frozen=True)
class Piece:
    """Layers [first, end) run as one: alone (`group` None) or in rings, in `scratch` bytes of their own.

    Their output may lie `d` bytes below their input (input's address minus output's) where `allowed[d]`;
    where they share no byte it always may.
    """

    first: int
    end: int
    traversal: str
    scratch: int
    allowed: frozenset[int]
    group: Group | None = None


def layer_distances(g: Geometry, read: int, made: int) -> frozenset[int]:
    """The distances at which a layer's output, `made` bytes, may share bytes with its input, `read` bytes."""
    last, first = _steps(g, read, made)
    found = []
    for d in range(1 - read, made):
        low, high = max(0, -d), min(read, made - d)
        if not (last[low:high] > first[low + d : high + d]).any():
            found.append(d)
    return frozenset(found)


def _steps(g: Geometry, read: int, made: int) -> tuple[np.ndarray, np.ndarray]:
    """Of every byte of the input the last step that reads it (-1: none), of every one of the output its step.

    Maps are NHWC of one image, elements of one byte.
    """
    last = np.full(read, -1)
    reverse = g.traversal == "reverse"
    if g.kind == "elementwise":
        steps = np.arange(made)[::-1] if reverse else np.arange(made)
        return steps.copy(), steps.copy()
    _, h, w, c = g.input
    _, rows, columns, channels = g.output
    count = rows * columns
    order = range(count - 1, -1, -1) if reverse else range(count)
    first = np.zeros(made, dtype=int)
    stride, dilation, padding = g.stride or (1, 1), g.dilation or (1, 1), g.padding or (0, 0, 0, 0)
    for step, pixel in enumerate(order):
        y, x = divmod(pixel, columns)
        first[pixel * channels : (pixel + 1) * channels] = step
        for i in range(g.kernel[0]):
            for j in range(g.kernel[1]):
                row, column = (
                    y * stride[0] - padding[0] + i * dilation[0],
                    x * stride[1] - padding[1] + j * dilation[1],
                )
                if 0 <= row < h and 0 <= column < w:
                    at = (row * w + column) * c
                    last[at : at + c] = step
    return last, first


@dataclass
class Chain:
    """A chain of layers over maps of one-byte elements, the input held in RAM."""

    network: Network
    stages: bool = True
    """Whether stages of several layers, and strips, are looked at: they make things twice."""

    groups: bool = True
    known: dict[tuple[int, int], list[tuple[Piece | None, object]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.order = list(self.network.order)
        op = self.network.operators
        self.tensors = [op[self.order[0]].inputs[0], *(op[v].outputs[0] for v in self.order)]
        self.bytes = [self.network.tensors[t].bytes for t in self.tensors]
        self.maps = Maps(self.network)
        self.alone = [[self._alone(i, way) for way in ("forward", "reverse")] for i in range(len(self.order))]

    def _alone(self, i: int, way: str) -> Piece:
        op = self.network.operators[self.order[i]]
        assert op.geometry is not None
        g = replace(op.geometry, traversal=way)  # type: ignore[arg-type]
        allowed = layer_distances(g, self.bytes[i], self.bytes[i + 1])
        return Piece(i, i + 1, way, op.workspace, allowed)

    def pieces(self, first: int, budget: int) -> Iterator[Piece]:
        """Everything that may run from layer `first` on within `budget` bytes."""
        yield from self.alone[first]
        for end in range(first + 2, len(self.order) + 1) if self.groups else ():
            for stages in self._stages(first, end):
                for strips in [n for n in STRIPS if n <= self._columns(end)] if self.stages else (1,):
                    for way in ("forward", "reverse"):
                        piece = self._ring(first, end, stages, strips, way, budget)
                        if piece is not None:
                            yield piece

    def _columns(self, end: int) -> int:
        found = self.maps.of(self.tensors[end])
        return 1 if found is None else found.columns

    def _rows(self, end: int) -> int:
        found = self.maps.of(self.tensors[end])
        return 1 if found is None else found.rows

    def _stages(self, first: int, end: int) -> Iterator[tuple[Stage, ...]]:
        """Every division of layers into stages; single layers sweep single rows."""
        if first == end:
            yield ()
            return
        for cut in range(first + 1, end + 1 if self.stages else first + 2):
            names = tuple(self.network.operators[v].name for v in self.order[first:cut])
            heights = sorted({min(h, self._rows(cut)) for h in HEIGHTS}) if cut > first + 1 else [1]
            for rest in self._stages(cut, end):
                for height in heights:
                    yield (Stage(names, height), *rest)

    def _ring(
        self, first: int, end: int, stages: tuple[Stage, ...], strips: int, way: str, budget: int
    ) -> Piece | None:
        """One group in rings, if it may fit at all, with the distances that the checker proves."""
        names = tuple(self.network.operators[v].name for v in self.order[first:end])
        rings = Rings(stages, strips, "rows", way)  # type: ignore[arg-type]
        group = Group("g", names, 1 << 30, tiling=rings)
        try:
            run = rings_of(self.maps, group, frozenset(), alignment=1)
        except Broken:
            return None
        read, made = self.bytes[first], self.bytes[end]
        room = budget - run.need
        if max(read, made) > room:
            return None
        # Claims range over outputs that lie over inputs in one strip only.
        allowed = frozenset(self._proved(run, first, end, room) if strips == 1 else ())
        return Piece(first, end, way, run.need, allowed, replace(group, scratch_bytes=run.need))

    def _proved(self, run: RingRun, first: int, end: int, room: int) -> Iterator[int]:
        read, made = self.bytes[first], self.bytes[end]
        geometry = self.network.operators[self.order[end - 1]].geometry
        for d in range(1 - read, made):
            if max(read + d, made) - min(d, 0) > room:
                continue  # both together need more
            try:
                if not loses_a_byte(run, geometry, self.tensors[end], self.tensors[first], d):
                    yield d
            except Broken:
                continue

    def program(self, budget: int) -> tuple[Network, list[Instruction], tuple[Group, ...]] | None:
        """A program within `budget` bytes, with the network whose layers say which way they run; or None."""
        count = len(self.order)
        came: list[dict[int, tuple[int, Piece, int] | None]] = [{} for _ in range(count + 1)]
        came[0] = dict.fromkeys(range(budget - self.bytes[0] + 1))
        for i in range(count):
            if not came[i]:
                continue
            for piece in self.pieces(i, budget):
                read, made = self.bytes[i], self.bytes[piece.end]
                for x in came[i]:
                    for y in range(budget - made + 1):
                        if y in came[piece.end]:
                            continue
                        apart = y + made <= x or x + read <= y
                        if not apart and x - y not in piece.allowed:
                            continue
                        at = _room(piece.scratch, budget, (x, x + read), (y, y + made))
                        if at is not None:
                            came[piece.end][y] = (x, piece, at)
        if not came[count]:
            return None
        return self._written(came)

    def _written(
        self, came: list[dict[int, tuple[int, Piece, int] | None]]
    ) -> tuple[Network, list[Instruction], tuple[Group, ...]]:
        place, i = next(iter(came[-1])), len(self.order)
        steps: list[tuple[int, int, Piece, int]] = []
        while i:
            found = came[i][place]
            assert found is not None
            x, piece, at = found
            steps.append((x, place, piece, at))
            place, i = x, piece.first
        operators = list(self.network.operators)
        names = [self.network.tensors[t].name for t in self.tensors]
        made: list[Instruction] = [Load(names[0], place)]
        groups: list[Group] = []
        for x, y, piece, at in reversed(steps):
            op = operators[self.order[piece.first]]
            unit, (a, b) = op.name, (names[piece.first], names[piece.end])
            if piece.group is None:
                assert op.geometry is not None
                operators[op.id] = replace(op, geometry=replace(op.geometry, traversal=piece.traversal))  # type: ignore[arg-type]
            else:
                unit = f"g{len(groups)}"
                groups.append(replace(piece.group, name=unit))
            apart = y + self.bytes[piece.end] <= x or x + self.bytes[piece.first] <= y
            made.append(Alloc(b, y) if apart else Alloc(b, y, a, x - y))
            if piece.scratch:
                made.append(Scratch(unit, at))
            made.append(Run(unit))
            if apart:
                made.append(Free(a))
        made += [Store(names[-1]), Free(names[-1])]
        return replace(self.network, operators=tuple(operators)), made, tuple(groups)


def _room(size: int, budget: int, *taken: tuple[int, int]) -> int | None:
    """Where so many bytes in a row are free."""
    for at in (0, *(high for _, high in taken)):
        if at + size <= budget and all(at + size <= low or high <= at for low, high in taken):
            return at
    return None
