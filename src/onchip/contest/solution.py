"""A schedule of the contest: subgraphs one after another, and the JSON that the contest writes it in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onchip.base.codec import decode, from_wire, wire_of
from onchip.base.errors import PlanFormatError
from onchip.base.files import read_bytes, write_atomically

__all__ = ["Step", "read_solution", "solution_from_json", "solution_json", "write_solution"]


@dataclass(frozen=True, slots=True)
class Step:
    """One subgraph: its operators in order, the tile, what it retains, the order of its tiles.

    Without a `traversal` tiles come row by row. `latency` is what the schedule states.
    """

    operators: tuple[int, ...]
    width: int
    height: int
    depth: int
    """k, the part of a reduction that one step does."""
    retained: tuple[int, ...] = ()
    traversal: tuple[int, ...] | None = None
    latency: float = 0.0


@dataclass(frozen=True, slots=True)
class SolutionRecord:
    """A solution's file, key by key."""

    subgraphs: tuple[tuple[int, ...], ...]
    granularities: tuple[tuple[int, ...], ...]
    tensors_to_retain: tuple[tuple[int, ...], ...]
    traversal_orders: tuple[tuple[int, ...] | None, ...]
    subgraph_latencies: tuple[float, ...]


def read_solution(path: Path) -> tuple[Step, ...]:
    """Return the schedule in a file; raises `PlanFormatError` with the file, the key and the reason."""
    return solution_from_json(read_bytes(path, error=PlanFormatError), str(path))


def solution_from_json(content: bytes, where: str) -> tuple[Step, ...]:
    """Return the schedule in a file's content."""
    wire = decode(content, wire_of(SolutionRecord), where=where, error=PlanFormatError)
    record: SolutionRecord = from_wire(SolutionRecord, wire)
    count = len(record.subgraphs)
    for key in ("granularities", "tensors_to_retain", "traversal_orders", "subgraph_latencies"):
        found = len(getattr(record, key))
        if found != count:
            raise PlanFormatError(f"has {found} entries, subgraphs {count}", where=where, item=key)
    for at, granularity in enumerate(record.granularities):
        if len(granularity) != 3:
            reason = f"entry {at} has {len(granularity)} numbers, not three"
            raise PlanFormatError(reason, where=where, item="granularities")
    rows = zip(
        record.subgraphs,
        record.granularities,
        record.tensors_to_retain,
        record.traversal_orders,
        record.subgraph_latencies,
        strict=True,
    )
    return tuple(Step(ops, w, h, k, kept, order, latency) for ops, (w, h, k), kept, order, latency in rows)


def solution_json(steps: Sequence[Step]) -> str:
    """Return the schedule as the contest's JSON."""
    return json.dumps(
        {
            "subgraphs": [step.operators for step in steps],
            "granularities": [(step.width, step.height, step.depth) for step in steps],
            "tensors_to_retain": [step.retained for step in steps],
            "traversal_orders": [step.traversal for step in steps],
            "subgraph_latencies": [step.latency for step in steps],
        }
    )


def write_solution(path: Path, steps: Sequence[Step]) -> None:
    """Write the schedule to a file, whole or not at all."""
    write_atomically(path, solution_json(steps) + "\n")
