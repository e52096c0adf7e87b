"""The content of the scratchpad while a unit runs: its scratch, as the checker derives it, and the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from onchip.check.parts import Part
from onchip.check.replay import Ran, events_of
from onchip.plans import Plan
from onchip.report.graph.units import Unit, map_of
from onchip.report.steps import Residency, Timeline

__all__ = ["WHAT", "Buffer", "buffers"]

WHAT = (
    *("enters", "inside", "leaves", "resident weights", "weight tile", "scratch", "kept for later"),
    "reserved, not used",
)
"""The roles of a buffer in its unit."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """One piece of the scratch, or with `whole` a range beside it; `what` is its index in `WHAT`.

    It shares `shared` of its bytes with another buffer, which is written over it.
    """

    what: int
    part: Part
    whole: bool = False
    shared: int = 0


def buffers(plan: Plan, line: Timeline, units: tuple[Unit, ...]) -> Mapping[str, tuple[Buffer, ...]]:
    """Return every unit's buffers by its name: inputs, inner maps, outputs; weights; whole operands."""
    found = {event.unit.name: event.unit.parts for event in events_of(plan) if isinstance(event, Ran)}
    count, size = _live(line)
    result = {}
    for u in units:
        inside = [Buffer(_what(u, p), p) for p in found[u.name] if p.bytes]
        scratch = plan.chip.round_up(u.scratch)
        if not found[u.name] and u.scratch:
            inside = [Buffer(5, Part("", scratch))]
        elif (rest := u.scratch - sum(b.part.bytes for b in inside)) > 0:  # declared beyond its need
            inside.append(Buffer(7, Part("rest of the scratch", rest)))
        there = {t: stay for t in u.whole if (stay := _stay(line, t, u.step)) is not None}
        beside = [_whole(plan, u, t, there) for t in u.whole]
        others = count[u.step] - len(there) - (u.scratch > 0)
        kept = size[u.step] - sum(stay.size for stay in there.values()) - scratch
        if others > 0 and kept > 0:
            word = "tensor" if others == 1 else "tensors"
            beside.append(Buffer(6, Part(f"{others:,} {word}", kept), True))
        result[u.name] = (*sorted(inside, key=lambda b: b.what), *beside)
    return result


def _live(line: Timeline) -> tuple[list[int], list[int]]:
    """Return by step: the number of live ranges while its unit runs, and their bytes."""
    count, size = [0] * (len(line.steps) + 2), [0] * (len(line.steps) + 2)
    for r in line.residencies:
        count[r.start] += 1
        count[r.end] -= 1
        size[r.start] += r.size
        size[r.end] -= r.size
    return list(accumulate(count)), list(accumulate(size))


def _stay(line: Timeline, tensor: int, step: int) -> Residency | None:
    return next((r for r in line.stays.get(tensor, ()) if r.start <= step < r.end), None)


def _whole(plan: Plan, unit: Unit, t: int, there: Mapping[int, Residency]) -> Buffer:
    """Return a whole operand; bytes that it shares with an output count for the output."""
    net = plan.network
    size, mine, shared = plan.chip.round_up(net.tensors[t].bytes), there.get(t), 0
    if mine is None:
        shared = size  # an operand that is a part of a concat's range
    elif t in unit.inputs:
        for y in unit.outputs:
            if (other := there.get(y)) is not None and other.memory == mine.memory:
                low = max(mine.address, other.address)
                shared += max(0, min(mine.address + mine.size, other.address + other.size) - low)
    images, channels, rows, columns = map_of(net, t) or (0, 0, 0, 0)
    part = Part(net.tensors[t].name, size, t, images, channels, rows, columns)
    return Buffer(0 if t in unit.inputs else 2, part, True, shared)


def _what(unit: Unit, part: Part) -> int:
    if part.tensor is None:
        return 3 if part.kept else 4
    return 0 if part.tensor in unit.inputs else 2 if part.tensor in unit.outputs else 1
