"""MiniMalloc's CSV: `id,lower,upper,size,offset`, times in steps of the plan, half-open.

The rows are residencies, so a tensor that is spilled and reloaded has several: a packer may move them freely
as long as order and evictions stay. Sizes are rounded up to the chip's alignment, as in the scratchpad.
"""

from __future__ import annotations

from pathlib import Path

from onchip.base.errors import UsageError
from onchip.export.layout import layout_of
from onchip.export.names import plain
from onchip.plans import Plan

__all__ = ["write"]


def write(plan: Plan, model: str | Path | None = None) -> str:
    """Return the CSV; raises `UsageError` for outputs written over inputs: rows cannot share bytes."""
    rows = ["id,lower,upper,size,offset"]
    used: dict[str, int] = {}
    for r in layout_of(plan, "minimalloc").residencies:
        if r.over is not None:
            raise UsageError(
                "minimalloc's rows cannot share bytes with another", item=f"{r.name} over {r.over}"
            )
        base = plain(r.name) if r.kind == "tensor" else f"{r.kind}_{plain(r.name)}"
        used[base] = used.get(base, 0) + 1
        name = base if used[base] == 1 else f"{base}.{used[base]}"  # no plain name has a dot
        rows.append(f"{name},{r.first},{r.end},{plan.chip.round_up(r.bytes)},{r.offset}")
    return "\n".join(rows) + "\n"
