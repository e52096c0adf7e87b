"""The law of bytes: the rows that are alive after some steps, and the bytes that a schedule needs at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from onchip.microcontroller.rows.graph import RowGraph

__all__ = ["Life", "Schedule", "lives", "most_alive", "profile", "shared_bytes"]

Schedule = Sequence[int]
"""Operators; each mention makes the operator's next row. Held inputs are not mentioned."""


@dataclass(frozen=True, slots=True)
class Life:
    """A row, made in step `made` (-1: it lies there from the start) and read last in step `read`.

    A row that nobody reads lives in its own step; one that is kept lives to the end.
    """

    operator: int
    row: int
    bytes: int
    made: int
    read: int


def lives(graph: RowGraph, schedule: Schedule) -> tuple[Life, ...]:
    """Return the life of every row, in the order of making; raise `ValueError` for an illegal schedule.

    Legal is a schedule that makes every row once, each after the rows of its windows.
    """
    made: list[list[int]] = [[-1] * op.steps if op.held else [] for op in graph.operators]
    read = [[-1] * op.steps for op in graph.operators]
    order = [(i, row) for i, op in enumerate(graph.operators) if op.held for row in range(op.steps)]
    for time, i in enumerate(schedule):
        op = graph.operators[i]
        step = len(made[i])
        if step == op.steps:
            raise ValueError(f"step {time}: {op.name} has no more rows")
        for operand in op.operands:
            first, end = operand.windows[step]
            if end > len(made[operand.maker]) and first < end:
                raise ValueError(f"step {time}: {op.name} reads rows that are not made")
            for row in range(first, end):
                read[operand.maker][row] = time
        made[i].append(time)
        order.append((i, step))
    for op, times in zip(graph.operators, made, strict=True):
        if len(times) != op.steps:
            raise ValueError(f"{op.name} makes {len(times)} of {op.steps} rows")
    last = len(schedule)
    return tuple(
        Life(i, row, op.bytes, made[i][row], last if op.kept else max(read[i][row], made[i][row]))
        for i, row in order
        for op in (graph.operators[i],)
    )


def most_alive(graph: RowGraph, schedule: Schedule, *, share: bool) -> int:
    """Return the peak of a schedule: the most bytes alive during a step, with or without shared bytes."""
    return max(profile(graph, schedule, share=share))


def profile(graph: RowGraph, schedule: Schedule, *, share: bool) -> tuple[int, ...]:
    """Return the bytes alive at the start and in each step, the rows that the step reads and makes included.

    A row that is read last in a step counts in that step; `share` takes off what the step's row shares.
    """
    found = lives(graph, schedule)
    change = [0] * (len(schedule) + 3)
    for life in found:
        if life.read < 0:  # of a held input, and read by nobody
            continue
        change[life.made + 1] += life.bytes
        change[life.read + 2] -= life.bytes
    alive = list(accumulate(change))[: len(schedule) + 1]
    if share:
        dying: dict[tuple[int, int], list[Life]] = {}
        for life in found:
            if not graph.operators[life.operator].kept and life.read > life.made:
                dying.setdefault((life.read, schedule[life.read]), []).append(life)
        for (time, i), rows in dying.items():
            distance: dict[int, int] = {}
            for operand in graph.operators[i].operands:
                known = distance.get(operand.maker, operand.distance)
                distance[operand.maker] = max(known, operand.distance)
            pairs = [(life.bytes, distance[life.operator]) for life in rows]
            alive[time + 1] -= shared_bytes(graph.operators[i].bytes, pairs)
    return tuple(alive)


def shared_bytes(size: int, dying: Sequence[tuple[int, int]]) -> int:
    """Return how many bytes a row of `size` bytes shares with dying rows of (bytes, distance) each.

    It starts at least the least distance below them, and shares with each no more than that one has.
    """
    if not dying:
        return 0
    nearest = max(0, min(distance for _, distance in dying))
    there = sum(max(0, min(bytes_, size - distance)) for bytes_, distance in dying)
    return max(0, min(size - nearest, there))
