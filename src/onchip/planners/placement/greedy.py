"""Strategy `greedy`: a pass over the network and no search, in time nearly linear in its size.

A free order is the network's own or a list schedule, whichever costs less; a list schedule next runs the
ready operator that leaves the fewest bytes live. Evictions follow Belady with sizes: the tensor that costs
least for each byte it frees leaves first, ties going to the one that is read again last.
"""

from __future__ import annotations

import heapq
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

from onchip.network import bits
from onchip.planners.placement.addressed import with_addresses
from onchip.planners.placement.cuts import topological
from onchip.planners.placement.partition import partition_bound
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.search import Found, Step
from onchip.planners.placement.strategy import Answer, Task

__all__ = ["evictions", "list_order", "solve"]

BOUND_SECONDS = 2.0
"""The most seconds spent on a lower bound, which the schedule itself does not need."""


def solve(task: Task) -> Answer:
    """Return a schedule found without search, with a lower bound on any."""
    began = time.perf_counter()
    problem, limits = task.problem, task.limits
    orders = {list_order(problem), topological(problem)}
    steps, value = min(
        (evictions(problem, order, task.budget) for order in sorted(orders)), key=itemgetter(1)
    )
    order = [step.operator for step in steps]
    bound = 0
    if value:
        bound = min(value, partition_bound(problem, order, task.budget, limits.at_most(BOUND_SECONDS)))
    seconds = time.perf_counter() - began
    found = Found(steps, value, bound, "complete" if value == bound else "width", 0, 0, 0, seconds)
    answer = with_addresses(problem, task.budget, task.alignment, found, limits, other_schedules=None)
    return replace(answer, figures={})


def list_order(problem: Problem) -> tuple[int, ...]:
    """Return the fixed order; or always run the ready operator after which the fewest bytes are live, ties
    going to the latest to become ready."""
    if problem.order is not None:
        return problem.order
    readers: list[list[int]] = [[] for _ in problem.size]
    for v, row in enumerate(problem.inputs):
        for t in row:
            readers[t].append(v)
    producer = {t: v for v, row in enumerate(problem.outputs) for t in row}
    unread = [len(row) for row in readers]
    loaded = [t in producer for t in range(len(problem.size))]
    waiting = [len({producer[t] for t in row if t in producer}) for row in problem.inputs]
    after: list[set[int]] = [set() for _ in problem.inputs]
    for v, row in enumerate(problem.inputs):
        for t in row:
            if t in producer:
                after[producer[t]].add(v)
    done = [False] * len(problem.inputs)
    ready_since = [0] * len(problem.inputs)

    def growth(v: int) -> int:
        made = sum(problem.size[t] for t in problem.outputs[v] if readers[t])
        brought = sum(problem.size[t] for t in problem.inputs[v] if not loaded[t])
        freed = sum(problem.size[t] for t in problem.inputs[v] if unread[t] == 1)
        return made + brought - freed

    # An operator's growth changes when it becomes the last reader of an input, or when another loads one: it
    # is pushed again then, and an entry of the heap is checked when it is taken.
    heap = [(growth(v), 0, v) for v, n in enumerate(waiting) if not n]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        said, _, v = heapq.heappop(heap)
        if done[v] or said != growth(v):
            continue
        done[v] = True
        order.append(v)
        for t in problem.inputs[v]:
            unread[t] -= 1
            if unread[t] == 1 or not loaded[t]:
                loaded[t] = True
                for u in readers[t]:
                    if not done[u] and not waiting[u]:
                        heapq.heappush(heap, (growth(u), -ready_since[u], u))
        for u in after[v]:
            waiting[u] -= 1
            if not waiting[u]:
                ready_since[u] = len(order)
                heapq.heappush(heap, (growth(u), -len(order), u))
    return tuple(order)


def evictions(problem: Problem, order: Sequence[int], budget: int) -> tuple[tuple[Step, ...], int]:
    """Return the steps of this order with evictions before each, and the traffic as in the search."""
    uses: dict[int, list[int]] = {}
    for i, v in enumerate(order):
        for t in problem.inputs[v]:
            uses.setdefault(t, []).append(i)
    resident: set[int] = set()
    copied: set[int] = set(bits(problem.graph_inputs))
    held = paid = 0

    def price(t: int) -> int:
        return problem.cost[t] * (1 if t in copied else 2)

    steps = []
    for i, v in enumerate(order):
        wanted = set(problem.inputs[v])
        fresh = [t for t in (*problem.inputs[v], *problem.outputs[v]) if t not in resident]
        missing = held + sum(problem.size[t] for t in fresh) + problem.workspace[v] - budget
        out: list[int] = []
        if missing > 0:

            def merit(t: int, i: int = i) -> tuple[float, int, int]:
                row = uses[t]
                return price(t) / problem.size[t], -row[bisect_right(row, i)], t

            # An empty tensor frees nothing.
            for t in sorted((t for t in resident - wanted if problem.size[t]), key=merit):
                if missing <= 0:
                    break
                out.append(t)
                missing -= problem.size[t]
            for t in sorted(out, key=price, reverse=True):  # needless ones stay
                if missing + problem.size[t] <= 0:
                    out.remove(t)
                    missing += problem.size[t]
            paid += sum(map(price, out))
            held -= sum(problem.size[t] for t in out)
            resident -= set(out)
            copied.update(out)
        steps.append(Step(v, tuple(out)))
        resident.update(fresh)
        held += sum(problem.size[t] for t in fresh)
        copied.update(t for t in problem.outputs[v] if problem.graph_outputs >> t & 1)
        for t in (*problem.inputs[v], *problem.outputs[v]):
            if t not in uses or uses[t][-1] <= i:
                resident.discard(t)
                held -= problem.size[t]
    return tuple(steps), paid
