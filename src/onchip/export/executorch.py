"""`onchip.executorch/1`: the places of all tensors for ExecuTorch's memory planning, as JSON.

ExecuTorch gives each planned tensor a `mem_id` (a buffer; 0 is for constants, planned memory starts at 1)
and a `mem_offset` in it, for as long as the tensor lives; the sizes of all buffers by `mem_id` are its
`bufsizes`. It keeps graph inputs from the start and outputs to the end, and moves nothing. A plan must fit
these rules.
"""

from __future__ import annotations

import json
from pathlib import Path

from onchip.base.errors import UsageError
from onchip.export.layout import Layout, Residency, layout_of
from onchip.plans import Plan

__all__ = ["FORMAT", "write"]

FORMAT = "onchip.executorch/1"

Life = tuple[int, int, Residency]
"""First and last step, both inclusive, and the residency."""


def write(plan: Plan, model: str | Path | None = None) -> str:
    """Return the JSON object, one tensor a line; docs/export.md lists its keys.

    Raises `UsageError` naming the tensor or operator that ExecuTorch's planning cannot express: tensors that
    move or leave for DRAM, workspaces, groups, state, two that would share bytes.
    """
    network = plan.network
    if plan.groups or plan.state or plan.caches or plan.pins:
        raise UsageError("executorch plans tensors: no groups, states or pins", where=network.name)
    if plan.result.traffic_bytes:
        raise UsageError(
            f"the plan moves {plan.result.traffic_bytes:,} bytes to and from DRAM, and executorch moves none",
            where=network.name,
        )
    layout = layout_of(plan, "executorch", memories=True)
    ids: dict[str | None, int] = {m.name: i for i, m in enumerate(plan.chip.memories, 1)} or {None: 1}
    lives = _lives(plan, layout)
    _apart(lives)
    sizes = [0] * (len(ids) + 1)
    rows = []
    for name, (first, last, r) in lives.items():
        sizes[ids[r.memory]] = max(sizes[ids[r.memory]], r.offset + plan.chip.round_up(r.bytes))
        rows.append(_row(name, ids[r.memory], r.offset, r.bytes, first, last))
    tensor = network.tensors
    for view in network.views:
        first, last, r = lives[tensor[view.of].name]
        at = r.offset + view.offset
        rows.append(_row(tensor[view.tensor].name, ids[r.memory], at, tensor[view.tensor].bytes, first, last))
    head = {
        "format": FORMAT,
        "network": network.name,
        "source": network.source,
        "sha256": network.sha256,
        "alignment": plan.chip.alignment_bytes,
        "memories": [{"mem_id": i, "name": name or plan.chip.name} for name, i in ids.items()],
        "bufsizes": sizes,
        "operators": list(layout.steps),
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    body = ",\n  ".join(json.dumps(row) for row in rows)
    return "{\n" + ",\n".join(lines) + f',\n "tensors": [\n  {body}\n ]\n}}\n'


def _row(name: str, mem_id: int, offset: int, size: int, first: int, last: int) -> dict[str, object]:
    return {
        "name": name,
        "mem_id": mem_id,
        "mem_offset": offset,
        "allocated_memory": size,
        "lifetime": [first, last],
    }


def _lives(plan: Plan, layout: Layout) -> dict[str, Life]:
    """Return every tensor's one place, for as long as ExecuTorch keeps it."""
    network = plan.network
    inputs = {t.name for t in network.tensors if t.kind == "input"}
    outputs = {network.tensors[network.root[t]].name for t in network.outputs}
    end, found = len(layout.steps) - 1, dict[str, Life]()
    for r in layout.residencies:
        if r.kind != "tensor":
            raise UsageError("has a workspace, and executorch plans tensors only", item=f"operator {r.name}")
        if r.over is not None:
            raise UsageError(f"lies over {r.over}, and executorch keeps lives apart", item=f"tensor {r.name}")
        if r.name in found:
            before = found[r.name][2]
            if (before.memory, before.offset) != (r.memory, r.offset):
                raise UsageError(
                    f"moves from {before.memory or 'its place'} to {r.memory or 'another'}, and in executorch"
                    " a tensor has one place: plan with --no-moves",
                    item=f"tensor {r.name}",
                )
        first, last, _ = found.get(r.name, (r.first, r.end - 1, r))
        first = 0 if r.name in inputs else min(first, r.first)
        found[r.name] = first, end if r.name in outputs else max(last, r.end - 1), r
    return found


def _apart(lives: dict[str, Life]) -> None:
    """Refuse two tensors that share a byte while ExecuTorch keeps both."""
    rows = sorted(lives.items(), key=lambda item: item[1][0])
    held: list[tuple[str, Life]] = []
    for name, (first, last, r) in rows:
        held = [(other, life) for other, life in held if life[1] >= first]
        for other, (_, _, o) in held:
            if o.memory == r.memory and o.offset < r.offset + r.bytes and r.offset < o.offset + o.bytes:
                raise UsageError(
                    f"shares bytes with {other}: executorch keeps inputs from the start, outputs to the end",
                    item=f"tensor {name}",
                )
        held.append((name, (first, last, r)))
