"""`onchip.layout/1`: the tables of a plan as JSON, one row a line. docs/export.md lists the keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from onchip.export.layout import Copy, Residency, layout_of
from onchip.plan import Plan

__all__ = ["FORMAT", "write"]

FORMAT = "onchip.layout/1"


def write(plan: Plan, model: str | Path | None = None) -> str:
    """The JSON object; raises `UsageError` for a plan that streams operands."""
    network, layout = plan.network, layout_of(plan, "json")
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
    tables: dict[str, list[Any]] = {
        "steps": list(layout.steps),
        "tensors": [{"name": t.name, "bytes": t.bytes, "kind": t.kind} for t in network.tensors],
        "outputs": [name[t] for t in network.outputs],
        "views": [{"tensor": name[v.tensor], "of": name[v.of], "offset": v.offset} for v in network.views],
        "residencies": [_residency(r) for r in layout.residencies],
        "copies": [_copy(c) for c in layout.copies],
    }
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
    }
    return row if r.over is None else {**row, "over": r.over, "by": r.by}


def _copy(c: Copy) -> dict[str, Any]:
    return {
        "before_step": c.step,
        "direction": c.direction,
        "tensor": c.tensor,
        "offset": c.offset,
        "bytes": c.bytes,
        "reason": c.reason,
    }
