"""The arena used step by step: before an operator runs, its needs are allocated, with evictions."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from onchip.comparison.baselines.arena import Arena
from onchip.comparison.baselines.replacement import Evictable, Rule
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.program import Placed
from onchip.planners.placement.schedule import reloads_of, traffic_of
from onchip.planners.placement.strategy import Answer

__all__ = ["stepwise"]

MOST_MOVES = 256
"""The most sets of an operator's own inputs to try moving, cheapest first, before the arena is cleared."""


def stepwise(problem: Problem, order: Sequence[int], budget: int, rule: Rule) -> Answer:
    """Run `order` in a linear arena of `budget` bytes; `rule` chooses what to evict when there is no gap.

    Before each operator the tensors it lacks and its workspace are allocated, largest first as TFLite does. A
    tensor stays until its last use or until it is evicted; the operator's own inputs are not evicted for it.
    Where they obstruct every gap, the cheapest set of them that helps is written out and loaded again.
    The budget must not be below the problem's minimum.
    """
    return _Walk(problem, order, budget, rule).run()


class _Walk:
    """One pass over the order: the current allocations, and the decisions so far."""

    def __init__(self, problem: Problem, order: Sequence[int], budget: int, rule: Rule) -> None:
        self.problem, self.order, self.rule = problem, tuple(order), rule
        self.arena = Arena(budget)
        self.since: dict[int, int] = {}
        self.copied: set[int] = set()
        self.placed: list[Placed] = []
        self.scratch: dict[int, int] = {}
        self.uses: list[list[int]] = [[] for _ in problem.size]
        for step, v in enumerate(self.order):
            for t in {*problem.inputs[v], *problem.outputs[v]}:
                self.uses[t].append(step)

    def run(self) -> Answer:
        problem = self.problem
        for step, v in enumerate(self.order):
            self.arena = self.room(step, v)
            for held in self.arena:
                if held.item >= len(problem.size):
                    self.scratch[v] = held.address
                else:
                    self.since.setdefault(held.item, step)
            if v in self.scratch:
                self.arena.release(len(problem.size) + v)
            for t in {*problem.inputs[v], *problem.outputs[v]}:
                if self.uses[t][-1] == step:
                    self.leave(t, step + 1)
                    self.arena.release(t)
        traffic = traffic_of(problem, reloads_of(p.tensor for p in self.placed))
        return Answer(self.order, tuple(self.placed), self.scratch, traffic)

    def room(self, step: int, v: int) -> Arena:
        """Return the arena with everything that `v` needs, after the necessary evictions."""
        problem = self.problem
        sizes = {t: problem.size[t] for t in {*problem.inputs[v], *problem.outputs[v]}}
        if problem.workspace[v]:
            sizes[len(problem.size) + v] = problem.workspace[v]
        others = {h.item: self.evictable(h.item, step) for h in self.arena if h.item not in sizes}
        own = {t: self.evictable(t, step).traffic for t in sizes if t in self.arena}
        found = None
        for moved in islice(_cheapest_first(own), MOST_MOVES):
            found = self.attempt(sizes, moved, others)
            if found is not None:
                break
        else:
            # In an empty arena they are adjacent, and the budget is no less than their sum.
            empty = Arena(self.arena.capacity)
            for item in sorted(sizes, key=lambda item: (-sizes[item], item)):
                empty.hold(item, sum(h.size for h in empty), sizes[item])
            found = empty, tuple(h.item for h in self.arena)
        arena, gone = found
        for t in gone:
            self.leave(t, step)
            self.copied.add(t)
        return arena

    def attempt(
        self, sizes: Mapping[int, int], moved: Sequence[int], others: Mapping[int, Evictable]
    ) -> tuple[Arena, tuple[int, ...]] | None:
        """Allocate what is missing without `moved`; None when the rule has nothing left to evict."""
        arena, gone = self.arena.copy(), list(moved)
        for t in moved:
            arena.release(t)
        missing = [item for item in sizes if item not in arena]
        for item in sorted(missing, key=lambda item: (-sizes[item], item)):
            while (at := arena.fit(sizes[item])) is None:
                victims = self.rule(arena, sizes[item], others)
                if not victims:
                    return None
                for t in victims:
                    arena.release(t)
                gone += victims
            arena.hold(item, at, sizes[item])
        return arena, tuple(gone)

    def evictable(self, t: int, step: int) -> Evictable:
        """Return the cost of evicting `t` before `step`; every tensor in the arena has a later use."""
        has_copy = t in self.copied or (self.problem.graph_inputs | self.problem.graph_outputs) >> t & 1
        uses = self.uses[t]
        return Evictable(uses[bisect_left(uses, step)], self.problem.cost[t] * (1 if has_copy else 2))

    def leave(self, t: int, step: int) -> None:
        """Record that `t` leaves before `step`."""
        held = next(h for h in self.arena if h.item == t)
        self.placed.append(Placed(t, self.since.pop(t), step, held.address))


def _cheapest_first(cost: Mapping[int, int]) -> Iterator[tuple[int, ...]]:
    """Yield all subsets, by ascending sum of costs, the empty one first."""
    items = sorted(cost, key=lambda item: (cost[item], item))
    yield ()
    queue: list[tuple[int, tuple[int, ...]]] = [(cost[items[0]], (0,))] if items else []
    while queue:
        total, chosen = heapq.heappop(queue)
        yield tuple(items[i] for i in chosen)
        last = chosen[-1]
        if last + 1 < len(items):
            step = cost[items[last + 1]]
            heapq.heappush(queue, (total + step, (*chosen, last + 1)))
            heapq.heappush(queue, (total + step - cost[items[last]], (*chosen[:-1], last + 1)))
