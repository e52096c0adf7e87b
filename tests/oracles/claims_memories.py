"""The least traffic, and then the least time at memories, on a chip with several, by elementary moves.

Load, store, move, free, alloc and run (docs/plan-program.md, several memories): which memory everything lies
in is tried, occupancy of each counted; addresses are then looked for along the moves.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from onchip.machines.chip import Memory
from onchip.network import Network, bits
from onchip.plans import Alloc, Free, Instruction, Load, Move, Run, Scratch, Store
from oracles.claims_lay import lay
from oracles.claims_placement import Question, Undecided

__all__ = ["Cost", "Memories", "Undecided"]

Cost = tuple[int, int]
"""Bytes of traffic, picoseconds at memories."""

State = tuple[int, tuple[int, ...], int, int]
"""Operators that have run, the memory of every tensor (-1: none), DRAM's copies, inputs loaded before."""

PICOSECONDS = 10**12


@dataclass(frozen=True)
class Memories:
    """One network and the memories; rates divide a second into whole picoseconds a byte."""

    asked: Question
    memories: Sequence[Memory]
    moves: bool = True

    @property
    def network(self) -> Network:
        return self.asked.network

    def rate(self, memory: int) -> int:
        stated = self.memories[memory].bytes_per_second
        assert stated is not None
        return round(PICOSECONDS / stated)

    def cheaper(self, limit: Cost | None, most: int = 60_000) -> tuple[Cost, list[Instruction]] | None:
        """(cost, program without addresses) of the cheapest below `limit`, or None."""
        network = self.network
        rates = [self.rate(m) for m in range(len(self.memories))]
        fast = [r for r, m in zip(rates, self.memories, strict=True) if m.operands]
        if not fast:
            return None
        least = min(fast)
        touched = [
            (sum(network.tensors[t].bytes for t in (*op.inputs, *op.outputs)) + op.workspace) * least
            for op in network.operators
        ]
        everything = (1 << len(network.operators)) - 1

        def floor(state: State) -> int:
            left = sum(n for v, n in enumerate(touched) if not state[0] >> v & 1)
            outputs = network.output_roots & ~state[2]
            return left + sum(network.tensors[t].bytes for t in bits(outputs)) * min(rates)

        start: State = (0, (-1,) * len(network.tensors), network.input_roots, 0)
        best: dict[State, Cost] = {start: (0, 0)}
        came: dict[State, tuple[State, list[Instruction]]] = {}
        heap: list[tuple[Cost, Cost, int, State]] = [((0, floor(start)), (0, 0), 0, start)]
        count = 0
        while heap:
            _, cost, _, state = heapq.heappop(heap)
            if cost > best[state]:
                continue
            if state[0] == everything and not network.output_roots & ~state[2]:
                program: list[Instruction] = []
                while state in came:
                    state, steps = came[state]
                    program[:0] = steps
                return cost, program
            if len(best) > most:
                raise Undecided
            for (traffic, wait), after, steps in self._moves(state, rates):
                total = cost[0] + traffic, cost[1] + wait
                bound = total[0], total[1] + floor(after)
                if (limit is None or bound < limit) and total < best.get(after, (1 << 62, 0)):
                    best[after], came[after] = total, (state, steps)
                    count += 1
                    heapq.heappush(heap, (bound, total, count, after))
        return None

    def _moves(self, state: State, rates: Sequence[int]) -> Iterator[tuple[Cost, State, list[Instruction]]]:
        done, where, copies, loaded = state
        network, asked = self.network, self.asked
        name = [t.name for t in network.tensors]
        size = [t.bytes for t in network.tensors]
        free = [m.bytes // asked.alignment * asked.alignment for m in self.memories]
        for t, m in enumerate(where):
            if m >= 0:
                free[m] -= asked.up(size[t])

        def at(t: int, m: int) -> tuple[int, ...]:
            return (*where[:t], m, *where[t + 1 :])

        for t, m in enumerate(where):
            if m < 0:
                continue
            if copies >> t & 1:
                yield (0, 0), (done, at(t, -1), copies, loaded), [Free(name[t])]
            else:
                traffic = 0 if network.output_roots >> t & 1 else size[t]
                yield (traffic, size[t] * rates[m]), (done, where, copies | 1 << t, loaded), [Store(name[t])]
            for other in range(len(free)) if self.moves else ():
                if other != m and asked.up(size[t]) <= free[other]:
                    wait = size[t] * (rates[m] + rates[other])
                    step = Move(name[t], 0, self.memories[other].name)
                    yield (0, wait), (done, at(t, other), copies, loaded), [step]
        for t in bits(copies):
            if where[t] >= 0 or not network.readers[t] & ~done:
                continue
            again = not network.input_roots >> t & 1 or loaded >> t & 1
            new = loaded | (1 << t & network.input_roots)
            for m in range(len(free)):
                if asked.up(size[t]) <= free[m]:
                    cost = (size[t] if again else 0), size[t] * rates[m]
                    yield cost, (done, at(t, m), copies, new), [Load(name[t], 0, self.memories[m].name)]
        for v in asked.ready(done):
            yield from self._runs(state, v, free, rates)

    def _runs(
        self, state: State, v: int, free: Sequence[int], rates: Sequence[int]
    ) -> Iterator[tuple[Cost, State, list[Instruction]]]:
        done, where, copies, loaded = state
        network, asked = self.network, self.asked
        op = network.operators[v]
        reads = list(bits(network.reads[v]))
        if any(where[t] < 0 or not self.memories[where[t]].operands for t in reads):
            return
        reachable = [m for m, memory in enumerate(self.memories) if memory.operands]
        writes = list(bits(network.writes[v]))
        ran = done | 1 << v
        waited = sum(network.tensors[t].bytes * rates[where[network.root[t]]] for t in op.inputs)
        for homes in product(reachable, repeat=len(writes) + bool(op.workspace)):
            left = list(free)
            for t, m in zip(writes, homes, strict=False):
                left[m] -= asked.up(network.tensors[t].bytes)
            if op.workspace:
                left[homes[-1]] -= asked.up(op.workspace)
            if min(left) < 0:
                continue
            there, wait, steps = list(where), waited, list[Instruction]()
            for t, m in zip(writes, homes, strict=False):
                there[t] = m
                steps.append(Alloc(network.tensors[t].name, 0, memory=self.memories[m].name))
            wait += sum(network.tensors[t].bytes * rates[there[network.root[t]]] for t in op.outputs)
            if op.workspace:
                steps.append(Scratch(op.name, 0, self.memories[homes[-1]].name))
                wait += op.workspace * rates[homes[-1]]
            steps.append(Run(op.name))
            for t, m in enumerate(there):
                kept = network.readers[t] & ~ran or (network.output_roots & ~copies) >> t & 1
                if m >= 0 and not kept:
                    there[t] = -1
                    steps.append(Free(network.tensors[t].name))
            yield (0, wait), (ran, tuple(there), copies, loaded), steps

    def laid(self, program: list[Instruction]) -> list[Instruction] | None:
        """The program with addresses; None where none were found."""
        sizes = {t.name: self.asked.up(t.bytes) for t in self.network.tensors}
        scratches = {op.name: self.asked.up(op.workspace) for op in self.network.operators}
        budgets: dict[str | None, int] = {m.name: m.bytes for m in self.memories}
        return lay(program, sizes, scratches, budgets, self.asked.alignment)
