"""Immediate dominators of an acyclic graph: the last node that every way to a node passes."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["immediate_dominators"]


def immediate_dominators(predecessors: Sequence[Sequence[int]]) -> list[int]:
    """Return each node's immediate dominator; nodes are numbered topologically, 0 is the source and its own.

    Every other node has predecessors, all with smaller numbers. In an acyclic graph a node's dominator is the
    lowest common ancestor of its predecessors in the tree of dominators. It is found in a logarithmic number
    of steps: each node also knows one far ancestor, chosen as in a skew-binary list (Myers, 1983).
    """
    above = [0]
    far = [0]
    depth = [0]
    for node in range(1, len(predecessors)):
        first, *others = predecessors[node]
        for other in others:
            first = _meet(first, other, above, far, depth)
        above.append(first)
        depth.append(depth[first] + 1)
        step = far[first]
        even = depth[first] - depth[step] == depth[step] - depth[far[step]]
        far.append(far[step] if even else first)
    return above


def _meet(a: int, b: int, above: list[int], far: list[int], depth: list[int]) -> int:
    """Return the lowest common ancestor."""
    if depth[a] < depth[b]:
        a, b = b, a
    while depth[a] > depth[b]:
        a = far[a] if depth[far[a]] >= depth[b] else above[a]
    while a != b:
        a, b = (far[a], far[b]) if far[a] != far[b] else (above[a], above[b])
    return a
