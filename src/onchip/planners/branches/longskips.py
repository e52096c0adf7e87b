"""Long skip connections: operands that wait while many layers run on another way to the same operator.

A Simple Method, Algorithm 2, disconnects them without a definition of long. Here an operand t of v is long if
the longest way from t to v passes more than `limit` layers (v itself not counted).
"""

from __future__ import annotations

from itertools import islice

from onchip.planners.branches.graph import Graph
from onchip.planners.branches.modules import LongSkip

__all__ = ["levels", "long_skips"]

_AT_ONCE = 2048
"""Tensors whose distances are followed together: bounds the memory for a network made of skips."""

_UNREACHED = -1_000_000
"""Stays below zero after any addition on the longest way of the largest network."""


def levels(graph: Graph, operands: tuple[tuple[int, ...], ...]) -> list[int]:
    """Return for each tensor the most layers on any way that leads to it, its producer included."""
    level = [0] * len(graph.producer)
    for v in graph.order:
        made = max((level[t] for t in operands[v]), default=0) + graph.layer[v]
        for t in graph.writes[v]:
            level[t] = made
    return level


def long_skips(graph: Graph, limit: int) -> tuple[LongSkip, ...]:
    """Return all long skips, in the order in which they are read."""
    level = levels(graph, graph.reads)
    last: dict[int, int] = {}  # tensor -> place of the last operator that may read it over a long skip
    for at, v in enumerate(graph.order):
        highest = max((level[t] for t in graph.reads[v]), default=0)
        for t in graph.reads[v]:
            # A way from t to v has no more layers than the levels differ by; one reader means no other way.
            if highest - level[t] > limit and len(graph.readers[t]) > 1:
                last[t] = at
    waiting = sorted(last, key=lambda t: _place(graph, t))
    found: list[LongSkip] = []
    while batch := list(islice(waiting, _AT_ONCE)):
        del waiting[:_AT_ONCE]
        found += _spans(graph, batch, max(last[t] for t in batch), limit)
    return tuple(sorted(found, key=lambda skip: (graph.place[skip.reader], skip.tensor)))


def _place(graph: Graph, tensor: int) -> int:
    producer = graph.producer[tensor]
    return -1 if producer is None else graph.place[producer]


def _spans(graph: Graph, batch: list[int], end: int, limit: int) -> list[LongSkip]:
    """Return the long skips of a batch of tensors: one sweep carries the distances from all of them."""
    import numpy as np

    column = {t: i for i, t in enumerate(batch)}
    rows: dict[int, np.ndarray[tuple[int], np.dtype[np.int32]]] = {}  # tensor -> longest way from each
    left = {}
    nothing = np.full(len(batch), _UNREACHED, np.int32)

    def start(t: int, row: np.ndarray[tuple[int], np.dtype[np.int32]]) -> None:
        if t in column:
            row = row.copy()
            row[column[t]] = 0
        rows[t], left[t] = row, len(graph.readers[t])

    for t in batch:
        if graph.producer[t] is None:
            start(t, nothing)
    found = []
    for v in graph.order[max(0, _place(graph, batch[0])) : end + 1]:
        reached = [rows[t] for t in graph.reads[v] if t in rows]
        longest = nothing
        if reached:
            longest = reached[0] if len(reached) == 1 else np.maximum.reduce(reached)
        for t in graph.reads[v]:
            if t in column and longest[column[t]] > limit:
                found.append(LongSkip(t, v, int(longest[column[t]])))
        after = longest + graph.layer[v] if reached else nothing
        for t in graph.writes[v]:
            if graph.readers[t] and (reached or t in column):
                start(t, after)
        for t in graph.reads[v]:
            if t in rows:
                left[t] -= 1
                if not left[t]:
                    del rows[t]
    return found
