"""The cost of a subgraph at its best tile, in closed form: the steps of a tile fall into a few classes.

The compiled core (`contest_price.h`) looks at every tile of whole numbers and every k; this module states the
subgraph for it. The verifier prices what is chosen again, step by step, and its figure is the claim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

from onchip import _core
from onchip.contest.demand import COLUMNS, ROWS, WHOLE, Make, Subgraph, Want
from onchip.contest.law import Law
from onchip.contest.problem import Problem
from onchip.contest.solution import Step

__all__ = ["Costs", "Group"]


@dataclass(frozen=True, slots=True)
class Group:
    """Operators with one output, in order; the resident tensor that they read; whether the output is one."""

    operators: tuple[int, ...]
    resident: int | None
    retained: bool


@dataclass(frozen=True, slots=True)
class _Found:
    latency: float
    tile: _core.ContestTile | None


class Costs:
    """Prices of the subgraphs of one problem under one law; equal ones are priced once.

    Those of several operators are priced as far as they can be in the seconds that are `left`.
    """

    def __init__(self, problem: Problem, law: Law, left: Callable[[], float | None] = lambda: None) -> None:
        self.problem, self.law, self.left = problem, law, left
        self._known: dict[tuple[object, ...], _Found] = {}

    def least(self, group: Group) -> float:
        """Return a latency that no tile, step and order of tiles is below; infinity if none fits.

        It is at most what the operators cost one by one, which is then as good a choice.
        """
        return self._price(group, True).latency

    def latency(self, group: Group) -> float:
        """Return the latency at the best tile, line by line; infinity if none fits.

        So it is where the operators cost less one by one, with the resident tensor written and loaded.
        """
        return self._price(group, False).latency

    def _limit(self, group: Group, bound: bool) -> float:
        """Return what the operators cost one by one."""
        if len(group.operators) == 1:
            return inf
        *others, last = group.operators
        limit = self._price(Group((last,), None, group.retained), bound).latency
        limit += sum(self._price(Group((op,), None, False), bound).latency for op in others)
        if not bound and group.resident is not None:
            limit += 2 * self.problem.size(group.resident) / self.problem.bandwidth
        return limit

    def step(self, group: Group) -> Step:
        """Return the group as a step of a schedule, at its best tile."""
        tile = self._price(group, False).tile
        if tile is None:
            raise ValueError(f"operators {group.operators} fit at no tile")
        output = self._output(group)
        across = -(-self.problem.widths[output] // tile.width)
        down = -(-self.problem.heights[output] // tile.height)
        return Step(
            operators=group.operators,
            width=tile.width,
            height=tile.height,
            depth=tile.depth,
            retained=(output,) if group.retained else (),
            traversal=_lines(across, down, tile) if across > 1 or down > 1 else None,
        )

    def _output(self, group: Group) -> int:
        return self.problem.outputs[group.operators[-1]]

    def _price(self, group: Group, bound: bool) -> _Found:
        key = (bound, group.resident is not None, group.retained, *self._shape(group))
        if key not in self._known:
            self._known[key] = self._ask(group, bound)
        return self._known[key]

    def _shape(self, group: Group) -> Iterator[object]:
        """Yield what the price depends on: operators and sizes, with tensors numbered as they come."""
        problem, number = self.problem, dict[int, int]()
        if group.resident is not None:
            number[group.resident] = 0
        for op in group.operators:
            yield problem.base[op]
            yield problem.is_matmul[op]
            for tensor in (*problem.inputs[op], problem.outputs[op]):
                yield number.setdefault(tensor, len(number) + 1)
                yield problem.heights[tensor]
                yield problem.widths[tensor]

    def _ask(self, group: Group, bound: bool) -> _Found:
        stated = _Statement(self.problem, self.law, group, bound).made()
        seconds = self.left() if len(group.operators) > 1 else None
        limit = self._limit(group, bound)
        tile = _core.contest_price(subgraph=stated, bound=bound, limit=limit, seconds=seconds)
        return _Found(tile.latency if tile.latency >= 0 else inf, tile)


class _Statement:
    """A group for the compiled core.

    In a bound, a tensor that is wanted in two shapes counts nothing, because one may be a part of the other;
    nor does the time of strips that may stay by the law, nor an operator that makes two kinds of strips.
    """

    def __init__(self, problem: Problem, law: Law, group: Group, bound: bool) -> None:
        self.problem, self.law, self.group, self.bound = problem, law, group, bound
        self.subgraph = Subgraph(problem, group.operators, 1)
        self.output = problem.outputs[group.operators[-1]]
        self.on_tile = self.subgraph.on_tile([self.output])
        self.products = [op for op in self.on_tile if problem.is_matmul[op]]
        self.wants: list[tuple[Want, int, bool]] = []
        """Each with its reach, and whether it is late."""
        self.makes: set[tuple[int, int, int]] = set()
        self.once = 0.0
        self.per_element = dict.fromkeys(sorted({problem.reduction(op) for op in self.products}), 0.0)
        self.strips = dict(self.per_element)
        self.padded: dict[int, list[float]] = {reduction: [] for reduction in self.per_element}

    def made(self) -> _core.ContestSubgraph:
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
        beside = len(self.products) if law.accumulator == "beside" else 0
        if beside and problem.is_matmul[self.group.operators[-1]]:
            beside -= 1
        stored = 0 if self.group.retained else 1
        kept = [self.output] if self.group.retained else []
        kept += [] if self.group.resident is None else [self.group.resident]
        return _core.ContestSubgraph(
            height=problem.heights[self.output],
            width=problem.widths[self.output],
            once=self.once,
            late=sum(problem.base[op] for op in late),
            depths=[
                _core.ContestDepth(
                    reduction=reduction,
                    per_element=self.per_element[reduction],
                    strips=self.strips[reduction],
                    padded=self.padded[reduction],
                )
                for reduction in self.per_element
            ],
            wants=list(self._counted()),
            least_width=[problem.reduction(op) for op in matmuls if self._pointwise(op, 0)],
            least_height=[problem.reduction(op) for op in matmuls if self._pointwise(op, 1)],
            most_depth=min(depths) if matmuls else 1,
            stored=stored,
            held=stored + beside,
            room=problem.capacity - sum(map(problem.size, kept)),
            bandwidth=problem.bandwidth,
            native=native,
            kept=law.strips == "kept",
        )

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

    def _counted(self) -> Iterator[_core.ContestWant]:
        shapes = Counter(want.tensor for want in {want for want, _, _ in self.wants})
        for want, reach, late in self.wants:
            if want.tensor == self.group.resident or (self.bound and shapes[want.tensor] > 1):
                continue
            yield _core.ContestWant(
                tensor=want.tensor,
                height=self.problem.heights[want.tensor],
                width=self.problem.widths[want.tensor],
                rows=_AXES.get(want.rows, "depth"),
                columns=_AXES.get(want.columns, "depth"),
                reach=reach,
                late=late,
            )


_AXES: dict[int, Literal["tile", "depth", "whole"]] = {ROWS: "tile", COLUMNS: "tile", WHOLE: "whole"}


def _lines(across: int, down: int, tile: _core.ContestTile) -> tuple[int, ...] | None:
    """Return the order of tiles along lines from the tile's corner, back or again the same way."""
    columns, rows = range(across), range(down)
    order = []
    lines, along = (columns, rows) if tile.by_columns else (rows, columns)
    late_line = tile.from_right if tile.by_columns else tile.from_bottom
    late_tile = tile.from_bottom if tile.by_columns else tile.from_right
    for n, line in enumerate(reversed(lines) if late_line else lines):
        for at in reversed(along) if (n % 2 == 0 or not tile.turns) == late_tile else along:
            order.append(at * across + line if tile.by_columns else line * across + at)
    return tuple(order)
