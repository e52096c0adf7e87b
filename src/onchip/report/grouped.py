"""The words on a plan whose operators run in tiled groups, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onchip.base import figures
from onchip.base.short_names import distinct_names
from onchip.check.as_nests import plan_as_nests
from onchip.network import Network
from onchip.network.axes import GroupAxes, axes_of
from onchip.planners.fused_group import TIMES, FusedGroup
from onchip.plans import Group, Nest, Plan, Tiling
from onchip.report.as_nests import as_nests_sentence
from onchip.report.graph.units import Unit, how_it_runs, label_of, units
from onchip.report.grid import Grid
from onchip.report.steps import Timeline
from onchip.report.wording import shorten, visible

__all__ = ["group_legend", "group_rows", "group_table", "members_of", "page_words"]

MOST_ROWS = 40
"""The most groups that the terminal lists; of more, the ones with most DRAM words."""


SHORTEST_NAME, LONGEST_NAME = 16, 64
"""Characters of a member's name at least, and of one that runs alone at most."""

SHORTEST = 28
"""Characters for a group's members on a narrow terminal, in several lines: enough to tell both ends apart."""


def group_rows(plan: Plan, line: Timeline) -> tuple[FusedGroup, ...]:
    """Return a row for every run of the program, in its order."""
    return tuple(_row(plan.network, u) for u in units(plan, line))


def _row(net: Network, unit: Unit) -> FusedGroup:
    group = unit.group
    tiling = group.tiling if group else None
    halo = unit.halo(net)
    rows, subgroups, images, blocks, loops = how_it_runs(unit)
    return FusedGroup(
        name=unit.name,
        **members_of(net, unit.operators),
        subgroups=subgroups,
        rows=rows,
        images=images,
        streamed=tiling.streamed if isinstance(tiling, Tiling) else (),
        resident=_resident(net, group, unit.operators) if group else (),
        scratch_bytes=unit.scratch,
        dram_bytes=unit.crossing,
        in_bytes=sum(unit.into.values()) - halo,
        out_bytes=sum(unit.out.values()),
        halo_bytes=halo,
        weight_bytes=unit.weights,
        blocks=blocks,
        whole_bytes=sum(net.tensors[t].bytes for t in unit.whole),
        loops=loops,
    )


def _resident(net: Network, group: Group, operators: Sequence[int]) -> tuple[str, ...]:
    """Return the operators of a group whose weights stay while it runs."""
    if not isinstance(group.tiling, Nest):
        return group.resident_weights
    inside = set(operators)
    axes = axes_of(net, [v for v in net.order if v in inside])
    assert isinstance(axes, GroupAxes)
    kept = set(group.tiling.keep)
    return tuple(
        cut.name
        for cut in axes.operators
        if cut.constants and kept.issuperset(axes.buffers[use.buffer].name for use in cut.constants)
    )


def members_of(net: Network, operators: Sequence[int]) -> dict[str, Any]:
    """Return the fields of a group's record that describe its operators."""
    found = [net.operators[v] for v in operators]
    return {
        "operators": tuple(op.name for op in found),
        "labels": tuple(label_of(op) for op in found),
        "weighted": sum(op.weight_bytes > 0 for op in found),
    }


LEGEND = {
    "tiles": f"bands of rows, 28{TIMES}4 for 28 of 4 rows; 1, in one piece; nest, in loops",
    "sliced": "tensors held a few channels at a time",
    "kept": "operators whose weights stay, of those that have any",
    "scratch": "what a group takes",
    "whole": "operands that lie whole beside it",
    "maps": "feature maps that cross to and from DRAM",
    "halo": "rows that cross again for the next band",
    "DRAM": "all that crosses",
}
"""The legend of a table of groups."""


def group_legend(table: Grid, *, words: bool = False) -> str:
    """Return a line on the columns of a table of groups; `words`: what crosses is in thousands of words."""
    told = "; ".join(f"{heading}: {text}" for heading, text in LEGEND.items() if heading in table.headings)
    return f"{told}; {'scratch in KiB, what crosses in thousands of words' if words else 'sizes in KiB'}"


def group_table(rows: Sequence[FusedGroup], width: int, *, element: int | None = None) -> Grid:
    """Return the groups in running order; of very many, the costliest, and the rest in one row.

    Where some run as nests, groups that are alike in all but names are one row, with the figures of each.
    What crosses is in KiB, or in thousands of words of `element` bytes; below 100 columns the crossings of
    feature maps are one figure.
    """
    columns = figures.columns(FusedGroup, rows, wide=width >= 100)
    unit = 1024 if element is None else 1000 * element
    digits = 1 if sum(r.dram_bytes for r in rows) < 100_000 * unit else 0

    def words(n: int) -> str:
        return f"{n / unit:,.{digits}f}"

    def kib(n: int) -> str:
        return f"{n / 1024:,.1f}"

    def sums(some: Sequence[FusedGroup]) -> list[str]:
        return [words(c.of(*some)) if c.figure.unit == "words" else "" for c in columns]

    def cells(row: FusedGroup) -> tuple[str, ...]:
        return tuple(c.cell(row, {"words": words, "bytes": kib}) for c in columns)

    alike: dict[object, list[FusedGroup]] = {}
    nests = any(r.loops is not None for r in rows)
    for i, r in enumerate(rows):
        alike.setdefault((cells(r), r.labels) if nests else i, []).append(r)
    kept = list(alike.values())
    if len(kept) > MOST_ROWS:
        most = sorted(range(len(kept)), key=lambda i: (-sum(r.dram_bytes for r in kept[i]), i))[:MOST_ROWS]
        kept = [kept[i] for i in sorted(most)]
    listed = {r.name for some in kept for r in some}
    rest = [r for r in rows if r.name not in listed]
    body = [(_named(some), some[0], cells(some[0])) for some in kept]
    total, headings = sums(rows), [c.heading for c in columns]
    taken = sum(
        max(map(len, cells)) + 2 for cells in zip(headings, total, *(c for *_, c in body), strict=True)
    )
    taken += 2 + (max(5, *(len(name) for name, _, _ in body)) if body else 5)
    table = Grid(("group", False), ("operators", False), *((heading, True) for heading in headings))
    room = max(SHORTEST, min(64, width - taken))
    long = (r for _, r, _ in body if len(_in_full(r)) > (room if len(r.operators) > 1 else LONGEST_NAME))
    ends = (visible(name) for r in long for name in (r.operators[0], r.operators[-1]))
    names = distinct_names(ends, max(SHORTEST_NAME, (room - 5) // 2))
    for name, r, texts in body:
        table.add_row(name, _members(r, room, names), *texts)
    if rest:
        table.add_row("", f"{len(rest):,} more", *sums(rest))
    table.add_row("all", f"{sum(len(r.operators) for r in rows):,} operators", *total)
    return table


def _named(alike: Sequence[FusedGroup]) -> str:
    """Return the name of the first of some equal groups, and how many they are."""
    name = shorten(visible(alike[0].name), 14)
    return name if len(alike) == 1 else f"{name} {TIMES}{len(alike)}"


def _members(row: FusedGroup, width: int, names: Mapping[str, str]) -> str:
    """Return a group's operators in full where they fit, else the first and the last in short."""
    first, last = visible(row.operators[0]), visible(row.operators[-1])
    if first not in names or len(_in_full(row)) <= width:
        return _in_full(row)
    count = len(row.operators)
    return names[first] if count == 1 else f"{count} {names[first]} … {names[last]}"


def _in_full(row: FusedGroup) -> str:
    """Return `4 features.3.squeeze … cat`."""
    first, last, count = visible(row.operators[0]), visible(row.operators[-1]), len(row.operators)
    common = first.rpartition(".")[0] + "."
    rest = last.removeprefix(common) if len(common) > 1 else last
    return first if count == 1 else f"{count} {first} … {rest}"


def page_words(plan: Plan, line: Timeline) -> dict[str, Any]:
    """Return the page's sentence above the drawing, and its table of groups."""
    rows = group_rows(plan, line)
    fused = sum(len(r.operators) > 1 for r in rows)
    columns = figures.columns(FusedGroup, rows, "page")
    runs = f"{len(plan.network.operators):,} operators in {len(rows):,} runs"
    found = plan_as_nests(plan)
    told = "" if found is None else f". {as_nests_sentence(plan, found)}"
    return {
        "sentence": f"{runs}, {fused:,} of them fused{told.removesuffix('.')}",
        "headings": [(c.heading, c.text != "tile") for c in columns],
        "rows": [
            {
                "name": visible(r.name),
                "operators": ", ".join(r.labels[:6])
                + (f" and {len(r.labels) - 6} more" if r.labels[6:] else ""),
                "cells": [(c.cell(r, {}), c.text != "tile") for c in columns],
            }
            for r in rows
        ],
    }
