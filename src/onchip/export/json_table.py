"""`onchip.layout/1`: the tables of a plan as JSON, one row a line. docs/export.md lists the keys."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from onchip.export.layout import Copy, Residency, layout_of
from onchip.plans import Plan

__all__ = ["FORMAT", "write"]

FORMAT = "onchip.layout/1"


def write(plan: Plan, model: str | Path | None = None) -> str:
    """Return the JSON object."""
    network, layout = plan.network, layout_of(plan, "json", memories=True, tiles=True)
    name = [t.name for t in network.tensors]
    head: dict[str, Any] = {
        "format": FORMAT,
        "network": network.name,
        "source": network.source,
        "sha256": network.sha256,
        "chip": plan.chip.name,
        "alignment_bytes": plan.chip.alignment_bytes,
        "budget_bytes": plan.budget,
        "extent_bytes": plan.result.extent_bytes,
        "traffic_bytes": plan.result.traffic_bytes,
    }
    if plan.chip.memories:
        head["memories"] = [
            {"name": m.name, "bytes": m.bytes, "extent_bytes": use.extent_bytes}
            for m, use in zip(plan.chip.memories, plan.result.memories, strict=True)
        ]
    tables: dict[str, list[Any]] = {
        "steps": list(layout.steps),
        "tensors": [{"name": t.name, "bytes": t.bytes, "kind": t.kind} for t in network.tensors],
        "outputs": [name[t] for t in network.outputs],
        "views": [{"tensor": name[v.tensor], "of": name[v.of], "offset": v.offset} for v in network.views],
        "residencies": [_residency(r) for r in layout.residencies],
        "copies": [_copy(c) for c in layout.copies],
    }
    if again := [op for op in network.operators if op.repeats is not None]:
        tables["repeats"] = [
            {"operator": op.name, "of": network.operators[op.repeats or 0].name} for op in again
        ]
    if layout.streams:
        tables["streams"] = [asdict(s) for s in layout.streams]
    if layout.joined:
        tables["joined_steps"] = list(layout.joined)
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for key, rows in tables.items():
        body = ",\n  ".join(json.dumps(row) for row in rows)
        lines.append(f" {json.dumps(key)}: [" + (f"\n  {body}\n ]" if rows else "]"))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _residency(r: Residency) -> dict[str, Any]:
    row: dict[str, Any] = {
        r.kind if r.kind == "tensor" else f"{r.kind}_of": r.name,
        "offset": r.offset,
        "bytes": r.bytes,
        "first_step": r.first,
        "end_step": r.end,
        **({} if r.memory is None else {"memory": r.memory}),
    }
    if r.parts:
        row["parts"] = list(r.parts)
    return row if r.over is None else {**row, "over": r.over, "by": r.by}


def _copy(c: Copy) -> dict[str, Any]:
    row: dict[str, Any] = {
        "before_step": c.step,
        "direction": c.direction,
        "tensor": c.tensor,
        "offset": c.offset,
        "bytes": c.bytes,
        "reason": c.reason,
    }
    if c.memory is not None:
        row["memory"] = c.memory
    return row if c.to_memory is None else {**row, "to_memory": c.to_memory, "to_offset": c.to_offset}
