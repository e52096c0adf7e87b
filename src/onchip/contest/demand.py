"""The wants of one subgraph in a step: slices of tensors from outside, and what its operators make of them.

A subgraph makes its outputs tile by tile. Operators that reach the outputs through Pointwise only work on
the output's tile; a MatMul among them adds up its sums over steps of k. Whatever stands before such a MatMul
makes strips for it. All slices are stated along *axes*, whose ranges only a tile and a step give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from onchip.base.errors import IllegalSchedule
from onchip.contest.problem import Problem

__all__ = ["COLUMNS", "ROWS", "WHOLE", "Make", "Subgraph", "Want"]

ROWS, COLUMNS, WHOLE = -1, -2, -3
"""Axes: the tile's rows, its columns, all of the side; 0 and up is the step of this operator's reduction."""


@dataclass(frozen=True, slots=True)
class Want:
    """A slice of a tensor from outside: its rows and its columns, as axes."""

    tensor: int
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Make:
    """A slice of its output that an operator makes for a MatMul of the subgraph, and what it reads."""

    operator: int
    rows: int
    columns: int
    reads: tuple[Want | Make, ...]


@dataclass(frozen=True)
class Subgraph:
    """Operators that run as one step of a schedule, in order, with their k."""

    problem: Problem
    operators: tuple[int, ...]
    depth: int

    @cached_property
    def _slices(self) -> dict[tuple[int, int, int], Want | Make]:
        return {}

    @cached_property
    def made(self) -> dict[int, int]:
        """The operator of the subgraph that makes a tensor."""
        return {self.problem.outputs[op]: op for op in self.operators}

    @cached_property
    def read(self) -> frozenset[int]:
        """All tensors that its operators read."""
        return frozenset(tensor for op in self.operators for tensor in self.problem.inputs[op])

    @cached_property
    def outside(self) -> tuple[int, ...]:
        """The tensors that it reads and does not make."""
        return tuple(sorted(tensor for tensor in self.read if tensor not in self.made))

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The tensors that it makes and does not use up."""
        return tuple(tensor for tensor in self.made if tensor not in self.read)

    def on_tile(self, outputs: Sequence[int]) -> tuple[int, ...]:
        """Return the operators on the outputs' tile: reached from the outputs through Pointwise only."""
        found: dict[int, None] = {}
        ahead = [self.made[tensor] for tensor in reversed(outputs)]
        while ahead:
            op = ahead.pop()
            if op in found:
                continue
            found[op] = None
            if not self.problem.is_matmul[op]:
                ahead += [self.made[t] for t in self.problem.inputs[op] if t in self.made]
        return tuple(found)

    def streams(self, op: int, axis: int | None = None) -> tuple[Want | Make, Want | Make]:
        """Return what each step of a MatMul on the tile reads: h x k of the left, k x w of the right.

        The steps are the axis of the MatMul itself, or that of another one with the same K.
        """
        axis = op if axis is None else axis
        left, right = self.problem.inputs[op]
        return self._strip(left, ROWS, axis), self._strip(right, axis, COLUMNS)

    def _strip(self, tensor: int, rows: int, columns: int) -> Want | Make:
        """Return an operand of a MatMul that adds up its sums over steps.

        A Pointwise makes all of K at once, for it sees a tile's whole width or height (L13).
        """
        maker = self.made.get(tensor)
        if maker is not None and not self.problem.is_matmul[maker]:
            rows, columns = (rows, WHOLE) if rows == ROWS else (WHOLE, columns)
        return self._slice(tensor, rows, columns)

    def _slice(self, tensor: int, rows: int, columns: int) -> Want | Make:
        """Return a slice, the same one where several operators read it: paths may be many."""
        key = (tensor, rows, columns)
        if key not in self._slices:
            self._slices[key] = self._new_slice(tensor, rows, columns)
        return self._slices[key]

    def _new_slice(self, tensor: int, rows: int, columns: int) -> Want | Make:
        op = self.made.get(tensor)
        if op is None:
            return Want(tensor, rows, columns)
        inputs = self.problem.inputs[op]
        if self.problem.is_matmul[op]:  # its own reduction is whole (L12)
            reads = [self._slice(inputs[0], rows, WHOLE), self._slice(inputs[1], WHOLE, columns)]
        else:
            reads = [self._slice(read, rows, columns) for read in dict.fromkeys(inputs)]
        return Make(op, rows, columns, tuple(reads))

    def check(self, width: int, height: int, where: str) -> None:
        """Refuse an order against the edges (L1, L13), operators that nothing connects (L2)."""
        problem = self.problem
        behind = set[int]()
        for op in self.operators:
            behind.add(op)
            for tensor in problem.inputs[op]:
                maker = self.made.get(tensor)
                if maker is not None and maker not in behind:
                    raise IllegalSchedule(
                        "L1", f"{where}: operator {op} stands before {maker}, which makes tensor {tensor}"
                    )
            if problem.is_matmul[op]:
                self._check_matmul(op, width, height, where)
        self._check_connected(where)

    def _check_matmul(self, op: int, width: int, height: int, where: str) -> None:
        problem, reduction = self.problem, self.problem.reduction(op)
        if self.depth > reduction:
            raise IllegalSchedule(
                "L1", f"{where}: k = {self.depth} is above K = {reduction} of operator {op}"
            )
        if self.depth == reduction:
            return
        for tensor, side, seen in zip(problem.inputs[op], ("w", "h"), (width, height), strict=True):
            maker = self.made.get(tensor)
            if maker is not None and not problem.is_matmul[maker] and seen < reduction:
                reason = (
                    f"a Pointwise makes it for MatMul {op}, whose K = {reduction} is above k = {self.depth}"
                )
                raise IllegalSchedule("L13", f"{where}: tensor {tensor}: {reason} and {side} = {seen}")

    def _check_connected(self, where: str) -> None:
        ahead, reached = [self.operators[0]], {self.operators[0]}
        while ahead:
            op = ahead.pop()
            near = [self.made[t] for t in self.problem.inputs[op] if t in self.made]
            near += [r for r in self.problem.readers[self.problem.outputs[op]] if r in self.operators]
            ahead += [other for other in near if other not in reached]
            reached.update(near)
        for op in self.operators:
            if op not in reached:
                raise IllegalSchedule("L2", f"{where}: no tensor made inside connects operator {op}")
