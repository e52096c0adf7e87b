"""A graph of rows: every operator makes the rows of one map, one in each step, from rows of other maps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

__all__ = ["Operand", "RowGraph", "RowOperator", "Rows"]

Rows = tuple[int, int]
"""Rows [first, end)."""


@dataclass(frozen=True, slots=True)
class Operand:
    """The rows of the map of operator `maker` that each step reads: one window for each step.

    `distance`: the step's row may start so many bytes below a row that it reads for the last time, because it
    is written from left to right (negative: the row may even start behind). `columns`: the columns that each
    column of the row is made of; none where it is not known, and all are read.
    """

    maker: int
    windows: tuple[Rows, ...]
    distance: int
    columns: tuple[Rows, ...] = ()


@dataclass(frozen=True, slots=True)
class RowOperator:
    """An operator that makes `steps` rows of `bytes` bytes; an input has no operands.

    A `held` input lies in memory from the start, another one comes row by row. The rows of a `kept` operator
    are an output: they stay to the end. An operator `anew` makes what another operator makes, too. `work`
    are multiply-accumulates of all of its steps. A row that can be made in strips has so many `columns`.
    """

    name: str
    steps: int
    bytes: int
    operands: tuple[Operand, ...] = ()
    kept: bool = False
    held: bool = False
    anew: bool = False
    work: int = 0
    columns: int = 0


@dataclass(frozen=True)
class RowGraph:
    """Operators in an order in which they can run; operands name earlier ones, or the operator itself."""

    operators: tuple[RowOperator, ...]

    def __post_init__(self) -> None:
        for i, op in enumerate(self.operators):
            if op.steps < 1 or op.bytes < 1:
                raise ValueError(f"{op.name}: no rows, or empty ones")
            if op.held and op.operands:
                raise ValueError(f"{op.name}: an input that reads")
            if op.columns and op.bytes % op.columns:
                raise ValueError(f"{op.name}: a row of {op.bytes} bytes is not {op.columns} columns")
            for operand in op.operands:
                if operand.maker > i:
                    raise ValueError(f"{op.name}: reads an operator behind it")
                if len(operand.windows) != op.steps:
                    raise ValueError(f"{op.name}: {len(operand.windows)} windows for {op.steps} steps")
                if op.columns and operand.columns and len(operand.columns) != op.columns:
                    raise ValueError(f"{op.name}: {len(operand.columns)} windows for {op.columns} columns")
                for step, (first, end) in enumerate(operand.windows):
                    there = step if operand.maker == i else self.operators[operand.maker].steps
                    if not 0 <= first <= end <= there:
                        raise ValueError(f"{op.name}: step {step} reads rows {first} to {end} of {there}")

    @cached_property
    def readers(self) -> tuple[tuple[tuple[int, Operand], ...], ...]:
        """The operators that read each operator's map, each with its operand."""
        found: list[list[tuple[int, Operand]]] = [[] for _ in self.operators]
        for i, op in enumerate(self.operators):
            for operand in op.operands:
                found[operand.maker].append((i, operand))
        return tuple(map(tuple, found))

    @property
    def inputs(self) -> tuple[int, ...]:
        """The operators without operands."""
        return tuple(i for i, op in enumerate(self.operators) if not op.operands)

    @property
    def outputs(self) -> tuple[int, ...]:
        """The operators whose rows are kept."""
        return tuple(i for i, op in enumerate(self.operators) if op.kept)

    @property
    def steps(self) -> int:
        """Steps of all operators."""
        return sum(op.steps for op in self.operators)

    @property
    def work(self) -> int:
        """Multiply-accumulates of the whole graph."""
        return sum(op.work for op in self.operators)

    def held(self) -> RowGraph:
        """Return the graph with its inputs in memory from the start."""
        return self._inputs(held=True)

    def by_rows(self) -> RowGraph:
        """Return the graph with its inputs coming row by row."""
        return self._inputs(held=False)

    def _inputs(self, *, held: bool) -> RowGraph:
        return RowGraph(tuple(op if op.operands else replace(op, held=held) for op in self.operators))
