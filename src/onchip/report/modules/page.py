"""The words and figures of a plan of modules, for the page's template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onchip.base.figures import Writers, columns
from onchip.planners.modules.table import ModuleTable, Row, module_table
from onchip.plans import Plan
from onchip.report.graph.units import KINDS, kind_of
from onchip.report.modules.anatomy import Part, parts
from onchip.report.modules.drawing import drawing
from onchip.report.modules.moved import moved
from onchip.report.modules.overview import addresses, sizes
from onchip.report.modules.regions import regions
from onchip.report.modules.required import required, wishes
from onchip.report.modules.roles import ROLES, Layer, layers
from onchip.report.modules.table import kilobytes, shortly
from onchip.report.modules.traffic import free_concats
from onchip.report.steps import Timeline
from onchip.report.wording import visible

__all__ = ["page_words"]


def page_words(plan: Plan, line: Timeline) -> dict[str, Any] | None:
    """Return the page's words and figures on the plan's modules; None for a plan without any."""
    found = parts(plan, line)
    modules = [part for part in found if part.is_module]
    if not modules:
        return None
    free = free_concats(plan)
    rows: Mapping[int, tuple[Layer, ...]] = {p.index: layers(p, line, free) for p in modules}
    table = module_table(plan)
    drawn, lie = drawing(found, line), addresses(found, line)
    return {
        "sentence": _sentence(modules, table),
        "drawing": drawn,
        "skips": drawn is not None and 'long"' in drawn,
        "kinds": _kinds(plan),
        "sizes": sizes(found, line, free),
        "addresses": lie,
        "regions": [
            {
                "index": p.index,
                "name": p.name,
                "words": _words(p, line, table.rows[p.index], rows[p.index]),
                "picture": regions(p, line),
                "second": p.section.processing == "II",
            }
            for p in modules
        ],
        "moved": moved([(p.index, table.rows[p.index]) for p in modules]),
        "required": required(modules, line, rows),
        "second": any(p.section.processing == "II" for p in modules),
        "roles": [(r, what) for r, what in ROLES.items() if f"r-{r}" in lie],
        "headings": [column.heading for column in columns(Row, table.rows, "page")],
        "rows": [_cells(row, i) for i, row in enumerate(table.rows) if row.is_module],
        "total": _cells(table.total, None),
        "outside": [_cells(row, i) for i, row in enumerate(table.rows) if not row.is_module],
    }


def _sentence(modules: list[Part], table: ModuleTable) -> str:
    total, count = table.total, len(modules)
    second = sum(p.section.processing == "II" for p in modules)
    text = f"{count:,} {'module' if count == 1 else 'modules'}"
    text += (
        f", {second:,} of them by processing II"
        if second
        else ", all by processing I"
        if _told(modules)
        else ""
    )
    accesses = total.reads + total.writes
    if total.naive_fm_bytes:
        text += (
            f": {shortly(total.fm_bytes)} of feature maps cross to DRAM inside them, in"
            f" {accesses:,} {'access' if accesses == 1 else 'accesses'},"
            f" instead of {shortly(total.naive_fm_bytes)} in {total.naive_reads + total.naive_writes:,}"
        )
    return text


def _kinds(plan: Plan) -> list[tuple[int, str]]:
    """Return the kinds of layers in the plan, for the key to their colours."""
    there = {kind_of(op) for op in plan.network.operators}
    return [(k, kind.replace("_", " ")) for k, kind in enumerate(KINDS) if k in there]


def _told(modules: list[Part]) -> bool:
    return all(p.section.processing for p in modules)


def _words(part: Part, line: Timeline, row: Row, rows: Sequence[Layer]) -> str:
    """Return a line that describes one module, with the reason why its output goes to DRAM."""
    net = part.network
    assert part.start is not None
    assert part.output is not None
    begin, end = net.tensors[part.start], net.tensors[part.output]
    how = f", processing {part.section.processing}" if part.section.processing else ""
    inside = len(part.nested)
    more = f", {inside} {'module' if inside == 1 else 'modules'} inside" if inside else ""
    why = ""
    if short := [w for w in wishes(part, line, rows) if w.required > w.available]:
        name = part.short(net.operators[short[0].operator].name)
        why = f". With all of it on chip, {name} would need about {shortly(short[0].required)}"
        why += f" and have {shortly(short[0].available)}"
    return (
        f"{len(part.branches)} branches{more}{how}; MIFM {visible(begin.name)} {shortly(begin.bytes)},"
        f" MOFM {visible(end.name)} {shortly(end.bytes)};"
        f" {shortly(row.fm_bytes)} of feature maps cross{why}"
    )


def _cells(row: Row, index: int | None) -> dict[str, Any]:
    """Return one row of the table, as displayed."""
    return {
        "index": index,
        "name": visible(row.name),
        "processing": row.processing or "",
        "cells": [column.cell(row, WRITERS) for column in columns(Row, [row], "page")],
    }


def _percent(ratio: float | None) -> str:
    return "" if ratio is None else f"{100 * ratio:.2f}"


WRITERS: Writers = {"kb": kilobytes, "percent": _percent, "pair": lambda both: "{:,} + {:,}".format(*both)}
