"""A problem of the contest: a graph of operators on matrices, and one chip.

Sizes are in elements. A MatMul reads [M, K] and [K, N]; a Pointwise reads tensors of its output's shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from math import isfinite
from pathlib import Path

from onchip.base.codec import decode, from_wire, wire_of
from onchip.base.errors import ModelError
from onchip.base.files import read_bytes

__all__ = ["Problem", "problem_from_json", "read_problem"]

MOST_SIDE, MOST_NATIVE, MOST_OPERATORS = 1 << 16, 1 << 10, 256
"""Far above the contest's: sides of 4,096, an array of 128, 152 operators."""

KINDS = ("MatMul", "Pointwise")


@dataclass(frozen=True, slots=True)
class ProblemRecord:
    """A problem's file, key by key."""

    widths: tuple[int, ...]
    heights: tuple[int, ...]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    base_costs: tuple[float, ...]
    op_types: tuple[str, ...]
    fast_memory_capacity: int
    slow_memory_bandwidth: float
    native_granularity: tuple[int, ...]


@dataclass(frozen=True)
class Problem:
    """Operators in the order of the file, tensors by number.

    `native` is (width, height, reduction) of the array; `base` the time of an operator on one native tile;
    `bandwidth` in elements per unit of time.
    """

    widths: tuple[int, ...]
    heights: tuple[int, ...]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]
    base: tuple[float, ...]
    is_matmul: tuple[bool, ...]
    capacity: int
    bandwidth: float
    native: tuple[int, int, int]

    @cached_property
    def maker(self) -> dict[int, int]:
        """The operator that makes a tensor, for every tensor that one makes."""
        return {tensor: op for op, tensor in enumerate(self.outputs)}

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """The operators that read each tensor, each once."""
        found: list[list[int]] = [[] for _ in self.widths]
        for op, read in enumerate(self.inputs):
            for tensor in dict.fromkeys(read):
                found[tensor].append(op)
        return tuple(map(tuple, found))

    @cached_property
    def results(self) -> tuple[int, ...]:
        """The tensors that no operator reads: what the graph is for."""
        return tuple(tensor for tensor in self.outputs if not self.readers[tensor])

    @cached_property
    def order(self) -> tuple[int, ...]:
        """All operators, each behind those that it reads from."""
        return tuple(
            TopologicalSorter({op: self.before(op) for op in range(len(self.outputs))}).static_order()
        )

    def before(self, op: int) -> list[int]:
        """Return the operators that make what an operator reads."""
        return [self.maker[tensor] for tensor in dict.fromkeys(self.inputs[op]) if tensor in self.maker]

    def reduction(self, op: int) -> int:
        """Return K of a MatMul."""
        return self.widths[self.inputs[op][0]]

    def size(self, tensor: int) -> int:
        """Return a tensor's elements."""
        return self.widths[tensor] * self.heights[tensor]


def read_problem(path: Path) -> Problem:
    """Return the problem in a file; raises `ModelError` with the file, the key and the reason."""
    return problem_from_json(read_bytes(path, error=ModelError), str(path))


def problem_from_json(content: bytes, where: str) -> Problem:
    """Return the problem in a file's content."""
    wire = decode(content, wire_of(ProblemRecord), where=where, error=ModelError)
    record: ProblemRecord = from_wire(ProblemRecord, wire)
    _check_counts(record, where)
    native = record.native_granularity
    made = Problem(
        widths=record.widths,
        heights=record.heights,
        inputs=record.inputs,
        outputs=tuple(outputs[0] for outputs in record.outputs),
        base=tuple(map(float, record.base_costs)),
        is_matmul=tuple(kind == "MatMul" for kind in record.op_types),
        capacity=record.fast_memory_capacity,
        bandwidth=float(record.slow_memory_bandwidth),
        native=(native[0], native[1], native[2] if len(native) == 3 else native[0]),
    )
    _check_graph(made, where)
    return made


def _check_counts(record: ProblemRecord, where: str) -> None:
    def refuse(item: str, reason: str) -> None:
        raise ModelError(reason, where=where, item=item)

    tensors, operators = len(record.widths), len(record.op_types)
    if len(record.heights) != tensors:
        refuse("heights", f"has {len(record.heights)} entries, widths {tensors}")
    if not 1 <= operators <= MOST_OPERATORS:
        refuse("op_types", f"has {operators} operators, not 1 to {MOST_OPERATORS:,}")
    for key in ("inputs", "outputs", "base_costs"):
        count = len(getattr(record, key))
        if count != operators:
            refuse(key, f"has {count} entries, op_types {operators}")
    for key, most in (("widths", MOST_SIDE), ("heights", MOST_SIDE), ("native_granularity", MOST_NATIVE)):
        for side in getattr(record, key):
            if not 1 <= side <= most:
                refuse(key, f"{side} is no size from 1 to {most:,}")
    if len(record.native_granularity) not in (2, 3):
        refuse("native_granularity", f"has {len(record.native_granularity)} numbers, not 2 or 3")
    if record.fast_memory_capacity < 1:
        refuse("fast_memory_capacity", f"{record.fast_memory_capacity} is no number of elements from 1 up")
    if not (isfinite(record.slow_memory_bandwidth) and record.slow_memory_bandwidth > 0):
        refuse("slow_memory_bandwidth", f"{record.slow_memory_bandwidth:g} is no positive number")
    for op, (kind, cost) in enumerate(zip(record.op_types, record.base_costs, strict=True)):
        if kind not in KINDS:
            refuse(f"operator {op}", f"{kind!r} is no type of operator: MatMul and Pointwise are")
        if not (isfinite(cost) and 0 <= cost <= 1e15):
            refuse(f"operator {op}", f"its base cost {cost:g} is no number from 0 to 1e15")
        if len(record.outputs[op]) != 1:
            refuse(f"operator {op}", f"has {len(record.outputs[op])} outputs, not one")
        for tensor in (*record.inputs[op], *record.outputs[op]):
            if not 0 <= tensor < tensors:
                refuse(f"operator {op}", f"names tensor {tensor}; there are {tensors}")


def _check_graph(problem: Problem, where: str) -> None:
    made: set[int] = set()
    for op, tensor in enumerate(problem.outputs):
        if tensor in made:
            raise ModelError(f"tensor {tensor} is made twice", where=where, item=f"operator {op}")
        made.add(tensor)
        reason = _wrong_shape(problem, op)
        if reason:
            raise ModelError(reason, where=where, item=f"operator {op}")
    try:
        _ = problem.order
    except CycleError as error:
        cycle = " -> ".join(map(str, error.args[1]))
        raise ModelError(f"operators read from one another in a circle: {cycle}", where=where) from None


def _wrong_shape(problem: Problem, op: int) -> str:
    def shape(tensor: int) -> tuple[int, int]:
        return problem.heights[tensor], problem.widths[tensor]

    read, out = problem.inputs[op], shape(problem.outputs[op])
    if problem.is_matmul[op]:
        if len(read) != 2:
            return f"a MatMul of {len(read)} inputs, not two"
        (rows, left), (right, columns) = shape(read[0]), shape(read[1])
        if left != right or out != (rows, columns):
            return f"a MatMul of {rows}x{left} and {right}x{columns} that makes {out[0]}x{out[1]}"
    elif not read:
        return "a Pointwise without inputs"
    else:
        for tensor in read:
            if shape(tensor) != out:
                return (
                    f"a Pointwise that reads {'x'.join(map(str, shape(tensor)))} and makes {out[0]}x{out[1]}"
                )
    return ""
