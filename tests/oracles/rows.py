"""Orders of rows by trying all: the least peak over every legal order, from the definition alone."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from onchip.microcontroller.rows.graph import RowGraph
from onchip.microcontroller.rows.law import shared_bytes

__all__ = ["TooManyStates", "least_peak"]

State = tuple[int, ...]


class TooManyStates(Exception):
    """More states than the oracle looks at."""


@dataclass(frozen=True, slots=True)
class Dying:
    """A row that a step reads and no later one of its operator; `others` are the other readers' last steps.

    It dies with the step if each of the others is behind the step of its own.
    """

    bytes: int
    distance: int
    others: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """What a step needs made, the rows that may die with it, and the bytes that its own row leaves alive."""

    needs: tuple[tuple[int, int], ...]
    dying: tuple[Dying, ...]
    bytes: int
    stays: int


def least_peak(graph: RowGraph, *, share: bool, most: int = 50_000) -> int:
    """Return the least peak of all orders; every step is a choice, and no rule leaves a state out.

    It collects the states that can be reached within some bytes, and then within the fewest that lead to
    another one, until the last state is among them.
    """
    steps = _steps(graph)
    start = tuple(op.steps if op.held else 0 for op in graph.operators)
    end = tuple(op.steps for op in graph.operators)
    alive = sum(op.bytes * op.steps for op in graph.operators if op.held and op.kept) + sum(
        graph.operators[m].bytes for m, _ in _last_steps(graph) if graph.operators[m].held
    )
    seen = {start}
    level = alive
    stack = [(start, alive)]
    later: list[tuple[int, State, int]] = []
    while True:
        while stack:
            state, alive = stack.pop()
            if state == end:
                return level
            for i, done in enumerate(state):
                if done == end[i]:
                    continue
                step = steps[i][done]
                if any(state[m] < rows for m, rows in step.needs):
                    continue
                after = (*state[:i], done + 1, *state[i + 1 :])
                if after in seen:
                    continue
                dead = [d for d in step.dying if all(state[r] > last for r, last in d.others)]
                need = alive + step.bytes
                if share and dead:
                    need -= shared_bytes(step.bytes, [(d.bytes, d.distance) for d in dead])
                left = alive + step.stays - sum(d.bytes for d in dead)
                if need > level:
                    heapq.heappush(later, (need, after, left))
                    continue
                seen.add(after)
                stack.append((after, left))
            if len(seen) > most:
                raise TooManyStates
        level, state, alive = heapq.heappop(later)
        if state not in seen:
            seen.add(state)
            stack.append((state, alive))


def _last_steps(graph: RowGraph) -> dict[tuple[int, int], dict[int, int]]:
    """Return the last step of each reader of each row that is read and not kept."""
    found: dict[tuple[int, int], dict[int, int]] = {}
    for reader, op in enumerate(graph.operators):
        for operand in op.operands:
            if graph.operators[operand.maker].kept:
                continue
            for step, (first, behind) in enumerate(operand.windows):
                for row in range(first, behind):
                    last = found.setdefault((operand.maker, row), {})
                    last[reader] = max(step, last.get(reader, -1))
    return found


def _steps(graph: RowGraph) -> list[list[Step]]:
    ops = graph.operators
    last = _last_steps(graph)
    dying: dict[tuple[int, int], list[Dying]] = {}
    for (maker, _), readers in last.items():
        for reader, step in readers.items():
            distance = max(o.distance for o in ops[reader].operands if o.maker == maker)
            others = tuple((r, s) for r, s in readers.items() if r != reader)
            dying.setdefault((reader, step), []).append(Dying(ops[maker].bytes, distance, others))
    return [
        [
            Step(
                tuple((o.maker, o.windows[n][1]) for o in op.operands if o.windows[n][0] < o.windows[n][1]),
                tuple(dying.get((i, n), ())),
                op.bytes,
                op.bytes if op.kept or (i, n) in last else 0,
            )
            for n in range(op.steps)
        ]
        for i, op in enumerate(ops)
    ]
