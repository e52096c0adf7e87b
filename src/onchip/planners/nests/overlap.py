"""The inputs of a group over which an output of its nest may lie, whole both, in some nest at least."""

from __future__ import annotations

from collections.abc import Collection

from onchip.network.axes import ALL, Cut, GroupAxes, Use

__all__ = ["pairs_of"]


def pairs_of(group: GroupAxes, leaving: Collection[int]) -> tuple[tuple[int, int], ...]:
    """Return inputs and outputs (indices of `group.buffers`) of as many elements, side by side.

    The input is read before the output is written there, in some order of the operators: the output's maker
    reads it element by element, or row by row, if at all, and no reader depends on that maker. `leaving` are
    the buffers made here that must reach DRAM.
    """
    buffers, found = group.buffers, []
    after = _followers(group)
    parts: dict[int, int] = {}
    for b in buffers:
        if b.tensor is not None:
            parts[b.tensor] = parts.get(b.tensor, 0) + 1
    inputs = [
        i
        for i, b in enumerate(buffers)
        if b.maker is None and b.tensor is not None and parts[b.tensor] == 1
        if b.sides == b.whole and not b.offset
    ]
    for y in sorted(leaving):
        maker = buffers[y].maker
        assert maker is not None
        for x in inputs:
            if (buffers[x].sides, buffers[x].element) != (buffers[y].sides, buffers[y].element):
                continue
            reads = [
                (at, use) for at, cut in enumerate(group.operators) for use in cut.reads if use.buffer == x
            ]
            if all(
                at not in after[maker] and (at != maker or by_element(group.operators[at], use))
                for at, use in reads
            ):
                found.append((x, y))
    return tuple(found)


def by_element(cut: Cut, use: Use) -> bool:
    """Return whether an operator needs an element, or a row, of an operand for that of its output alone."""
    if any(cut.axes[axis] > 1 for axis in cut.sums):
        return False
    return all(
        a == b != ALL or (a == ALL and b in cut.together)
        for a, b in zip(use.axes, cut.writes.axes, strict=True)
    )


def _followers(group: GroupAxes) -> list[set[int]]:
    """Return for every operator those that depend on it."""
    found: list[set[int]] = [set() for _ in group.operators]
    for at, cut in enumerate(group.operators):
        for use in cut.reads:
            maker = group.buffers[use.buffer].maker
            if maker is not None:
                for one, those in enumerate(found):
                    if one == maker or maker in those:
                        those.add(at)
    return found
