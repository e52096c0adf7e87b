"""A group as the compiled core takes it: the slices that a step reads, what a step costs, the room.

Groups that differ in the numbers of their operators and tensors alone make the same statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from onchip import _core
from onchip.contest.demand import COLUMNS, ROWS, WHOLE, Make, Subgraph, Want
from onchip.contest.law import Law
from onchip.contest.problem import Problem

__all__ = ["Group", "Statement", "statement_of"]

Axis = Literal["tile", "depth", "whole"]

AXES: dict[int, Axis] = {ROWS: "tile", COLUMNS: "tile", WHOLE: "whole"}


@dataclass(frozen=True, slots=True)
class Group:
    """Operators in order, the resident tensors that they read, and those that they retain."""

    operators: tuple[int, ...]
    residents: frozenset[int] = frozenset()
    retained: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, order=True)
class Slice:
    """A slice that steps read until `reach` elements of k are done; if `late`, the last step does."""

    rows: Axis
    columns: Axis
    reach: int
    late: bool


@dataclass(frozen=True, slots=True, order=True)
class Depth:
    """The MatMuls of one K on the tile, and the time of the strips that are made for them."""

    reduction: int
    per_element: float
    strips: float
    padded: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A group for the compiled core. `wants` has, for each tensor, its height, its width and its slices."""

    height: int
    width: int
    once: float
    late: float
    depths: tuple[Depth, ...]
    wants: tuple[tuple[int, int, tuple[Slice, ...]], ...]
    least_width: tuple[int, ...]
    least_height: tuple[int, ...]
    most_depth: int
    stored: int
    held: int
    room: int

    def core(self, problem: Problem, law: Law) -> _core.ContestSubgraph:
        """Return the statement as the compiled core takes it."""
        return _core.ContestSubgraph(
            height=self.height,
            width=self.width,
            once=self.once,
            late=self.late,
            depths=[
                _core.ContestDepth(
                    reduction=depth.reduction,
                    per_element=depth.per_element,
                    strips=depth.strips,
                    padded=list(depth.padded),
                )
                for depth in self.depths
            ],
            wants=[
                _core.ContestWant(
                    tensor=tensor,
                    height=height,
                    width=width,
                    rows=piece.rows,
                    columns=piece.columns,
                    reach=piece.reach,
                    late=piece.late,
                )
                for tensor, (height, width, slices) in enumerate(self.wants)
                for piece in slices
            ],
            least_width=list(self.least_width),
            least_height=list(self.least_height),
            most_depth=self.most_depth,
            stored=self.stored,
            held=self.held,
            room=self.room,
            bandwidth=problem.bandwidth,
            native=problem.native,
            kept=law.strips == "kept",
        )


def statement_of(problem: Problem, law: Law, group: Group, *, bound: bool) -> Statement:
    """Return a group's statement.

    In a bound, the time of strips that may stay by the law counts nothing, nor does that of an operator that
    makes two kinds of strips for all but one.
    """
    return _Stating(problem, law, group, bound).made()


class _Stating:
    def __init__(self, problem: Problem, law: Law, group: Group, bound: bool) -> None:
        self.problem, self.law, self.group, self.bound = problem, law, group, bound
        self.subgraph = Subgraph(problem, group.operators, 1)
        self.outputs = self.subgraph.ends
        self.on_tile = self.subgraph.on_tile(self.outputs)
        self.products = [op for op in self.on_tile if problem.is_matmul[op]]
        self.wants: list[tuple[Want, int, bool]] = []
        """Each with its reach, and whether it is late."""
        self.makes: set[tuple[int, int, int]] = set()
        self.once = 0.0
        self.per_element = dict.fromkeys(sorted({problem.reduction(op) for op in self.products}), 0.0)
        self.strips = dict(self.per_element)
        self.padded: dict[int, list[float]] = {reduction: [] for reduction in self.per_element}

    def made(self) -> Statement:
        """Return the statement."""
        problem, law, native = self.problem, self.law, self.problem.native
        late = [op for op in self.on_tile if not problem.is_matmul[op]]
        for op in self.products:
            reduction = problem.reduction(op)
            axis = next(other for other in self.products if problem.reduction(other) == reduction)
            self._visit(self.subgraph.streams(op, axis), reduction, reach=reduction)
            whole = reduction if law.product_step == "own" else native[2]
            self.per_element[reduction] += problem.base[op] / whole
        for op in late:
            for tensor in problem.inputs[op]:
                if tensor not in self.subgraph.made:
                    self.wants.append((Want(tensor, ROWS, COLUMNS), 0, True))
        matmuls = [op for op in self.group.operators if problem.is_matmul[op]]
        depths = [problem.reduction(op) for op in matmuls]
        if law.k_capped:
            depths.append(native[2])
        beside = 0
        if law.accumulator == "beside":
            beside = sum(problem.outputs[op] not in self.outputs for op in self.products)
        stored = sum(tensor not in self.group.retained for tensor in self.outputs)
        kept = self.group.residents | self.group.retained
        return Statement(
            height=problem.heights[self.outputs[0]],
            width=problem.widths[self.outputs[0]],
            once=self.once,
            late=sum(problem.base[op] for op in late),
            depths=tuple(
                Depth(k, self.per_element[k], self.strips[k], tuple(sorted(self.padded[k])))
                for k in self.per_element
            ),
            wants=tuple(sorted(self._counted())),
            least_width=self._reductions(matmuls, 0),
            least_height=self._reductions(matmuls, 1),
            most_depth=min(depths) if matmuls else 1,
            stored=stored,
            held=stored + beside,
            room=problem.capacity - sum(map(problem.size, kept)),
        )

    def _reductions(self, matmuls: Sequence[int], side: int) -> tuple[int, ...]:
        """Return each K of the MatMuls for which a Pointwise makes the operand of this side."""
        found = {self.problem.reduction(op) for op in matmuls if self._pointwise(op, side)}
        return tuple(sorted(found))

    def _pointwise(self, op: int, side: int) -> bool:
        maker = self.subgraph.made.get(self.problem.inputs[op][side])
        return maker is not None and not self.problem.is_matmul[maker]

    def _visit(self, reads: Sequence[Want | Make], reduction: int, *, reach: int) -> None:
        for read in reads:
            if isinstance(read, Want):
                self.wants.append((read, reach, False))
                continue
            key = (read.operator, read.rows, read.columns)
            if key in self.makes or (self.bound and any(read.operator == op for op, _, _ in self.makes)):
                continue
            self.makes.add(key)
            moves = read.rows >= 0 or read.columns >= 0
            if moves or not self.bound or self.law.strips == "tile":
                self._work(read, reduction, moves)
            self._visit(read.reads, reduction, reach=reach if moves else 1)

    def _work(self, make: Make, reduction: int, moves: bool) -> None:
        problem, native = self.problem, self.problem.native
        matmul, output = problem.is_matmul[make.operator], problem.outputs[make.operator]
        work = problem.base[make.operator]
        sides = (
            (make.rows, problem.heights[output], native[1]),
            (make.columns, problem.widths[output], native[0]),
        )
        for axis, side, size in sides:
            if axis == WHOLE:
                work *= side / size if matmul else -(-side // size)
        if not moves:
            self.once += work
        elif matmul:
            self.strips[reduction] += work / native[2]
        else:
            self.padded[reduction].append(work)

    def _counted(self) -> Iterator[tuple[int, int, tuple[Slice, ...]]]:
        """Yield the slices of every tensor that counts."""
        slices: dict[int, set[Slice]] = {}
        for want, reach, late in self.wants:
            rows, columns = (AXES.get(axis, "depth") for axis in (want.rows, want.columns))
            slices.setdefault(want.tensor, set()).add(Slice(rows, columns, reach, late))
        for tensor, pieces in slices.items():
            if tensor not in self.group.residents:
                yield self.problem.heights[tensor], self.problem.widths[tensor], tuple(sorted(pieces))
