"""The verifier: it prices a schedule tile by tile and step by step, with slices as sets.

It knows no planner, and refuses by the number of a rule (docs/contest.md), with the subgraph and the tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from math import fsum

from onchip.base.errors import IllegalSchedule, UsageError
from onchip.contest.demand import COLUMNS, ROWS, WHOLE, Make, Subgraph, Want
from onchip.contest.law import Law
from onchip.contest.problem import Problem
from onchip.contest.solution import Step

__all__ = ["NOTHING", "Left", "Priced", "Walk", "price_step", "verify", "walk_of"]

MOST_STEPS = 50_000_000
"""The most tiles times steps of k of one subgraph that are priced one by one."""

SAME = 1e-6
"""The relative difference below which a stated latency is the computed one."""

Slice = tuple[int, int, int, int, int]
"""A tensor (or operator), and its rows and columns as half-open ranges."""


@dataclass(frozen=True, slots=True)
class Left:
    """Slices in fast memory and strips made, as a tile's last step leaves them for the next one."""

    slices: AbstractSet[Slice]
    strips: AbstractSet[Slice]


NOTHING = Left(frozenset(), frozenset())


@dataclass(frozen=True, slots=True)
class Priced:
    """The price of a schedule: each subgraph's latency, and its most elements in fast memory at once."""

    latencies: tuple[float, ...]
    peaks: tuple[int, ...]

    @property
    def latency(self) -> float:
        """The whole schedule's latency."""
        return fsum(self.latencies)

    @property
    def peak(self) -> int:
        """The most elements in fast memory at once."""
        return max(self.peaks)


def verify(problem: Problem, steps: Sequence[Step], law: Law, *, stated: bool = True) -> Priced:
    """Return what a schedule costs under a law; raises `IllegalSchedule` with the rule that it breaks.

    With `stated` each latency that the schedule states must be the computed one.
    """
    in_slow = {tensor for tensor in range(len(problem.widths)) if tensor not in problem.maker}
    residents: frozenset[int] = frozenset()
    done: set[int] = set()
    latencies, peaks = [], []
    _check_operators(problem, steps)
    outside = [frozenset(Subgraph(problem, step.operators, step.depth).outside) for step in steps]
    for at, step in enumerate(steps):
        where = f"subgraph {at}"
        walk = Walk(problem, step, law, residents, where)
        walk.check(in_slow, [read for other, read in enumerate(outside) if other != at])
        latency, peak = walk.price()
        if stated and not abs(step.latency - latency) <= SAME * max(latency, 1.0):
            raise IllegalSchedule(
                "L9", f"{where}: states latency {step.latency:,.12g}, it is {latency:,.12g}"
            )
        latencies.append(latency)
        peaks.append(peak)
        in_slow.update(walk.stored)
        residents = frozenset(step.retained)
        done.update(step.operators)
    for op in range(len(problem.outputs)):
        if op not in done:
            raise IllegalSchedule("L3", f"operator {op} never runs")
    for tensor in problem.results:
        if tensor not in in_slow:
            raise IllegalSchedule("L7", f"tensor {tensor}, an output of the graph, never reaches slow memory")
    return Priced(tuple(latencies), tuple(peaks))


def price_step(problem: Problem, step: Step, law: Law, residents: frozenset[int]) -> float:
    """Return the latency of one step that finds these tensors resident and all others in slow memory.

    Raises `IllegalSchedule` with the rule that the step breaks by itself.
    """
    return walk_of(problem, step, law, residents).price()[0]


def walk_of(problem: Problem, step: Step, law: Law, residents: frozenset[int]) -> Walk:
    """Return the walk over a step's tiles that finds these tensors resident and all others in slow memory.

    Raises `IllegalSchedule` with the rule that the step breaks by itself, at whatever order of tiles.
    """
    _check_operators(problem, [step])
    walk = Walk(problem, step, law, residents, "subgraph 0")
    walk.check(set(range(len(problem.widths))), ())
    return walk


def _check_operators(problem: Problem, steps: Sequence[Step]) -> None:
    for at, step in enumerate(steps):
        if not step.operators:
            raise IllegalSchedule("L3", f"subgraph {at}: has no operators")
        for op in step.operators:
            if not 0 <= op < len(problem.outputs):
                raise IllegalSchedule("L3", f"subgraph {at}: there is no operator {op}")
            if step.operators.count(op) > 1:
                raise IllegalSchedule("L3", f"subgraph {at}: operator {op} stands there twice")


class Walk:
    """One subgraph with its tile, and the tensors that are resident when it starts."""

    def __init__(self, problem: Problem, step: Step, law: Law, residents: frozenset[int], where: str) -> None:
        self.problem, self.step, self.law, self.where = problem, step, law, where
        self.subgraph = Subgraph(problem, step.operators, step.depth)
        self.residents = residents
        self.w, self.h, self.k = step.width, step.height, step.depth

    def refuse(self, rule: str, reason: str, tensor: int | None = None) -> IllegalSchedule:
        item = "" if tensor is None else f"tensor {tensor}: "
        return IllegalSchedule(rule, f"{self.where}: {item}{reason}")

    def check(self, in_slow: set[int], read_by_others: Sequence[frozenset[int]]) -> None:
        """Refuse what no order of tiles and no room can mend, and settle the outputs."""
        native = self.problem.native
        sizes = {"w": (self.w, native[0]), "h": (self.h, native[1]), "k": (self.k, native[2])}
        for name, (size, most) in sizes.items():
            if size < 1:
                raise self.refuse("L1", f"{name} = {size} is below 1")
            if size > most and (name != "k" or self.law.k_capped):
                raise self.refuse("L1", f"{name} = {size} is above the native {most}")
        self.subgraph.check(self.w, self.h, self.where)
        made = self.subgraph.made
        for tensor in self.step.retained:
            if tensor not in made:
                raise self.refuse("L7", "is retained, and not made here", tensor)
        if len(set(self.step.retained)) < len(self.step.retained):
            raise self.refuse("L7", "retains a tensor twice")
        for tensor in self.subgraph.outside:
            if tensor not in in_slow and tensor not in self.residents:
                reason = "is read, and neither in slow memory nor resident"
                raise self.refuse("L5" if tensor in self.problem.maker else "L7", reason, tensor)
        self.outputs = [*self.subgraph.ends, *self._read_elsewhere(read_by_others)]
        first = self.outputs[0]
        self.width, self.height = self.problem.widths[first], self.problem.heights[first]
        for tensor in self.outputs:
            if (self.problem.widths[tensor], self.problem.heights[tensor]) != (self.width, self.height):
                raise self.refuse("L8", f"has another shape than output {first}", tensor)
        self.stored = [tensor for tensor in self.outputs if tensor not in self.step.retained]

    def _read_elsewhere(self, read_by_others: Sequence[frozenset[int]]) -> list[int]:
        """Return the used up tensors that the law writes for others (L5)."""
        if self.law.read_elsewhere == "lost":
            return []
        read = self.subgraph.read
        return [
            tensor
            for tensor in self.subgraph.made
            if tensor in read
            and tensor not in self.step.retained
            and any(tensor in others for others in read_by_others)
        ]

    def price(self) -> tuple[float, int]:
        """Return the latency and the peak, by a walk over all tiles and steps."""
        tiles, step = self.across * self.down, self.step
        if tiles * self.count > MOST_STEPS:
            raise UsageError(
                f"{tiles * self.count:,} steps; at most {MOST_STEPS:,} are priced", where=self.where
            )
        order = range(tiles) if step.traversal is None else step.traversal
        if step.traversal is not None and sorted(step.traversal) != list(range(tiles)):
            raise self.refuse("L16", f"the traversal is no order of its {tiles} tiles")
        latencies: list[float] = []
        peak, left = 0, NOTHING
        for tile in order:
            times, room, left = self.tile(tile, left)
            latencies += times
            peak = max(peak, room)
        return fsum(latencies), peak

    def tile(self, tile: int, left: Left) -> tuple[list[float], int, Left]:
        """Return the latencies of a tile's steps, its peak, and what it leaves for the tile behind it.

        `left` is what the tile before it left.
        """
        problem = self.problem
        row, column = divmod(tile, self.across)
        rows = (row * self.h, min((row + 1) * self.h, self.height))
        columns = (column * self.w, min((column + 1) * self.w, self.width))
        area = (rows[1] - rows[0]) * (columns[1] - columns[0])
        standing = self.standing + self.tiles_held * area
        latencies: list[float] = []
        peak, held = 0, left.slices
        free = left.strips if self.law.strips == "kept" else frozenset()
        kept: AbstractSet[Slice] = frozenset()
        for at in range(self.count):
            here = _Here(problem, rows, columns, at * self.k, self.k, kept, free | kept)
            compute = 0.0
            for op in self.products:
                reduction = problem.reduction(op)
                if at * self.k < reduction:
                    depth = min((at + 1) * self.k, reduction) - at * self.k
                    whole = reduction if self.law.product_step == "own" else problem.native[2]
                    compute += problem.base[op] * depth / whole
                    here.visit(self.streams[op])
            if at == self.count - 1:
                compute += self.late_cost
                here.visit(self.operands)
            wanted = self._uncovered(here.wanted)
            loads = sum(_size(piece) for piece in wanted if not self._kept(piece, held))
            room = standing + sum(map(_size, wanted))
            if room > problem.capacity:
                raise self.refuse(
                    "L15",
                    f"needs {room:,} elements at tile {tile}, step {at}; there are {problem.capacity:,}",
                )
            peak = max(peak, room)
            stores = area * len(self.stored) if at == self.count - 1 else 0
            latencies.append(max(compute + here.cost, (loads + stores) / problem.bandwidth))
            held, kept, free = wanted, here.strips, frozenset()
        return latencies, peak, Left(held, kept)

    @cached_property
    def across(self) -> int:
        """The tiles of a row."""
        return -(-self.width // self.w)

    @cached_property
    def down(self) -> int:
        """The tiles of a column."""
        return -(-self.height // self.h)

    @cached_property
    def products(self) -> tuple[int, ...]:
        """The MatMuls on the tile."""
        return tuple(op for op in self.on_tile if self.problem.is_matmul[op])

    @cached_property
    def on_tile(self) -> tuple[int, ...]:
        """The operators on the outputs' tile."""
        return self.subgraph.on_tile(self.outputs)

    @cached_property
    def count(self) -> int:
        """The steps of a tile."""
        return max((-(-self.problem.reduction(op) // self.k) for op in self.products), default=1)

    @cached_property
    def streams(self) -> dict[int, tuple[Want | Make, Want | Make]]:
        """The slices that each step of a MatMul on the tile reads."""
        return {op: self.subgraph.streams(op) for op in self.products}

    @cached_property
    def operands(self) -> list[Want]:
        """The slices that the Pointwise on the tile read from outside."""
        late = [op for op in self.on_tile if not self.problem.is_matmul[op]]
        made = self.subgraph.made
        return [Want(t, ROWS, COLUMNS) for op in late for t in self.problem.inputs[op] if t not in made]

    @cached_property
    def late_cost(self) -> float:
        """The time of the Pointwise on the tile."""
        return fsum(self.problem.base[op] for op in self.on_tile if not self.problem.is_matmul[op])

    @cached_property
    def standing(self) -> int:
        """The room of whole tensors."""
        return sum(map(self.problem.size, set(self.step.retained))) + self._resident_room()

    @cached_property
    def tiles_held(self) -> int:
        """The tiles that lie in fast memory."""
        return len(self.stored) + self._accumulators()

    def _resident_room(self) -> int:
        idle = self.law.idle_residents == "room"
        read = self.subgraph.outside
        return sum(self.problem.size(t) for t in self.residents if idle or t in read)

    def _accumulators(self) -> int:
        """Return how many tiles of sums lie beside the outputs."""
        if self.law.accumulator == "shared":
            return 0
        return sum(1 for op in self.products if self.problem.outputs[op] not in self.outputs)

    def _uncovered(self, wanted: set[Slice]) -> set[Slice]:
        """Return the slices that are neither resident nor a part of a whole tensor of the same step."""
        wanted = {piece for piece in wanted if piece[0] not in self.residents}
        whole = {piece[0] for piece in wanted if _size(piece) == self.problem.size(piece[0])}
        if not whole:
            return wanted
        return {p for p in wanted if p[0] not in whole or _size(p) == self.problem.size(p[0])}

    def _kept(self, piece: Slice, held: AbstractSet[Slice]) -> bool:
        tensor = piece[0]
        whole = (tensor, 0, self.problem.heights[tensor], 0, self.problem.widths[tensor])
        return piece in held or whole in held


class _Here:
    """One step of one tile: the slices that it wants from outside, the strips that it makes."""

    def __init__(
        self,
        problem: Problem,
        rows: tuple[int, int],
        columns: tuple[int, int],
        start: int,
        depth: int,
        kept: AbstractSet[Slice],
        free: AbstractSet[Slice],
    ) -> None:
        self.problem, self.rows, self.columns = problem, rows, columns
        self.start, self.depth, self.kept, self.free = start, depth, kept, free
        self.wanted: set[Slice] = set()
        self.strips: set[Slice] = set()
        self.cost = 0.0

    def range_of(self, axis: int, side: int) -> tuple[int, int]:
        """Return the range of an axis on a side of this length."""
        if axis == ROWS:
            return self.rows
        if axis == COLUMNS:
            return self.columns
        return (0, side) if axis == WHOLE else (self.start, min(self.start + self.depth, side))

    def visit(self, reads: Sequence[Want | Make]) -> None:
        """Want these slices; make those that the subgraph makes, unless this tile has them still.

        What is free takes no time to make, and wants all the same.
        """
        for read in reads:
            tensor = read.tensor if isinstance(read, Want) else self.problem.outputs[read.operator]
            r0, r1 = self.range_of(read.rows, self.problem.heights[tensor])
            c0, c1 = self.range_of(read.columns, self.problem.widths[tensor])
            piece = (tensor, r0, r1, c0, c1)
            if isinstance(read, Want):
                self.wanted.add(piece)
            elif piece not in self.strips:
                self.strips.add(piece)
                if piece not in self.free:
                    self.cost += self._work(read, r1 - r0, c1 - c0)
                if piece not in self.kept:
                    self.visit(read.reads)

    def _work(self, make: Make, height: int, width: int) -> float:
        """Return the time of a strip, in native tiles; a tile's own side counts as one (L10, L12)."""
        native = self.problem.native
        work = self.problem.base[make.operator]
        for axis, length, side in ((make.rows, height, native[1]), (make.columns, width, native[0])):
            size = side if axis == WHOLE else native[2]
            if axis not in (ROWS, COLUMNS):
                work *= length / size if self.problem.is_matmul[make.operator] else -(-length // size)
        return work


def _size(piece: Slice) -> int:
    return (piece[2] - piece[1]) * (piece[4] - piece[3])
