"""The least cost in several memories by Dijkstra over elementary moves: nothing pruned, addresses left aside.

A state says what ran, where each tensor is, what DRAM holds and which inputs have been loaded. Every single
load, move, store, free and run is an edge, each written from the definitions of docs/plan-program.md.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from heapq import heappop, heappush

from onchip.machines.chip import Memory
from onchip.network import Network

OUT = -1


def access(memory: Memory, size: int) -> int:
    assert memory.bytes_per_second is not None
    exact = size * 10**12 / Fraction(memory.bytes_per_second)
    return -(-exact.numerator // exact.denominator)


def least_cost(network: Network, memories: tuple[Memory, ...], alignment: int = 1) -> tuple[int, int] | None:
    """(bytes of traffic, picoseconds), the least in that order; None where some operator never fits."""
    names = [t.id for t in network.tensors if network.root[t.id] == t.id]
    occupies = {t: -(-network.tensors[t].bytes // alignment) * alignment for t in names}
    size = {t: network.tensors[t].bytes for t in names}
    inputs = frozenset(t for t in names if network.tensors[t].kind == "input")
    outputs = frozenset(network.root[t] for t in network.outputs)
    operators = []
    for op in network.operators:
        reads = frozenset(network.root[t] for t in op.inputs)
        writes = frozenset(network.root[t] for t in op.outputs)
        touched = [(network.root[t], network.tensors[t].bytes) for t in (*op.inputs, *op.outputs)]
        operators.append((reads, writes, op.workspace, touched))

    def room(at: frozenset[tuple[int, int]], m: int) -> int:
        return memories[m].bytes // alignment * alignment - sum(occupies[t] for t, where in at if where == m)

    start = (frozenset[int](), frozenset[tuple[int, int]](), inputs, frozenset[int]())
    heap = [((0, 0), 0, start)]
    done: set[object] = set()
    number = itertools.count(1)
    while heap:
        cost, _, state = heappop(heap)
        if state in done:
            continue
        done.add(state)
        ran, at, copies, loaded = state
        if len(ran) == len(operators) and outputs <= copies:
            return cost
        where = dict(at)

        def push(traffic: int, time: int, *after: object, cost: tuple[int, int] = cost) -> None:
            heappush(heap, ((cost[0] + traffic, cost[1] + time), next(number), after))  # type: ignore[misc]

        for t, m in where.items():
            here = at - {(t, m)}
            still = any(t in reads and v not in ran for v, (reads, *_) in enumerate(operators))
            if t in copies or not (still or t in outputs):
                push(0, 0, ran, here, copies, loaded)
            owed = 0 if t in outputs and t not in copies else size[t]
            push(owed, access(memories[m], size[t]), ran, at, copies | {t}, loaded)
            for n in range(len(memories)):
                if occupies[t] <= room(at, n):
                    both = access(memories[m], size[t]) + access(memories[n], size[t])
                    push(0, both, ran, here | {(t, n)}, copies, loaded)
        for t in copies:
            if t not in where:
                again = 0 if t in inputs and t not in loaded else size[t]
                for n in range(len(memories)):
                    if occupies[t] <= room(at, n):
                        once = loaded | {t} if t in inputs else loaded
                        push(again, access(memories[n], size[t]), ran, at | {(t, n)}, copies, once)
        for v, (reads, writes, workspace, touched) in enumerate(operators):
            if v in ran or not all(t in where and memories[where[t]].operands for t in reads):
                continue
            for homes in itertools.product(range(len(memories)), repeat=len(writes) + bool(workspace)):
                if not all(memories[m].operands for m in homes):
                    continue
                made = dict(zip(sorted(writes), homes, strict=False))
                needs = [0] * len(memories)
                for t, m in made.items():
                    needs[m] += occupies[t]
                time = sum(access(memories[{**where, **made}[t]], n) for t, n in touched)
                if workspace:
                    needs[homes[-1]] += -(-workspace // alignment) * alignment
                    time += access(memories[homes[-1]], workspace)
                if all(needs[m] <= room(at, m) for m in range(len(memories))):
                    push(0, time, ran | {v}, at | set(made.items()), copies, loaded)
    return None
