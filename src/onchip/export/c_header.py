"""A C99 header with the layout: macros for names in code, tables for loops.

Every name from a model is untrusted data: it becomes an identifier of letters, digits and underscores,
and the name itself stands in comments with all other characters replaced.
"""

from __future__ import annotations

import re
from pathlib import Path

from onchip.export.layout import layout_of
from onchip.export.names import identifiers, plain
from onchip.plans import Plan

__all__ = ["write"]


def write(plan: Plan, model: str | Path | None = None) -> str:
    """Return the header; raises `UsageError` for a plan in several memories."""
    network, layout = plan.network, layout_of(plan, "c", tiles=True)
    low = f"onchip_{plain(network.name, 32).lower()}"
    up = low.upper()
    tensor = identifiers((t.name for t in network.tensors), upper=True)
    index = {t.name: t.id for t in network.tensors}
    step = identifiers(layout.steps, upper=True)
    again = {
        op.name: f", {_comment(network.operators[op.repeats].name)} again"
        for op in network.operators
        if op.repeats is not None
    }
    wide = max(plan.budget, *(t.bytes for t in network.tensors), 0) >= 1 << 32
    lines = [
        f"/* The layout of {_comment(network.name)} in on-chip memory: a checked plan, written by onchip.",
        f"   Chip {_comment(plan.chip.name)}, addresses aligned to {plan.chip.alignment_bytes}. */",
        f"#ifndef {up}_LAYOUT_H",
        f"#define {up}_LAYOUT_H",
        "",
        "#include <stdint.h>",
        "",
        f"typedef uint{64 if wide else 32}_t {low}_bytes_t;",
        "",
        "/* What is reserved, what the plan was allowed, and how many operators run. */",
        f"#define {up}_ARENA_BYTES {_number(plan.result.extent_bytes, wide)}",
        f"#define {up}_BUDGET_BYTES {_number(plan.budget, wide)}",
        f"#define {up}_ALIGNMENT {_number(plan.chip.alignment_bytes, wide)}",
        f"#define {up}_STEPS {len(layout.steps)}u",
        "",
        "/* Operators by the step they run in. */",
        *(
            f"#define {up}_STEP_{step[s]} {i}u"
            f" /* {_comment(s)}{again.get(s, '')}{', joined in DRAM' * (i in layout.joined)} */"
            for i, s in enumerate(layout.steps)
        ),
        "",
        "/* Tensors: number and size. */",
    ]
    for t in network.tensors:
        lines.append(f"#define {up}_TENSOR_{tensor[t.name]} {t.id}u /* {_comment(t.name)} */")
        lines.append(f"#define {up}_BYTES_{tensor[t.name]} {_number(t.bytes, wide)}")
    lines += ["", "/* Offsets of tensors that lie in one place for as long as they lie in the arena. */"]
    places: dict[str, set[int]] = {}
    for r in layout.residencies:
        if r.kind == "tensor":
            places.setdefault(r.name, set()).add(r.offset)
    for view in network.views:
        parent = places.get(network.tensors[view.of].name, set())
        places[network.tensors[view.tensor].name] = {at + view.offset for at in parent}
    for name in sorted(places, key=index.__getitem__):
        if len(places[name]) == 1:
            lines.append(f"#define {up}_OFFSET_{tensor[name]} {_number(min(places[name]), wide)}")
    rows = [
        f"{{{index[r.name] if r.kind == 'tensor' else -1}, {_number(r.offset, wide)},"
        f" {_number(r.bytes, wide)}, {r.first}u, {r.end}u}}, /* {_comment(f'{r.kind}:{r.name}')} */"
        for r in layout.residencies
    ]
    lines += _table(
        "Who holds which bytes while steps first_step ... end_step - 1 run; tensor -1 is scratch or weights.",
        f"{low}_residency_t",
        ("int32_t tensor", f"{low}_bytes_t offset", f"{low}_bytes_t bytes", "uint32_t first_step",
         "uint32_t end_step"),
        f"{low}_residencies",
        f"{up}_RESIDENCIES",
        rows,
    )  # fmt: skip
    copies = [
        f"{{{c.step}u, {int(c.direction == 'store')}u, {index[c.tensor]}, {_number(c.offset, wide)},"
        f" {_number(c.bytes, wide)}}}, /* {c.reason}: {_comment(c.tensor)} */"
        for c in layout.copies
    ]
    lines += _table(
        "Copies between the arena and DRAM, in order, each before its step: store 0 loads, store 1 stores.",
        f"{low}_copy_t",
        ("uint32_t before_step", "uint32_t store", "int32_t tensor", f"{low}_bytes_t offset",
         f"{low}_bytes_t bytes"),
        f"{low}_copies",
        f"{up}_COPIES",
        copies,
    )  # fmt: skip
    if layout.streams:
        streams = [
            f"{{{s.step}u, {int(s.direction == 'out')}u, {index[s.tensor]}, {_number(s.bytes, wide)}}},"
            f" /* {s.reason}: {_comment(s.tensor)} */"
            for s in layout.streams
        ]
        lines += _table(
            "What passes in pieces between DRAM and a step's scratch while it runs: out 0 comes, out 1 goes.",
            f"{low}_stream_t",
            ("uint32_t step", "uint32_t out", "int32_t tensor", f"{low}_bytes_t bytes"),
            f"{low}_streams",
            f"{up}_STREAMS",
            streams,
        )
    return "\n".join([*lines, "", f"#endif /* {up}_LAYOUT_H */"]) + "\n"


def _table(
    what: str, kind: str, fields: tuple[str, ...], name: str, count: str, rows: list[str]
) -> list[str]:
    """Return the type, the number of rows and, unless there are none, the rows."""
    lines = ["", f"/* {what} */", "typedef struct {", *(f"    {field};" for field in fields), f"}} {kind};"]
    lines.append(f"#define {count} {len(rows)}u")
    if rows:
        lines += [f"static const {kind} {name}[{count}] = {{", *(f"    {row}" for row in rows), "};"]
    return lines


def _number(value: int, wide: bool) -> str:
    return f"UINT64_C({value})" if wide else f"{value}u"


def _comment(text: str) -> str:
    """Return a name that cannot end a comment, open another, or continue a line."""
    return re.sub(r"[^A-Za-z0-9_.:+\-]", "_", text)[:120]
