"""Addresses for the kernels' workspaces, between the rows that are alive."""

from __future__ import annotations

from collections.abc import Sequence

from onchip.microcontroller.rows.addresses import Placed

__all__ = ["workspaces"]

ALIGNMENT = 4


def workspaces(placed: Placed, sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the addresses of each operator's workspace, of so many bytes: one for all steps, or one a step.

    One for all is taken where it costs no bytes, else one a step, which costs a table.
    """
    steps: list[list[int]] = [[] for _ in sizes]
    for time, i in enumerate(placed.schedule):
        if sizes[i]:
            steps[i].append(time)
    alive: dict[int, list[tuple[int, int]]] = {time: [] for times in steps for time in times}
    for life, a in zip(placed.lives, placed.addresses, strict=True):
        for time in range(max(life.made, 0), max(life.read, life.made) + 1):
            if time in alive:
                alive[time].append((a, a + life.bytes))
    found: list[tuple[int, ...]] = []
    for times, size in zip(steps, sizes, strict=True):
        if not times:
            found.append(())
            continue
        one = _lowest([taken for time in times for taken in alive[time]], size)
        if one + size > placed.bytes:
            each = tuple(_lowest(alive[time], size) for time in times)
            found.append(each if max(each) < one else (one,))
            continue
        found.append((one,))
    return found


def _lowest(taken: Sequence[tuple[int, int]], size: int) -> int:
    """Return the lowest address of so many bytes beside those taken."""
    at = 0
    for first, end in sorted(taken):
        if first >= at + size:
            break
        at = max(at, -(-end // ALIGNMENT) * ALIGNMENT)
    return at
