"""Orders of rows by trying all: the least peak over every legal order, from the definition alone."""

from __future__ import annotations

import heapq

from onchip.microcontroller.rows.graph import RowGraph
from onchip.microcontroller.rows.law import shared_bytes

__all__ = ["TooManyStates", "least_peak"]

State = tuple[int, ...]


class TooManyStates(Exception):
    """More states than the oracle looks at."""


def least_peak(graph: RowGraph, *, share: bool, most: int = 50_000) -> int:
    """Return the least peak of all orders; every step is a choice, and no rule leaves a state out."""
    ops = graph.operators

    def last_step(reader: int, maker: int, row: int) -> int:
        steps = [
            step
            for operand in ops[reader].operands
            if operand.maker == maker
            for step, (first, end) in enumerate(operand.windows)
            if first <= row < end
        ]
        return max(steps, default=-1)

    readers = {
        (m, row): [(i, last_step(i, m, row)) for i in range(len(ops)) if last_step(i, m, row) >= 0]
        for m in range(len(ops))
        for row in range(ops[m].steps)
    }

    def alive(state: State) -> set[tuple[int, int]]:
        return {
            (m, row)
            for m in range(len(ops))
            for row in range(state[m])
            if ops[m].kept or any(state[i] <= step for i, step in readers[m, row])
        }

    def size(rows: set[tuple[int, int]]) -> int:
        return sum(ops[m].bytes for m, _ in rows)

    start = tuple(op.steps if op.held else 0 for op in ops)
    end = tuple(op.steps for op in ops)
    best = {start: size(alive(start))}
    queue = [(best[start], start)]
    while queue:
        peak, state = heapq.heappop(queue)
        if peak > best[state]:
            continue
        if state == end:
            return peak
        if len(best) > most:
            raise TooManyStates
        before = alive(state)
        for i, op in enumerate(ops):
            step = state[i]
            if step == op.steps or any(
                state[o.maker] < o.windows[step][1]
                for o in op.operands
                if o.windows[step][0] < o.windows[step][1]
            ):
                continue
            after = (*state[:i], step + 1, *state[i + 1 :])
            gone = before - alive(after)
            distances = {m: max(o.distance for o in op.operands if o.maker == m) for m, _ in gone}
            shared = shared_bytes(op.bytes, [(ops[m].bytes, distances[m]) for m, _ in gone]) if share else 0
            need = max(peak, size(before) + op.bytes - shared)
            if need < best.get(after, need + 1):
                best[after] = need
                heapq.heappush(queue, (need, after))
    raise AssertionError("every order is legal to its end")
