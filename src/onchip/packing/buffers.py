"""What a packing problem and its answer are, and the validator, which knows nothing of any solver."""

from __future__ import annotations

import csv
import io
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from onchip.errors import InputError
from onchip.files import read_bytes
from onchip.units import MAX_BYTES

__all__ = ["ALL_RULES", "Buffer", "Engine", "Packing", "Rules", "Status", "fault", "max_load", "read_buffers"]

MAX_TIME = 1 << 60
Engine = Literal["bound", "greedy", "search", "repair", "cp-sat"]
Status = Literal["packed", "infeasible", "unknown"]


@dataclass(frozen=True, slots=True)
class Buffer:
    """`size` bytes, live in the half-open time interval [lower, upper)."""

    lower: int
    upper: int
    size: int

    def __post_init__(self) -> None:
        if self.lower >= self.upper:
            raise ValueError(f"an empty live range: [{self.lower}, {self.upper})")
        if max(abs(self.lower), abs(self.upper)) > MAX_TIME:
            raise ValueError(f"a time beyond {MAX_TIME:,}")
        if not 1 <= self.size <= MAX_BYTES:
            raise ValueError(f"a size that is not from 1 to {MAX_BYTES:,} bytes: {self.size:,}")


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
    """Per section, stack what is unplaced in order of its lower bounds; off: floor + total."""
    canonical_skip: bool = True
    """A gap lifts a buffer to its next canonical level; off: by one unit."""
    boundary: bool = True
    """Between two sections without room for a gap, what ends and what starts must balance."""
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

    `engine` is what decided it: `bound` (the load alone), `greedy`, `search` (the complete one), `repair` (of
    first fit) or `cp-sat`.
    """

    status: Status
    offsets: tuple[int, ...]
    nodes: int
    seconds: float
    engine: Engine


def fault(
    buffers: Sequence[Buffer], offsets: Sequence[int], capacity: int, *, alignment: int = 1
) -> str | None:
    """What is wrong with a packing, in one line, or None when it is right."""
    if len(offsets) != len(buffers):
        return f"{len(offsets)} offsets for {len(buffers)} buffers"
    for i, (buffer, at) in enumerate(zip(buffers, offsets, strict=True)):
        if at < 0 or at + buffer.size > capacity:
            return f"buffer {i} leaves [0, {capacity})"
        if at % alignment:
            return f"buffer {i} is not aligned to {alignment}"
    ends = [(b.upper, 0, i) for i, b in enumerate(buffers)]
    starts = [(b.lower, 1, i) for i, b in enumerate(buffers)]
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
    """The most bytes live at once, sizes rounded up to `alignment`: no packing has a lower extent."""
    changes: dict[int, int] = {}
    for b in buffers:
        size = -(-b.size // alignment) * alignment
        changes[b.lower] = changes.get(b.lower, 0) + size
        changes[b.upper] = changes.get(b.upper, 0) - size
    load = most = 0
    for time in sorted(changes):
        load += changes[time]
        most = max(most, load)
    return most


def read_buffers(path: Path) -> tuple[Buffer, ...]:
    """The buffers in a minimalloc CSV file (`id,lower,upper,size`, half-open), in file order.

    Raises `InputError` naming the file and line for a missing column or a value that makes no buffer.
    """
    text = read_bytes(path, error=InputError).decode("utf-8", errors="replace")
    rows = csv.DictReader(io.StringIO(text))
    missing = {"lower", "upper", "size"} - set(rows.fieldnames or ())
    if missing:
        raise InputError(f"has no column {', '.join(sorted(missing))}", where=str(path))
    result = []
    for row in rows:
        try:
            result.append(Buffer(int(row["lower"]), int(row["upper"]), int(row["size"])))
        except (TypeError, ValueError) as problem:
            raise InputError(str(problem), where=str(path), item=f"line {rows.line_num}") from None
    return tuple(result)
