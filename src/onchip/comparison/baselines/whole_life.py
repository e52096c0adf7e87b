"""Placement of today's runtimes: one address for a tensor's whole life, fixed in advance, without eviction.

Each planner takes live ranges and returns offsets; their extent is the arena that the user has to provide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from onchip.planners.packing import Buffer
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.program import Placed
from onchip.planners.placement.strategy import Answer

__all__ = ["Planner", "executorch", "extent", "lives", "place_lives", "tflm"]

Planner = Callable[[Sequence[Buffer]], tuple[int, ...]]
"""A function from live ranges to one offset for each."""


def tflm(buffers: Sequence[Buffer]) -> tuple[int, ...]:
    """Place the largest first, each at the lowest gap that holds it between those live at the same time.

    Source: tensorflow/lite/micro/memory_planner/greedy_memory_planner.cc (TensorFlow Lite Micro). Of equals
    the one added last comes first.
    """
    offset = [0] * len(buffers)
    placed: list[int] = []
    for i in sorted(range(len(buffers)), key=lambda i: (-buffers[i].size, -i)):
        mine, top = buffers[i], 0
        for j in sorted(placed, key=offset.__getitem__):
            other = buffers[j]
            if other.upper <= mine.lower or mine.upper <= other.lower:
                continue
            if offset[j] - top >= mine.size:
                break
            top = max(top, offset[j] + other.size)
        offset[i] = top
        placed.append(i)
    return tuple(offset)


def executorch(buffers: Sequence[Buffer]) -> tuple[int, ...]:
    """Place the largest first into shared objects, each as large as its first tensor, laid out contiguously.

    A tensor joins the first object without a tensor live at the same time, else the first that has room
    behind those tensors, else it starts a new one. Of equals the one added last comes first. Source: `greedy`
    in exir/memory_planning.py (ExecuTorch 1.5).
    """
    members: list[list[int]] = []
    within = [0] * len(buffers)

    def top(of: list[int], i: int) -> int:
        return max(
            (
                within[j] + buffers[j].size
                for j in of
                if buffers[j].lower < buffers[i].upper and buffers[i].lower < buffers[j].upper
            ),
            default=0,
        )

    for i in sorted(range(len(buffers)), key=lambda i: (-buffers[i].size, -i)):
        tops = [top(of, i) for of in members]
        free = [k for k, t in enumerate(tops) if t == 0]
        room = [k for k, t in enumerate(tops) if t + buffers[i].size <= buffers[members[k][0]].size]
        if free or room:
            chosen = (free or room)[0]
            within[i] = tops[chosen]
            members[chosen].append(i)
        else:
            members.append([i])
    offset, base = [0] * len(buffers), 0
    for of in members:
        for i in of:
            offset[i] = base + within[i]
        base += buffers[of[0]].size
    return tuple(offset)


def extent(buffers: Sequence[Buffer], offsets: Sequence[int]) -> int:
    """Return the bytes of the arena that these offsets need."""
    return max((at + b.size for b, at in zip(buffers, offsets, strict=True)), default=0)


def lives(problem: Problem, order: Sequence[int]) -> tuple[tuple[Buffer, ...], tuple[int, ...]]:
    """Return the live ranges in steps with their sizes, and their owners.

    Owners are tensors, then scratch as tensors + operator. As in runtimes, inputs are live from the beginning
    and outputs until the end.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for step, v in enumerate(order):
        for t in (*problem.inputs[v], *problem.outputs[v]):
            first.setdefault(t, step)
            last[t] = step
    buffers, items = [], []
    for t in sorted(first):
        begin = 0 if problem.graph_inputs >> t & 1 else first[t]
        end = len(order) if problem.graph_outputs >> t & 1 else last[t] + 1
        buffers.append(Buffer(begin, end, problem.size[t]))
        items.append(t)
    for step, v in enumerate(order):
        if problem.workspace[v]:
            buffers.append(Buffer(step, step + 1, problem.workspace[v]))
            items.append(len(problem.size) + v)
    return tuple(buffers), tuple(items)


def place_lives(problem: Problem, order: Sequence[int], planner: Planner) -> tuple[Answer, int]:
    """Return the schedule without evictions at a planner's offsets, and the bytes of arena it needs."""
    buffers, items = lives(problem, order)
    offsets = planner(buffers)
    tensors = sum(item < len(problem.size) for item in items)
    placed = tuple(
        Placed(item, b.lower, b.upper, at)
        for item, b, at in islice(zip(items, buffers, offsets, strict=True), tensors)
    )
    scratch = {
        item - len(problem.size): at for item, at in zip(items[tensors:], offsets[tensors:], strict=True)
    }
    return Answer(tuple(order), placed, scratch, 0), extent(buffers, offsets)
