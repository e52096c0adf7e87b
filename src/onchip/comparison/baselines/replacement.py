"""Eviction when the arena has no gap for the next tensor: the two rules of COSMA's section V-A."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from onchip.comparison.baselines.arena import Arena

__all__ = ["Evictable", "Rule", "belady", "least_traffic"]


@dataclass(frozen=True, slots=True)
class Evictable:
    """An evictable tensor, as a rule sees it: the step of its next use, and the DRAM bytes of its eviction.

    These are one reload, and one write before that if DRAM has no copy yet.
    """

    next_use: int
    traffic: int


Rule = Callable[[Arena, int, Mapping[int, Evictable]], tuple[int, ...]]
"""(arena, bytes wanted, candidates) -> tensors to evict; empty when eviction does not help. It is called
again while the tensor does not fit."""


def belady(arena: Arena, size: int, evictable: Mapping[int, Evictable]) -> tuple[int, ...]:
    """Return the one tensor whose next use is furthest away; of equals the largest, which frees the most.

    Source: Belady's MIN, which minimises misses where all sizes are equal; here they are not.
    """
    here = [(evictable[h.item].next_use, h.size, -h.address, h.item) for h in arena if h.item in evictable]
    return (max(here)[3],) if here else ()


def least_traffic(arena: Arena, size: int, evictable: Mapping[int, Evictable]) -> tuple[int, ...]:
    """Return the tensors in one window of `size` bytes that make room for the least traffic of any set.

    The rule is exact: every eviction that makes room empties some window, and that window can slide down
    without meeting other tensors until it begins where a tensor ends or at 0. Only these windows are
    examined. The paper solves an integer program each time, for the same set. Of equals it evicts the set
    whose first next use is the latest.
    """
    held = list(arena)
    best: tuple[int, int, int, tuple[int, ...]] | None = None
    for start in [0, *(h.end for h in held)]:
        if start + size > arena.capacity:
            continue
        met = [h.item for h in held if h.address < start + size and start < h.end]
        if not all(item in evictable for item in met):
            continue
        traffic = sum(evictable[item].traffic for item in met)
        soonest = min((evictable[item].next_use for item in met), default=0)
        if best is None or (traffic, -soonest, start) < best[:3]:
            best = traffic, -soonest, start, tuple(met)
    return () if best is None else best[3]
