"""The smallest capacity that holds all buffers, between proved bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from onchip.planners.limits import Limits
from onchip.planners.packing.buffers import (
    ALL_RULES,
    Buffer,
    Engine,
    Rules,
    aligned,
    fault,
    max_load,
)
from onchip.planners.packing.large import allocate, is_large
from onchip.planners.packing.pack import Progress, greedily, pack

__all__ = ["Extent", "minimise"]


@dataclass(frozen=True, slots=True)
class Extent:
    """The lowest packing found: its extent `bytes`, its offsets, and `lower_bound`, below which none exists.

    `engine` found it, after `nodes` of the search in all. `interrupted`: Ctrl-C ended the search.
    """

    bytes: int
    lower_bound: int
    offsets: tuple[int, ...]
    seconds: float
    engine: Engine = "bound"
    nodes: int = 0
    interrupted: bool = False

    @property
    def optimal(self) -> bool:
        """True if no lower packing exists."""
        return self.bytes == self.lower_bound


def minimise(
    buffers: Sequence[Buffer],
    *,
    alignment: int = 1,
    time_limit: float | None = 60.0,
    rules: Rules = ALL_RULES,
    seed: int = 0,
    progress: Progress | None = None,
) -> Extent:
    """Return the smallest capacity found within `time_limit` (seconds), with a proved lower bound.

    The maximum load is tried first, because most instances pack there; then the complete search repeatedly
    halves the gap to the best heuristic. `progress` is as in `pack`. Ctrl-C ends it with the best so far.
    Raises `ValueError` if fixed buffers overlap, so that no capacity is enough.
    """
    limits = Limits(time_limit)
    if not buffers:
        return Extent(0, 0, (), 0.0)
    given = aligned(buffers, alignment)
    fixed = [b for b in given if b.offset is not None]
    if wrong := fault(fixed, [b.offset or 0 for b in fixed], max_load(fixed)):
        raise ValueError(f"among the fixed {wrong}")
    step = grain(given)
    lower = max_load(given)
    if is_large(given):
        found_offsets, end = allocate(given)
        return Extent(end, lower, tuple(found_offsets), limits.spent(), "greedy")
    offsets, best = greedily(given, lower, rules)
    engine: Engine = "greedy"
    nodes, interrupted = 0, False
    undecided = lower  # capacities from `lower` to below this one are undecided
    try:
        target = lower
        while undecided < best:
            if limits.over():
                break
            third = limits.share(1 / 3).left()
            found = pack(given, target, time_limit=third, rules=rules, seed=seed, progress=progress)
            nodes += found.nodes
            if found.status == "packed":
                engine = found.engine
                offsets = list(found.offsets)
                best = max(at + b.size for at, b in zip(offsets, given, strict=True))
            else:
                if found.status == "infeasible":
                    lower = max(lower, (target // step + 1) * step)
                undecided = (target // step + 1) * step
            target = (undecided + best) // 2
    except KeyboardInterrupt:
        interrupted = True
    return Extent(best, lower, tuple(offsets), limits.spent(), engine, nodes, interrupted)


def grain(buffers: Sequence[Buffer]) -> int:
    """Return the bytes that divide the least extent: the gcd of sizes, fixed offsets, larger alignments."""
    unit, before = gcd(*(b.size for b in buffers), *(b.offset or 0 for b in buffers)), 0
    while before != unit:
        before = unit
        unit = gcd(unit, *(b.alignment for b in buffers if unit % b.alignment))
    return unit
