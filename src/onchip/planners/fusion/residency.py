"""The operators whose weights stay on chip while a group runs: an exact choice.

A resident operator's weights take all their bytes and are fetched once; the others are fetched for every
sub-group, and share one tile of scratchpad, as large as the largest of their tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Residents", "Weights", "choose"]


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of one operator: bytes fetched, and bytes of scratchpad when resident or as a tile."""

    operator: int
    bytes: int
    resident: int
    tile: int


@dataclass(frozen=True, slots=True)
class Residents:
    """A choice: the bitset of resident operators, the bytes of all others, and the scratchpad it takes."""

    operators: int
    refilled_bytes: int
    scratch_bytes: int


def choose(weights: Sequence[Weights], room: int, residency: str) -> Residents | None:
    """Return the residents with the fewest refilled bytes within `room` scratchpad bytes; None if none fit.

    `residency` is `partial` (any subset), `all` (all or nothing) or `none`.
    """
    total = sum(w.bytes for w in weights)
    everything = sum(w.resident for w in weights)
    if residency != "none" and everything <= room:
        return Residents(sum(1 << w.operator for w in weights), 0, everything)
    best: Residents | None = None
    if residency != "partial":
        tile = max((w.tile for w in weights), default=0)
        return Residents(0, total, tile) if tile <= room else None
    # With the largest tile of a refilled operator fixed, larger ones are resident; the rest is a knapsack.
    for tile in sorted({w.tile for w in weights}):
        forced = [w for w in weights if w.tile > tile]
        left = room - tile - sum(w.resident for w in forced)
        if left < 0:
            continue
        size, saved, chosen = _knapsack([w for w in weights if w.tile <= tile], left)
        operators = chosen | sum(1 << w.operator for w in forced)
        refilled = total - saved - sum(w.bytes for w in forced)
        if best is None or refilled < best.refilled_bytes:
            best = Residents(operators, refilled, room - left + size)
    return best


def _knapsack(items: Sequence[Weights], room: int) -> tuple[int, int, int]:
    """Return the subset with the most bytes and scratchpad within `room`, as (scratchpad, bytes, operators).

    After every item, subsets that another one dominates in both are dropped.
    """
    front = [(0, 0, 0)]
    for w in items:
        if w.resident > room:
            continue
        added = [
            (size + w.resident, saved + w.bytes, ops | 1 << w.operator)
            for size, saved, ops in front
            if size + w.resident <= room
        ]
        front = _undominated(sorted(front + added, key=lambda s: (s[0], -s[1])))
    return front[-1]


def _undominated(subsets: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    result: list[tuple[int, int, int]] = []
    for subset in subsets:
        if not result or subset[1] > result[-1][1]:
            result.append(subset)
    return result
