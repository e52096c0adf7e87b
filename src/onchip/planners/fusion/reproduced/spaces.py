"""The groups of earlier fusers' spaces, and the best partition into them (Optimus section 2.2, figure 5).

Both are lines of operators cut into intervals, so one dynamic program finds the best partition of either.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onchip.planners.fusion.reproduced.algorithm1 import GroupCostFunction
from onchip.planners.fusion.reproduced.dag import Dag

__all__ = ["barriers", "best_intervals", "dnnvm_lines", "efficient_s_lines"]


def barriers(dag: Dag) -> int:
    """Return DNNVM's barriers: operators that read from several others, or that several others read."""
    result = 0
    for v in range(len(dag)):
        if dag.predecessors[v].bit_count() > 1 or dag.successors[v].bit_count() > 1:
            result |= 1 << v
    return result


def dnnvm_lines(dag: Dag) -> tuple[tuple[int, ...], ...]:
    """Return DNNVM's space: chains of operators with one producer and one reader, and every barrier alone."""
    alone = barriers(dag)
    lines: list[list[int]] = []
    last: dict[int, list[int]] = {}  # by the operator that ends it: the chain
    for v in dag.order:
        before = dag.predecessors[v]
        p = before.bit_length() - 1
        if not alone >> v & 1 and before and not alone >> p & 1:
            line = last.pop(p)
            line.append(v)
        else:
            line = [v]
            lines.append(line)
        last[v] = line
    return tuple(tuple(line) for line in lines)


def efficient_s_lines(dag: Dag) -> tuple[tuple[int, ...], ...]:
    """Return Efficient-S' space: the graph as one line, in the given topological order.

    The paper does not state the order of the line. In its example branches lie side by side, as
    breadth first; in the order of most networks they lie one after the other.
    """
    return (dag.order,)


def best_intervals(
    lines: Iterable[Sequence[int]], cost: GroupCostFunction, alone: GroupCostFunction
) -> tuple[tuple[int, ...], int]:
    """Return the cheapest partition of every line into intervals, and its cost.

    An operator alone costs the lesser of `cost` and `alone`; an interval that `cost` refuses is not extended.
    Raises `ValueError` if an operator has neither.
    """
    groups: list[int] = []
    total = 0
    for line in lines:
        least = [0]
        first: list[int] = []
        for j, v in enumerate(line):
            single = [c for c in (cost(1 << v), alone(1 << v)) if c is not None]
            if not single:
                raise ValueError(f"operator {v} has no cost of its own")
            best, start = least[j] + min(single), j
            group = 1 << v
            for i in range(j - 1, -1, -1):
                group |= 1 << line[i]
                moved = cost(group)
                if moved is None:
                    break
                if least[i] + moved < best:
                    best, start = least[i] + moved, i
            least.append(best)
            first.append(start)
        end = len(line)
        parts = []
        while end:
            parts.append(sum(1 << v for v in line[first[end - 1] : end]))
            end = first[end - 1]
        groups += reversed(parts)
        total += least[-1]
    return tuple(groups), total
