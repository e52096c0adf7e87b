"""A packing problem, its answer, and the validator, which knows nothing of any solver."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, lcm
from typing import Literal

from onchip.base.units import MAX_BYTES

__all__ = [
    "ALL_RULES",
    "Buffer",
    "Engine",
    "Packing",
    "Rules",
    "Status",
    "aligned",
    "fault",
    "max_load",
]

MOST_WORK = 5_000_000
"""Steps after which a bound may stay weaker."""

MAX_TIME = 1 << 60
Engine = Literal["bound", "greedy", "search", "repair", "cp-sat"]
Status = Literal["packed", "infeasible", "unknown"]


@dataclass(frozen=True, slots=True)
class Buffer:
    """`size` bytes, live in the half-open time interval [lower, upper) except in its gaps.

    Its offset is a multiple of `alignment` bytes, and `offset` itself unless that is None. `gaps` are
    half-open time intervals within the live range, ascending and disjoint, in which others may use its bytes.
    """

    lower: int
    upper: int
    size: int
    alignment: int = 1
    offset: int | None = None
    gaps: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.lower >= self.upper:
            raise ValueError(f"an empty live range: [{self.lower}, {self.upper})")
        if max(abs(self.lower), abs(self.upper)) > MAX_TIME:
            raise ValueError(f"a time beyond {MAX_TIME:,}")
        if not 1 <= self.size <= MAX_BYTES:
            raise ValueError(f"a size that is not from 1 to {MAX_BYTES:,} bytes: {self.size:,}")
        if not 1 <= self.alignment <= MAX_BYTES:
            raise ValueError(f"an alignment that is not from 1 to {MAX_BYTES:,} bytes: {self.alignment:,}")
        if self.offset is not None and not 0 <= self.offset <= MAX_BYTES:
            raise ValueError(f"an offset that is not from 0 to {MAX_BYTES:,} bytes: {self.offset:,}")
        if self.offset is not None and self.offset % self.alignment:
            raise ValueError(f"an offset, {self.offset:,}, that is no multiple of {self.alignment:,}")
        end = self.lower
        for begin, after in self.gaps:
            if not end <= begin < after <= self.upper:
                raise ValueError(
                    f"a gap that is empty, out of order or outside the live range: [{begin}, {after})"
                )
            end = after
        if self.gaps and not self.live:
            raise ValueError("gaps that leave no live range")

    @property
    def live(self) -> tuple[tuple[int, int], ...]:
        """The half-open intervals in which it is live, ascending and disjoint."""
        if not self.gaps:
            return ((self.lower, self.upper),)
        begins = [self.lower, *(after for _, after in self.gaps)]
        ends = [*(begin for begin, _ in self.gaps), self.upper]
        return tuple((b, e) for b, e in zip(begins, ends, strict=True) if b < e)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of the complete search, each a switch. None changes an answer, only the time it takes.

    docs/packing.md states each rule with the argument why it is sound.
    """

    divide: bool = True
    """Sizes and capacity in units of the sizes' greatest common divisor."""
    cliques: bool = True
    """Time compressed to the maximal cliques of the live ranges."""
    section_bound: bool = True
    """Per section, stack unplaced buffers in order of their lower bounds; off: floor + total."""
    canonical_skip: bool = True
    """A gap lifts a buffer to its next canonical level; off: by one unit."""
    boundary: bool = True
    """Between two sections without room for a gap, ending and starting buffers must balance."""
    symmetry: bool = True
    """Of identical buffers try only one."""
    decompose: bool = True
    """Stretches of time that share no unplaced buffer are solved one after the other."""
    table: bool = True
    """States once refuted are remembered, also over restarts."""
    backjump: bool = True
    """A failure that does not rest on a decision returns past it."""
    restarts: bool = True
    """Start again after growing numbers of nodes, in six branching orders by turns."""
    last_conflict: bool = True
    """Among equally constrained sections branch on the one nearest to the last failure."""


ALL_RULES = Rules()


@dataclass(frozen=True, slots=True)
class Packing:
    """The answer: `packed` with one offset in bytes per buffer, `infeasible` (proved) or `unknown` (a limit).

    `engine` is the method that decided it: `bound` (the load alone), `greedy`, `search` (the complete one),
    `repair` (of first fit) or `cp-sat`.
    """

    status: Status
    offsets: tuple[int, ...]
    nodes: int
    seconds: float
    engine: Engine


def aligned(buffers: Sequence[Buffer], alignment: int) -> list[Buffer]:
    """Return the buffers with sizes rounded up to `alignment` and offsets at multiples of it.

    Raises `ValueError` for a fixed offset that is no multiple of it.
    """
    if alignment < 1:
        raise ValueError("alignment must be at least 1")
    if alignment == 1:
        return list(buffers)
    return [
        replace(b, size=-(-b.size // alignment) * alignment, alignment=lcm(b.alignment, alignment))
        for b in buffers
    ]


def fault(
    buffers: Sequence[Buffer], offsets: Sequence[int], capacity: int, *, alignment: int = 1
) -> str | None:
    """Return the fault of a packing, in one line, or None if it has none."""
    if len(offsets) != len(buffers):
        return f"{len(offsets)} offsets for {len(buffers)} buffers"
    for i, (buffer, at) in enumerate(zip(buffers, offsets, strict=True)):
        if at < 0 or at + buffer.size > capacity:
            return f"buffer {i} leaves [0, {capacity})"
        if at % alignment or at % buffer.alignment:
            return f"buffer {i} is not aligned to {lcm(alignment, buffer.alignment)}"
        if buffer.offset not in (None, at):
            return f"buffer {i} is at {at}, not at {buffer.offset}"
    ends = [(upper, 0, i) for i, b in enumerate(buffers) for _, upper in b.live]
    starts = [(lower, 1, i) for i, b in enumerate(buffers) for lower, _ in b.live]
    live: list[tuple[int, int]] = []  # (offset, buffer), disjoint, ascending
    for _, is_start, i in sorted(ends + starts):
        at = bisect(live, (offsets[i], i))
        if not is_start:
            del live[at - 1]
            continue
        for other, clash in live[max(at - 1, 0) : at + 1]:
            if other < offsets[i] + buffers[i].size and offsets[i] < other + buffers[clash].size:
                return f"buffers {min(i, clash)} and {max(i, clash)} overlap"
        live.insert(at, (offsets[i], i))
    return None


def max_load(buffers: Sequence[Buffer], *, alignment: int = 1) -> int:
    """Return a lower bound of the capacity in bytes: the most bytes live at once, and the ends of fixed ones.

    Sizes count rounded up to `alignment`; if everything live together is aligned to some g, sizes count
    rounded up to g, except for the one that can lie on top; not so if it takes millions of steps.
    """
    buffers = aligned(buffers, alignment)
    changes: dict[int, list[tuple[int, int]]] = {}
    for i, b in enumerate(buffers):
        for lower, upper in b.live:
            changes.setdefault(lower, []).append((1, i))
            changes.setdefault(upper, []).append((0, i))
    # An offset of 0 is a multiple of everything.
    grids = [b.alignment if b.offset is None else b.offset for b in buffers]
    padded = any(grid != 1 for grid in grids)
    most = max((b.offset + b.size for b in buffers if b.offset is not None), default=0)
    load, work, live = 0, 0, set[int]()
    for time in sorted(changes):
        for is_start, i in sorted(changes[time]):
            load += buffers[i].size if is_start else -buffers[i].size
            (live.add if is_start else live.remove)(i)
        most = max(most, load)
        work += len(live)
        if padded and work <= MOST_WORK and (grid := gcd(*(grids[i] for i in live))) > 1:
            pads = [-buffers[i].size % grid for i in live]
            most = max(most, load + sum(pads) - max(pads))
    return most
