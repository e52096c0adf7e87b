"""The problem: a network to place, the capacity of every memory, and the cost of an access in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from onchip.machines.chip import Chip, Memory
from onchip.network import Network
from onchip.planners.placement.problem import Problem

__all__ = ["Levels", "MemoryProblem"]

PICOSECONDS = 10**12


@dataclass(frozen=True)
class Levels:
    """A chip's memories by number: bytes (whole multiples of the alignment), reach, picoseconds per byte."""

    names: tuple[str, ...]
    capacity: tuple[int, ...]
    operands: tuple[bool, ...]
    per_byte: tuple[Fraction, ...]

    @classmethod
    def of(cls, chip: Chip, memories: Sequence[Memory]) -> Levels:
        """Return the memories of a chip that states all rates, with the sizes of `memories`."""
        rates = [m.bytes_per_second or chip.rates.scratchpad_bytes_per_second for m in memories]
        return cls(
            tuple(m.name for m in memories),
            tuple(m.bytes // chip.alignment_bytes * chip.alignment_bytes for m in memories),
            tuple(m.operands for m in memories),
            tuple(PICOSECONDS / Fraction(rate) for rate in rates if rate is not None),
        )

    def price(self, memory: int, size: int) -> int:
        """Return the picoseconds of one access to `size` bytes, rounded up."""
        exact = size * self.per_byte[memory]
        return -(-exact.numerator // exact.denominator)

    @property
    def count(self) -> int:
        """The number of memories."""
        return len(self.names)

    @cached_property
    def reached(self) -> tuple[int, ...]:
        """The memories that operators reach, the fastest first."""
        return tuple(m for m in self.by_speed if self.operands[m])

    @cached_property
    def by_speed(self) -> tuple[int, ...]:
        """All memories, the fastest first."""
        return tuple(sorted(range(self.count), key=lambda m: (self.per_byte[m], m)))


@dataclass(frozen=True)
class MemoryProblem:
    """A placement problem in several memories.

    `accesses[v]` are, for each root tensor that operator v reads or writes, the bytes of its accesses (one
    for every operand, views included); `workspace[v]` the exact bytes of its workspace.
    """

    problem: Problem
    levels: Levels
    accesses: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...]
    workspace: tuple[int, ...]

    @classmethod
    def of(cls, network: Network, problem: Problem, levels: Levels) -> MemoryProblem:
        """Return the problem of a network on those memories."""
        rows = []
        for op in network.operators:
            touched: dict[int, tuple[int, ...]] = {}
            for t in (*op.inputs, *op.outputs):
                root = network.root[t]
                touched[root] = (*touched.get(root, ()), network.tensors[t].bytes)
            rows.append(tuple(touched.items()))
        return cls(problem, levels, tuple(rows), tuple(op.workspace for op in network.operators))

    @cached_property
    def run_price(self) -> tuple[dict[int, tuple[int, ...]], ...]:
        """By operator and tensor: the cost of its accesses with the tensor in each memory."""
        price, count = self.levels.price, self.levels.count
        return tuple(
            {t: tuple(sum(price(m, n) for n in sizes) for m in range(count)) for t, sizes in row}
            for row in self.accesses
        )

    @cached_property
    def scratch_price(self) -> tuple[tuple[int, ...], ...]:
        """By operator: the cost of its workspace in each memory."""
        return tuple(
            tuple(self.levels.price(m, n) if n else 0 for m in range(self.levels.count))
            for n in self.workspace
        )

    @cached_property
    def copy_price(self) -> tuple[tuple[int, ...], ...]:
        """By tensor: the cost of one side of a copy (load, store or move) in each memory."""
        price, count = self.levels.price, self.levels.count
        return tuple(tuple(price(m, n) for m in range(count)) for n in self.problem.cost)

    @cached_property
    def producer(self) -> dict[int, int]:
        """The operator that writes a tensor; graph inputs have none."""
        return {t: v for v, written in enumerate(self.problem.outputs) for t in written}

    @cached_property
    def before(self) -> tuple[int, ...]:
        """By operator: the bitset of those that precede it in every allowed order."""
        problem = self.problem
        if problem.order is not None:
            found, ran = [0] * len(problem.inputs), 0
            for v in problem.order:
                found[v] = ran
                ran |= 1 << v
            return tuple(found)
        closure: dict[int, int] = {}
        for v in self.some_order:
            direct = {self.producer[t] for t in problem.inputs[v] if t in self.producer}
            closure[v] = 0
            for u in direct:
                closure[v] |= closure[u] | 1 << u
        return tuple(closure[v] for v in range(len(problem.inputs)))

    @cached_property
    def some_order(self) -> tuple[int, ...]:
        """An allowed order."""
        problem = self.problem
        if problem.order is not None:
            return problem.order
        waiting = [sum(t in self.producer for t in row) for row in problem.inputs]
        readers: dict[int, list[int]] = {}
        for v, row in enumerate(problem.inputs):
            for t in row:
                readers.setdefault(t, []).append(v)
        ready, order = [v for v, n in enumerate(waiting) if not n][::-1], []
        while ready:
            v = ready.pop()
            order.append(v)
            for t in problem.outputs[v]:
                for u in readers.get(t, ()):
                    waiting[u] -= 1
                    if not waiting[u]:
                        ready.append(u)
        return tuple(order)
