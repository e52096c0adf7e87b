"""The cuts of a network: exact ones, at operators that every order passes alone, and ones of few live bytes.

Source: COSMA section IV, whose break nodes were picked by hand. An operator comparable with every other is an
exact cut: in any order its ancestors run before it and all others after. docs/placement-proofs.md states the
consequences.
"""

from __future__ import annotations

from collections.abc import Sequence

from onchip.planners.placement.problem import Problem

__all__ = ["break_points", "crossings", "exact_cuts", "last_reads", "topological"]

MOST_PASSENGERS = 4
"""Tensors live across a cut besides its operator's own outputs: with more, the ways to cross it multiply."""


def topological(problem: Problem) -> tuple[int, ...]:
    """Return the fixed order, or operators as numbered, moved only as far as their inputs require."""
    if problem.order is not None:
        return problem.order
    producer = {t: v for v, made in enumerate(problem.outputs) for t in made}
    before = [{producer[t] for t in row if t in producer} for row in problem.inputs]
    order: list[int] = []
    placed = [False] * len(before)
    for root in range(len(before)):
        stack = [root]
        while stack:
            v = stack[-1]
            waiting = [u for u in before[v] if not placed[u]]
            if placed[v] or not waiting:
                stack.pop()
                if not placed[v]:
                    placed[v] = True
                    order.append(v)
            else:
                stack += waiting
    return tuple(order)


def exact_cuts(problem: Problem, order: Sequence[int], most_passengers: int = MOST_PASSENGERS) -> list[int]:
    """Return numbers i such that the first i operators of `order` are the first i of every order.

    Cuts that more than `most_passengers` tensors cross, besides the outputs of their operator, are left out.
    A graph input that nothing has read yet crosses no cut. The last i is the number of operators.
    """
    n = len(order)
    position = [0] * n
    for i, v in enumerate(order):
        position[v] = i
    producer = {t: v for v, made in enumerate(problem.outputs) for t in made}
    # For each position the latest of its operator's producers and the earliest of its readers.
    latest, earliest = [-1] * n, [n] * n
    for j, v in enumerate(order):
        for t in problem.inputs[v]:
            if t in producer:
                i = position[producer[t]]
                latest[j] = max(latest[j], i)
                earliest[i] = min(earliest[i], j)
    # All after i descend from i when each of them has a producer at i or later; likewise for all before.
    least_after = [n] * (n + 1)
    for j in range(n - 1, -1, -1):
        least_after[j] = min(least_after[j + 1], latest[j])
    crossing = crossings(problem, order)
    cuts, most_before = [], -1
    for i in range(n - 1):
        comparable = problem.order is not None or (least_after[i + 1] >= i and most_before <= i)
        most_before = max(most_before, earliest[i])
        if comparable and crossing[i + 1][1] <= most_passengers:
            cuts.append(i + 1)
    return [*cuts, n]


def last_reads(problem: Problem, order: Sequence[int]) -> dict[int, int]:
    """Return for each tensor that is read the position in `order` of its last reader."""
    return {t: i for i, v in enumerate(order) for t in problem.inputs[v]}


def crossings(problem: Problem, order: Sequence[int]) -> list[tuple[int, int]]:
    """Return for each i the bytes that the first i operators touch and later ones read, and the number of
    these tensors not made by the last of the i operators."""
    last = last_reads(problem, order)
    live: set[int] = set()
    held, result = 0, [(0, 0)]
    for i, v in enumerate(order):
        for t in (*problem.inputs[v], *problem.outputs[v]):
            stays = last.get(t, -1) > i
            if stays and t not in live:
                live.add(t)
                held += problem.size[t]
            elif not stays and t in live:
                live.remove(t)
                held -= problem.size[t]
        fresh = sum(t in live for t in problem.outputs[v])
        result.append((held, len(live) - fresh))
    return result


def break_points(problem: Problem, order: Sequence[int], every: int, first: int | None = None) -> list[int]:
    """Return the points that break `order` into pieces of about `every` operators, where few bytes are live.

    The first piece ends near `first`, the last break is the number of operators.
    """
    live = [held for held, _ in crossings(problem, order)]
    points, begin, n = [], 0, len(order)
    aim = every if first is None else first
    while n - begin > every * 3 // 2:
        low, high = begin + max(1, aim // 2), begin + max(2, aim * 3 // 2)
        begin = min(range(low, min(high, n - 1) + 1), key=lambda i: (live[i], abs(i - begin - aim)))
        points.append(begin)
        aim = every
    return [*points, n]
