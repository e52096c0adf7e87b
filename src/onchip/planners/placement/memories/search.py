"""The complete search for small networks: the least traffic, and then the least time at the memories.

A* over elementary actions (load, move, store, free, run), without addresses, so that its result bounds every
plan. It omits actions that cost nothing to omit, and docs/placement-proofs.md (M1 to M4) proves that:

- tensors that nothing needs any more are freed at once (M1);
- an input is loaded only if an operator that reads it can run next but for loads and moves (M2);
- a tensor moves only between different memories (M3);
- tensors without a copy that are still needed are not freed (M4, a rule of plans).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import product

from onchip.network import bits
from onchip.planners.limits import Limits
from onchip.planners.placement.memories.levels import MemoryProblem
from onchip.planners.placement.memories.steps import Step

__all__ = ["Proved", "search"]

NOWHERE = -1

Cost = tuple[int, int]
"""Bytes of traffic, picoseconds of accesses."""

State = tuple[int, tuple[int, ...], int, int]
"""Finished operators; the memory of each tensor or `NOWHERE`; tensors with a DRAM copy; tensors loaded."""


@dataclass(frozen=True)
class Proved:
    """`steps` cost `cost`, and no plan costs less, addresses aside; None if the search was cut short."""

    steps: tuple[Step, ...] | None
    cost: Cost
    states: int


def search(problem: MemoryProblem, limits: Limits, *, states: int, moves: bool = True) -> Proved:
    """Return the least cost of any program (without `moves`, of those that have none); it may give up.

    It gives up after `states` states, or at the limits; `cost` is then a bound.
    """
    graph = _Graph(problem, moves)
    start = graph.start
    best: dict[State, Cost] = {start: (0, 0)}
    came: dict[State, tuple[State, tuple[Step, ...]]] = {}
    first = graph.rest(start)
    heap: list[tuple[Cost, int, int, State]] = [((0, first), 0, 0, start)]
    tried = made = 0
    while heap:
        estimate, _, _, state = heappop(heap)
        cost = best[state]
        if (cost[0], cost[1] + graph.rest(state)) != estimate:
            continue  # reached more cheaply in the meantime
        if graph.done(state):
            return Proved(_path(came, state), cost, tried)
        tried += 1
        if tried > states or (tried % 256 == 0 and limits.over()):
            return Proved(None, estimate, tried)
        for steps, after, (traffic, picoseconds) in graph.actions(state):
            reached = cost[0] + traffic, cost[1] + picoseconds
            if after not in best or reached < best[after]:
                best[after] = reached
                came[after] = state, steps
                made += 1
                key = reached[0], reached[1] + graph.rest(after)
                heappush(heap, (key, -after[0].bit_count(), -made, after))
    return Proved(None, (0, 0), tried)


def _path(came: dict[State, tuple[State, tuple[Step, ...]]], state: State) -> tuple[Step, ...]:
    pieces = []
    while state in came:
        state, steps = came[state]
        pieces.append(steps)
    return tuple(step for steps in reversed(pieces) for step in steps)


class _Graph:
    def __init__(self, problem: MemoryProblem, moves: bool) -> None:
        self.moves = moves
        self.problem, self.base, self.levels = problem, problem.problem, problem.levels
        self.count = len(self.base.size)
        self.all = (1 << len(self.base.inputs)) - 1
        self.start: State = (0, (NOWHERE,) * self.count, self.base.graph_inputs, 0)
        reached = self.levels.reached
        self.least_run = [
            sum(min(price[m] for m in reached) for price in row.values())
            + min(problem.scratch_price[v][m] for m in reached)
            for v, row in enumerate(problem.run_price)
        ]
        self.least_copy = [min(price) for price in problem.copy_price]
        self._rest: dict[tuple[int, int, int], int] = {}

    def done(self, state: State) -> bool:
        ran, _, copies, _ = state
        return ran == self.all and not self.base.graph_outputs & ~copies

    def rest(self, state: State) -> int:
        """Return a lower bound of remaining accesses: runs, first loads and stores, each at its cheapest."""
        ran, _, copies, fetched = state
        key = ran, copies & self.base.graph_outputs, fetched
        if key not in self._rest:
            total = sum(self.least_run[v] for v in bits(self.all & ~ran))
            total += sum(self.least_copy[t] for t in bits(self.base.graph_outputs & ~copies))
            unread = self.base.graph_inputs & ~fetched
            total += sum(self.least_copy[t] for t in bits(unread) if self.base.readers[t])
            self._rest[key] = total
        return self._rest[key]

    def room(self, where: tuple[int, ...]) -> list[int]:
        left = list(self.levels.capacity)
        for t, m in enumerate(where):
            if m >= 0:
                left[m] -= self.base.size[t]
        return left

    def needed(self, t: int, ran: int, copies: int) -> bool:
        return bool(self.base.readers[t] & ~ran) or bool(self.base.graph_outputs & ~copies & 1 << t)

    def actions(self, state: State) -> Iterator[tuple[tuple[Step, ...], State, Cost]]:
        ran, where, copies, fetched = state
        left, copy = self.room(where), self.problem.copy_price
        ready = [v for v in bits(self.all & ~ran) if not self.problem.before[v] & ~ran]
        wanted = {t for v in ready for t in self.base.inputs[v]}
        for v in ready:
            if all(where[t] >= 0 and self.levels.operands[where[t]] for t in self.base.inputs[v]):
                yield from self.runs(state, v, left)
        for t in sorted(wanted):
            if where[t] == NOWHERE and copies >> t & 1:
                again = fetched >> t & 1 or not self.base.graph_inputs >> t & 1
                for m in range(self.levels.count):
                    if self.base.size[t] <= left[m]:
                        after = ran, _put(where, t, m), copies, fetched | 1 << t
                        yield (Step("load", t, m),), after, (self.base.cost[t] * again, copy[t][m])
        for t, m in enumerate(where):
            if m < 0:
                continue
            for n in range(self.levels.count if self.moves else 0):
                if n != m and self.base.size[t] <= left[n]:
                    moved = ran, _put(where, t, n), copies, fetched
                    yield (Step("move", t, n),), moved, (0, copy[t][m] + copy[t][n])
            if not copies >> t & 1:
                owed = 0 if self.base.graph_outputs >> t & 1 else self.base.cost[t]
                kept = copies | 1 << t
                steps: tuple[Step, ...] = (Step("store", t),)
                stays = bool(self.base.readers[t] & ~ran)
                if not stays:  # stored, and not needed any more
                    steps = (*steps, Step("free", t))
                there = where if stays else _put(where, t, NOWHERE)
                yield steps, (ran, there, kept, fetched), (owed, copy[t][m])
            else:  # tensors that are not needed left at their last use
                gone = ran, _put(where, t, NOWHERE), copies, fetched
                yield (Step("free", t),), gone, (0, 0)

    def runs(self, state: State, v: int, left: list[int]) -> Iterator[tuple[tuple[Step, ...], State, Cost]]:
        ran, where, copies, fetched = state
        base, price = self.base, self.problem.run_price[v]
        outputs, workspace = base.outputs[v], base.workspace[v]
        read = sum(price[t][where[t]] for t in base.inputs[v])
        for homes in product(self.levels.reached, repeat=len(outputs) + bool(workspace)):
            room = list(left)
            for size, m in zip((*(base.size[t] for t in outputs), workspace), homes, strict=False):
                room[m] -= size
            if min(room) < 0:
                continue
            cost = read + sum(price[t][m] for t, m in zip(outputs, homes, strict=False))
            steps = [Step("alloc", t, m) for t, m in zip(outputs, homes, strict=False)]
            if workspace:
                steps.append(Step("scratch", v, homes[-1]))
                cost += self.problem.scratch_price[v][homes[-1]]
            steps.append(Step("run", v))
            after, now = list(where), ran | 1 << v
            for t, m in zip(outputs, homes, strict=False):
                after[t] = m
            for t, m in enumerate(after):
                if m >= 0 and not self.needed(t, now, copies):
                    after[t] = NOWHERE
                    steps.append(Step("free", t))
            yield tuple(steps), (now, tuple(after), copies, fetched), (0, cost)


def _put(where: tuple[int, ...], t: int, m: int) -> tuple[int, ...]:
    return (*where[:t], m, *where[t + 1 :])
