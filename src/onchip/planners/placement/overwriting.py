"""Outputs written over inputs (`--in-place`): the possible ones, and their effect on the least budget.

An element-wise operator reads element i of an input before it writes element i of its output, so the output
may take the place of an input of its size, if nothing reads that input afterwards. Whether an input dies with
an operator depends on the order alone, and the more operators have run, the more inputs die:
docs/placement-proofs.md, which proves the search for this case, rests on that. The proof that no byte is lost
is the checker's (`onchip.check.may_overwrite`).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from onchip.check import may_overwrite
from onchip.network import Network, bits

__all__ = ["HardestStep", "hardest_step", "overwritable"]


def overwritable(network: Network) -> tuple[tuple[int, ...], ...]:
    """Return for each operator the inputs that its output may be written over, if they die with it.

    Byte for byte, and only if the checker proves it from the operator's geometry: an element-wise operator
    with one output, and an input of exactly its bytes that is no view and is read whole.
    """
    result = []
    for op in network.operators:
        found: list[int] = []
        if len(op.outputs) == 1 and op.geometry is not None and op.geometry.kind == "elementwise":
            [y] = op.outputs
            found = [
                x
                for x in bits(network.reads[op.id])
                if network.tensors[x].bytes == network.tensors[y].bytes
                and may_overwrite(network, op.id, y, x)
            ]
        result.append(tuple(found))
    return tuple(result) if any(result) else ()


@dataclass(frozen=True, slots=True)
class HardestStep:
    """The step with the largest need: `bytes` for `operator`, its output over input `over` unless None."""

    bytes: int
    operator: int
    over: int | None


class Steps(Protocol):
    """The part of a problem that decides its hardest step; see `onchip.planners.placement.Problem`."""

    @property
    def inputs(self) -> Sequence[Sequence[int]]: ...

    @property
    def outputs(self) -> Sequence[Sequence[int]]: ...

    @property
    def readers(self) -> Sequence[int]: ...

    @property
    def size(self) -> Sequence[int]: ...

    @property
    def order(self) -> Sequence[int] | None: ...

    @property
    def overwrites(self) -> Sequence[Sequence[int]]: ...

    def step_bytes(self, operator: int, /) -> int: ...


def hardest_step(problem: Steps) -> HardestStep:
    """Return the hardest step of the given order, or of an order whose hardest step is easiest.

    Greedy: of the ready operators, run the one that currently needs least. An operator's need only falls
    while others run. So when the least need exceeds all before, every order pays that much: the first
    operator by which another order leaves the set that has run here needs no less there than it does here.
    """
    n = len(problem.inputs)
    if not problem.overwrites:
        return max(
            (HardestStep(problem.step_bytes(v), v, None) for v in range(n)), key=lambda step: step.bytes
        )
    unread = [readers.bit_count() for readers in problem.readers]
    producer = {t: v for v, made in enumerate(problem.outputs) for t in made}
    consumers: list[list[int]] = [[] for _ in range(n)]
    waiting = [0] * n
    for v, read in enumerate(problem.inputs):
        for u in {producer[t] for t in read if t in producer}:
            consumers[u].append(v)
            waiting[v] += 1
    plain = [problem.step_bytes(v) for v in range(n)]

    def step(v: int) -> HardestStep:
        over = next((x for x in problem.overwrites[v] if unread[x] == 1), None)
        saved = 0 if over is None else problem.size[problem.outputs[v][0]]
        return HardestStep(plain[v] - saved, v, over)

    hardest = HardestStep(-1, 0, None)
    ready = [] if problem.order is not None else [(step(v).bytes, v) for v in range(n) if not waiting[v]]
    heapq.heapify(ready)
    done = [False] * n
    for i in range(n):
        if problem.order is not None:
            v = problem.order[i]
        else:
            v = heapq.heappop(ready)[1]
            while done[v]:
                v = heapq.heappop(ready)[1]
        now = step(v)
        if now.bytes > hardest.bytes:
            hardest = now
        done[v] = True
        for t in problem.inputs[v]:
            unread[t] -= 1
            if unread[t] == 1 and problem.order is None:
                # Its last reader may now need less: push a second entry into the heap.
                for u in bits(problem.readers[t]):
                    if not done[u] and not waiting[u]:
                        heapq.heappush(ready, (step(u).bytes, u))
        if problem.order is None:
            for u in consumers[v]:
                waiting[u] -= 1
                if not waiting[u]:
                    heapq.heappush(ready, (step(u).bytes, u))
    return hardest
