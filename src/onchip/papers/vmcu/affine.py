"""Loop nests in vMCU's form (section 4): affine domains and accesses, and its offset problem, exactly.

A loop nest runs through the instances i with H i + B < 0 in lexicographic order; instance i accesses element
A i + V of a tensor, which lies L (A i + V) units behind the tensor's start. A unit is a segment: one byte or
any number of them. Equation 1 asks how far the output must start before the input so that no read finds an
earlier instance's write.

Read literally, the equation has every instance write, and lets a read meet the address of an earlier write.
Here a write happens at those instances where the kernel stores, an instance reads before it writes, and an
earlier write must lie strictly below: the exact condition. For the paper's matrix product both give the same;
`printed_distance` is there for the cases where they do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

__all__ = [
    "Access",
    "Domain",
    "LoopNest",
    "Method",
    "Operand",
    "chain_distance",
    "least_distance",
    "printed_distance",
]

Vector = tuple[int, ...]
Matrix = tuple[Vector, ...]
Form = tuple[Vector, int]
"""A linear form over the loop variables: coefficients and constant."""

Method = Literal["auto", "closed", "solver", "walk"]


def dot(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


@dataclass(frozen=True, slots=True)
class Domain:
    """The iteration instances i with H i + B < 0, row by row (`h`, `b`)."""

    h: Matrix
    b: Vector

    @classmethod
    def box(cls, *sizes: int) -> Domain:
        """Return the domain 0 <= i[d] < sizes[d]."""
        rows, limits = [], []
        for d, size in enumerate(sizes):
            unit = tuple(int(e == d) for e in range(len(sizes)))
            rows += [tuple(-x for x in unit), unit]
            limits += [-1, -size]
        return cls(tuple(rows), tuple(limits))

    def where(self, *forms: Form) -> Domain:
        """Return the instances at which each of these forms is negative too."""
        return Domain((*self.h, *(row for row, _ in forms)), (*self.b, *(constant for _, constant in forms)))

    @property
    def dimensions(self) -> int:
        return len(self.h[0])

    @property
    def is_box(self) -> bool:
        """True if no row involves two variables."""
        return all(sum(x != 0 for x in row) <= 1 and set(row) <= {-1, 0, 1} for row in self.h)

    @property
    def bounds(self) -> tuple[tuple[int, int], ...]:
        """For each variable the first value and the one after the last that its own rows allow.

        Raises `ValueError` where they leave it unbounded.
        """
        low: list[list[int]] = [[] for _ in range(self.dimensions)]
        end: list[list[int]] = [[] for _ in range(self.dimensions)]
        for row, constant in zip(self.h, self.b, strict=True):
            used = [d for d, x in enumerate(row) if x]
            if len(used) == 1 and row[used[0]] == 1:
                end[used[0]].append(-constant)
            elif len(used) == 1 and row[used[0]] == -1:
                low[used[0]].append(constant + 1)
        for d in range(self.dimensions):
            if not low[d] or not end[d]:
                raise ValueError(f"loop variable {d} has no bound")
        return tuple((max(firsts), min(ends)) for firsts, ends in zip(low, end, strict=True))

    def __contains__(self, i: Sequence[int]) -> bool:
        return all(dot(row, i) + constant < 0 for row, constant in zip(self.h, self.b, strict=True))

    def __iter__(self) -> Iterator[Vector]:
        """Yield the instances in lexicographic order."""
        return (i for i in product(*(range(*ends) for ends in self.bounds)) if i in self)


@dataclass(frozen=True, slots=True)
class Access:
    """The access function u = A i + V (`matrix`, `offset`)."""

    matrix: Matrix
    offset: Vector

    def at(self, i: Sequence[int]) -> Vector:
        """Return the indices that instance i accesses."""
        return tuple(dot(row, i) + v for row, v in zip(self.matrix, self.offset, strict=True))


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor as a loop nest accesses it, at the instances of `when`; `mapping` is L, strides in units."""

    when: Domain
    access: Access
    mapping: Vector

    def address(self, i: Sequence[int]) -> int:
        """Return the units behind the tensor's start."""
        return dot(self.mapping, self.access.at(i))

    @property
    def form(self) -> Form:
        """The address as a linear form of the instance: L A and L V."""
        columns = zip(*self.access.matrix, strict=True)
        return tuple(dot(self.mapping, column) for column in columns), dot(self.mapping, self.access.offset)


@dataclass(frozen=True, slots=True)
class LoopNest:
    """One layer's kernel: its domain, its read, and its write after that."""

    domain: Domain
    read: Operand
    write: Operand


def least_distance(nest: LoopNest, method: Method = "auto") -> int:
    """Return vMCU eq. 1: the fewest units b_In - b_Out that are safe, 0 at least.

    `closed` requires boxes, `solver` solves an integer programme for each depth at which two instances may
    part, `walk` goes through the domain. All are exact.
    """
    if method == "walk":
        return _walked(nest)
    return _greatest(nest.read, nest.write, nest.domain.dimensions, method)


def chain_distance(
    first: Operand, last: Operand, common: int, method: Literal["auto", "closed", "solver"] = "auto"
) -> int:
    """Return vMCU eq. 2: the fewest units b_In* - b_Out* of a fused kernel that reads In* and writes Out*.

    Their loops begin with the same `common` ones; in a turn of those all reads come before the write.
    """
    return _greatest(first, last, common, method)


def printed_distance(nest: LoopNest) -> int:
    """Return equation 1 to the letter: every instance writes, and no later read lies *below* an earlier
    write.

    The tests show what it loses for a kernel that writes a row from its end to its start.
    """
    write = Operand(nest.domain, nest.write.access, nest.write.mapping)
    highest: int | None = None
    most = 0
    for i in nest.domain:
        highest = write.address(i) if highest is None else max(highest, write.address(i))
        if i in nest.read.when:
            most = max(most, highest - nest.read.address(i))
    return most


def _walked(nest: LoopNest) -> int:
    highest: int | None = None
    most = 0
    for i in nest.domain:
        if highest is not None and i in nest.read.when:
            most = max(most, highest + 1 - nest.read.address(i))
        if i in nest.write.when:
            highest = nest.write.address(i) if highest is None else max(highest, nest.write.address(i))
    return most


def _greatest(read: Operand, write: Operand, common: int, method: Method) -> int:
    """Return the greatest (write's end - read) over writes j before reads i: equal to a depth, then j < i."""
    boxes = read.when.is_box and write.when.is_box
    if method == "closed" and not boxes:
        raise ValueError("a closed form wants domains that are boxes")
    part = _parted_in_boxes if boxes and method != "solver" else _parted_by_solver
    found = (part(read, write, depth) for depth in range(common))
    return max([0, *(distance for distance in found if distance is not None)])


def _parted_in_boxes(read: Operand, write: Operand, depth: int) -> int | None:
    """Return the greatest over boxes: every variable is at an end, except the two of the depth."""
    (reads, read_at), (writes, write_at) = read.form, write.form
    ins, outs = read.when.bounds, write.when.bounds
    if any(first >= end for first, end in (*ins, *outs)):
        return None
    total = write_at + 1 - read_at
    for d in range(depth):
        first, end = max(ins[d][0], outs[d][0]), min(ins[d][1], outs[d][1])
        if first >= end:
            return None
        total += max((writes[d] - reads[d]) * x for x in (first, end - 1))
    (i_first, i_end), (j_first, j_end) = ins[depth], outs[depth]
    i_ends, j_ends = (i_first, i_end - 1), (j_first, j_end - 1)
    corners = [*product(j_ends, i_ends), *((i - 1, i) for i in i_ends), *((j, j + 1) for j in j_ends)]
    apart = [
        writes[depth] * j - reads[depth] * i
        for j, i in corners
        if j < i and j_first <= j < j_end and i_first <= i < i_end
    ]
    if not apart:
        return None
    total += max(apart)
    for coefficients, bounds in (writes, outs), (tuple(-x for x in reads), ins):
        for d in range(depth + 1, len(bounds)):
            first, end = bounds[d]
            total += max(coefficients[d] * first, coefficients[d] * (end - 1))
    return total


def _parted_by_solver(read: Operand, write: Operand, depth: int) -> int | None:
    """Return the same for any affine domains, as an integer programme."""
    from ortools.sat.python import cp_model

    (reads, read_at), (writes, write_at) = read.form, write.form
    model = cp_model.CpModel()

    def instance(domain: Domain, name: str) -> list[cp_model.IntVar]:
        made = [
            model.new_int_var(first, end - 1, f"{name}{d}") for d, (first, end) in enumerate(domain.bounds)
        ]
        for row, constant in zip(domain.h, domain.b, strict=True):
            if sum(x != 0 for x in row) > 1:
                model.add(cp_model.LinearExpr.weighted_sum(made, row) + constant <= -1)
        return made

    if any(first >= end for first, end in (*read.when.bounds, *write.when.bounds)):
        return None
    i, j = instance(read.when, "i"), instance(write.when, "j")
    for d in range(depth):
        model.add(i[d] == j[d])
    model.add(j[depth] + 1 <= i[depth])
    apart = cp_model.LinearExpr.weighted_sum(j, writes) - cp_model.LinearExpr.weighted_sum(i, reads)
    model.maximize(apart)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    if status != cp_model.OPTIMAL:
        raise RuntimeError(f"the solver ended with {solver.status_name(status)}")
    best: float = solver.objective_value
    return round(best) + write_at + 1 - read_at
