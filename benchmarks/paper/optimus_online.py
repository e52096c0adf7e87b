"""Groups that obey Optimus' on-line rules, counted on a graph that is given as what each operator reads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

__all__ = ["merged", "obeying"]


def merged(graph: dict[str, Any]) -> list[list[int]]:
    """What each operator reads, by place, where a sum is part of the last convolution that it reads."""
    place: dict[str, int] = {}
    reads: list[list[int]] = []
    for row in graph["operators"]:
        known = [place[x] for x in row["reads"] if x in place]
        if row["kind"] == "add":
            last = max(known)
            reads[last] += [x for x in known if x != last]
            place[row["name"]] = last
        else:
            place[row["name"]] = len(reads)
            reads.append(known)
    return reads


def obeying(reads: list[list[int]], most: int) -> list[int]:
    """Convex groups of at most 1, 2, ... operators in which each has all of its readers or none."""
    count = len(reads)
    before = [sum(1 << x for x in set(r)) for r in reads]
    after = [sum(1 << j for j in range(count) if before[j] >> i & 1) for i in range(count)]
    above, below = [0] * count, [0] * count
    for i in range(count):
        above[i] = _union(before[i], above) | before[i]
    for i in reversed(range(count)):
        below[i] = _union(after[i], below) | after[i]
    near = [(after[i] | before[i] | _union(before[i], after)) & ~(1 << i) for i in range(count)]
    level, found = {1 << i for i in range(count)}, []
    for _ in range(most):
        found.append(sum(_obeys(g, after, above, below) for g in level))
        level = {g | 1 << j for g in level for j in _places(_union(g, near) & ~g)}
    return list(accumulate(found))


def _obeys(group: int, after: list[int], above: list[int], below: list[int]) -> bool:
    between = _union(group, above) & _union(group, below) & ~group
    return not between and all(not after[i] & group or not after[i] & ~group for i in _places(group))


def _places(group: int) -> Iterator[int]:
    while group:
        low = group & -group
        yield low.bit_length() - 1
        group ^= low


def _union(group: int, sets: list[int]) -> int:
    union = 0
    for i in _places(group):
        union |= sets[i]
    return union
