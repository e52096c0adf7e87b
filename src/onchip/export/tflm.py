"""`OfflineMemoryAllocation`: a copy of a `.tflite` model in which TFLM finds the plan's offsets.

TFLM runs operators in the file's order out of one arena, and plans offsets itself unless the model's metadata
has some (its docs/memory_management.md): 32-bit integers, little endian: version, number of subgraphs, number
of tensors, then an offset for every tensor, -1 for one that the runtime is to place. It keeps inputs from
before the first operator, outputs until after the last, and has no DRAM; a plan must fit these rules.
"""

from __future__ import annotations

import struct
from bisect import insort
from pathlib import Path

from onchip.base.errors import UsageError
from onchip.export.layout import Layout, Residency, layout_of
from onchip.plans import PinnedWeights, Plan
from onchip.readers.source import TfliteExecutable
from onchip.readers.tflite_rewrite import rewritten
from onchip.run.source import source_of

__all__ = ["ALIGNMENT", "METADATA", "write"]

METADATA = "OfflineMemoryAllocation"
ALIGNMENT = 16
VERSION = 1


def write(plan: Plan, model: str | Path | None = None) -> bytes:
    """Return the copy: the original's bytes behind a new head with the metadata and the plan's order.

    Raises `UsageError` naming the tensor or operator for a plan that TFLM cannot follow, `InputError` when
    the model is missing or changed.
    """
    executable = source_of(plan, model)
    where = plan.network.source or plan.network.name
    if not isinstance(executable, TfliteExecutable):
        raise UsageError("is no .tflite model, and TFLM runs nothing else", where=where)
    _sizes(plan, executable)
    if plan.state or plan.caches or any(isinstance(pin, PinnedWeights) for pin in plan.pins):
        raise UsageError(
            "keeps state or weights in the arena, and TFLM's offsets are for tensors", where=where
        )
    if plan.groups:
        raise UsageError("TFLM knows no fused groups", item=f"group {plan.groups[0].name}")
    if plan.result.traffic_bytes:
        least = plan.options.get("zero_traffic_bytes")
        hint = f"; --budget {least} needs none" if least else ""
        raise UsageError(
            f"the plan moves {plan.result.traffic_bytes:,} bytes to and from DRAM, and TFLM has none{hint}",
            where=where,
        )
    layout = layout_of(plan, "tflm")
    address = _addresses(plan, layout)
    _lifetimes(plan, layout)
    order = _order(plan, layout, executable)
    offsets = [-1] * len(executable.graph.tensors)
    id_of = {value: t for t, value in enumerate(executable.value)}
    for tensor, (root, inside) in executable.places.items():
        if root in id_of:
            offsets[tensor] = address[plan.network.tensors[id_of[root]].name] + inside
    data = struct.pack(f"<3I{len(offsets)}i", VERSION, 1, len(offsets), *offsets)
    same = order == list(range(len(order)))
    return rewritten(executable.graph, operators=None if same else order, metadata=(METADATA, data))


def _sizes(plan: Plan, executable: TfliteExecutable) -> None:
    """Refuse planned sizes other than the file's, such as 8-bit tensors for a model of floats."""
    for t in plan.network.tensors:
        stated = executable.file_bytes[t.id]
        if t.bytes != stated:
            raise UsageError(
                f"was planned with {t.bytes:,} bytes and has {stated:,} in the file: plan with --dtype file",
                item=f"tensor {t.name}",
            )


def _addresses(plan: Plan, layout: Layout) -> dict[str, int]:
    """Return the address of every tensor that is not a view."""
    found: dict[str, int] = {}
    for r in layout.residencies:
        if r.kind != "tensor":
            continue
        if r.offset % ALIGNMENT:
            raise UsageError(
                f"lies at {r.offset:,}, and TFLM aligns to {ALIGNMENT}: plan with --chip tflm",
                item=f"tensor {r.name}",
            )
        if not r.offset <= 2**31 - 1 - r.bytes:
            raise UsageError("lies beyond 2 GiB, where TFLM's offsets end", item=f"tensor {r.name}")
        if found.setdefault(r.name, r.offset) != r.offset:
            raise UsageError("is moved, and TFLM moves nothing", item=f"tensor {r.name}")
    return found


def _lifetimes(plan: Plan, layout: Layout) -> None:
    """Check that TFLM's kept tensors share no byte: inputs from the start, outputs to the end."""
    network = plan.network
    inputs = {t.name for t in network.tensors if t.kind == "input"}
    outputs = {network.tensors[network.root[t]].name for t in network.outputs}
    lives: dict[str, tuple[int, int, Residency]] = {}
    for r in layout.residencies:
        if r.kind != "tensor":
            continue
        if r.over is not None:
            _in_place(plan, r, inputs | outputs)
        first, end, _ = lives.get(r.name, (r.first, r.end, r))
        first = 0 if r.name in inputs else min(first, r.first)
        lives[r.name] = (first, len(layout.steps) if r.name in outputs else max(end, r.end), r)
    held: list[tuple[int, int, int, str]] = []  # (offset, end of its bytes, step it ends, name), by offset
    for first, end, r in sorted(lives.values(), key=lambda life: life[0]):
        held = [row for row in held if row[2] > first]
        for offset, stop, _, name in held:
            if offset < r.offset + r.bytes and r.offset < stop and name != r.over:
                raise UsageError(
                    f"shares bytes with {name}, and TFLM keeps "
                    + ("outputs to the end" if {name, r.name} & outputs else "inputs from the start")
                    + "; `onchip export MODEL.tflite --to tflm` packs the model for that",
                    item=f"tensor {r.name}",
                )
        insort(held, (r.offset, r.offset + r.bytes, end, r.name))


def _in_place(plan: Plan, r: Residency, kept: set[str]) -> None:
    """Allow overwriting only in TFLM's element-wise kernels, which read an element before writing it."""
    network = plan.network
    op = network.operators[network.producer[network.tensor_id[r.name]] or 0]
    same = r.by == 0 and network.tensors[network.tensor_id[r.over or ""]].bytes == r.bytes
    if not same or op.geometry is None or op.geometry.kind != "elementwise" or r.over in kept:
        raise UsageError(
            f"is written over {r.over} by {op.name}: in TFLM an element-wise operator can do that, exactly",
            item=f"tensor {r.name}",
        )


def _order(plan: Plan, layout: Layout, executable: TfliteExecutable) -> list[int]:
    """Return the file's nodes in the plan's order; those that move nothing come just before readers."""
    nodes = executable.graph.nodes
    producer = {t: node.index for node in nodes for t in node.outputs if t >= 0}
    done: dict[int, None] = {}
    for name in layout.steps:
        needed, pending = set[int](), list(executable.nodes[plan.network.operator_id[name]])
        while pending:
            index = pending.pop()
            if index in needed or index in done:
                continue
            needed.add(index)
            pending += [producer[t] for t in nodes[index].inputs if t in producer]
        done |= dict.fromkeys(sorted(needed))
    done |= dict.fromkeys(range(len(nodes)))
    return list(done)
