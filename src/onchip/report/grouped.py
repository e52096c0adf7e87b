"""What there is to say of a plan whose operators run in tiled groups, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onchip.network import Network
from onchip.plans import Plan, Tiling
from onchip.report.graph.units import Unit, bands_in_words, bands_shortly, how_it_runs, label_of, units
from onchip.report.grid import Grid
from onchip.report.timeline import Timeline
from onchip.report.wording import shorten, visible

__all__ = ["GroupRow", "group_rows", "group_table", "page_words"]

MOST_ROWS = 40
"""Groups that the terminal lists; of more, the ones with most DRAM words."""


SHORTEST = 28
"""Characters for a group's members on a narrow terminal, in several lines: both ends can be told apart."""


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group (or operator that runs alone), ready to be shown; all bytes are of the whole batch.

    `tile` says in words how it runs, `bands` shortly; `streamed` counts tensors that are in the buffer a few
    channels at a time, `resident` and `weighted` its operators with resident weights and with any.
    """

    name: str
    operators: tuple[str, ...]
    labels: tuple[str, ...]
    tile: str
    bands: str
    streamed: int
    resident: int
    weighted: int
    scratch_bytes: int
    in_bytes: int
    out_bytes: int
    halo_bytes: int
    weight_bytes: int
    whole_bytes: int = 0
    """Of operands that lie beside the scratch while it runs."""

    @property
    def map_bytes(self) -> int:
        """Bytes of feature maps that cross, halo included."""
        return self.in_bytes + self.out_bytes + self.halo_bytes

    @property
    def dram_bytes(self) -> int:
        """All bytes that cross to DRAM for it."""
        return self.in_bytes + self.out_bytes + self.halo_bytes + self.weight_bytes


def group_rows(plan: Plan, line: Timeline) -> tuple[GroupRow, ...]:
    """A row for every run of the program, in its order."""
    return tuple(_row(plan.network, u) for u in units(plan, line))


def _row(net: Network, unit: Unit) -> GroupRow:
    operators = [net.operators[v] for v in unit.operators]
    group = unit.group
    tiling = group.tiling if group else None
    halo = unit.halo(net)
    return GroupRow(
        visible(unit.name),
        tuple(visible(op.name) for op in operators),
        tuple(label_of(op) for op in operators),
        bands_in_words(*how_it_runs(unit)),
        bands_shortly(*how_it_runs(unit)),
        len(tiling.streamed) if isinstance(tiling, Tiling) else 0,
        len(group.resident_weights) if group else 0,
        sum(op.weight_bytes > 0 for op in operators),
        unit.scratch,
        sum(unit.into.values()) - halo,
        sum(unit.out.values()),
        halo,
        unit.weights,
        sum(net.tensors[t].bytes for t in unit.whole),
    )


def group_table(rows: Sequence[GroupRow], element: int, width: int) -> Grid:
    """The groups in running order; of very many, those that cost most, and the rest in one row.

    Words (of `element` bytes) in thousands; below 100 columns what crosses of feature maps is one figure.
    """
    wide = width >= 100
    kinds = ["in_bytes", "halo_bytes", "out_bytes"] if wide else ["map_bytes"]
    kinds += ["weight_bytes", "dram_bytes"]
    shown = set(range(len(rows)))
    if len(rows) > MOST_ROWS:
        shown = set(sorted(shown, key=lambda i: (-rows[i].dram_bytes, i))[:MOST_ROWS])
    rest = [r for i, r in enumerate(rows) if i not in shown]
    beside = any(r.whole_bytes for r in rows)
    digits = 1 if sum(r.dram_bytes for r in rows) < 100_000_000 * element else 0

    def words(some: Sequence[GroupRow]) -> list[str]:
        return [f"{sum(getattr(r, k) for r in some) / element / 1000:,.{digits}f}" for k in kinds]

    def cells(r: GroupRow) -> list[str]:
        kept = f"{r.resident}/{r.weighted}" if r.weighted else ""
        room = [f"{r.scratch_bytes / 1024:,.1f}"]
        if beside:
            room.append(f"{r.whole_bytes / 1024:,.1f}" if r.whole_bytes else "")
        return [r.bands, str(r.streamed or ""), kept, *room, *words([r])]

    body = [(shorten(r.name, 14), r, cells(r)) for i, r in enumerate(rows) if i in shown]
    room = ["KiB", "whole"] if beside else ["KiB"]
    blank = [""] * (3 + len(room))
    total = [*blank, *words(rows)]
    headings = ["bands", "isoa", "kept", *room, *(HEADING[k] for k in kinds)]
    columns = zip(headings, total, *(c for _, _, c in body), strict=True)
    taken = sum(max(map(len, column)) + 2 for column in columns) + 2
    taken += max(5, *(len(name) for name, _, _ in body)) if body else 5
    table = Grid(("group", False), ("operators", False), *((heading, True) for heading in headings))
    for name, r, figures in body:
        table.add_row(name, _members(r, max(SHORTEST, min(64, width - taken))), *figures)
    if rest:
        table.add_row("", f"{len(rest):,} more", *blank, *words(rest))
    table.add_row("all", f"{sum(len(r.operators) for r in rows):,} operators", *total)
    return table


HEADING = {
    "in_bytes": "in",
    "halo_bytes": "halo",
    "out_bytes": "out",
    "map_bytes": "maps",
    "weight_bytes": "weights",
    "dram_bytes": "kwords",
}


def _members(row: GroupRow, width: int) -> str:
    """`4 features.3.squeeze … cat`, as far as it fits."""
    names, count = row.operators, len(row.operators)
    if count == 1:
        return shorten(names[0], width)
    head = f"{count} "
    last = names[-1]
    common = names[0].rpartition(".")[0] + "."
    if len(common) > 1 and last.startswith(common):
        last = last[len(common) :]
    room = width - len(head) - 3
    second = min(len(last), max(room // 2, room - len(names[0])))
    return f"{head}{shorten(names[0], room - second)} … {shorten(last, second)}"


def page_words(plan: Plan, line: Timeline) -> dict[str, Any]:
    """The page's sentence above the drawing, and its table of groups."""
    rows = group_rows(plan, line)
    fused = sum(len(r.operators) > 1 for r in rows)
    sentence = f"{len(plan.network.operators):,} operators in {len(rows):,} runs, {fused:,} of them fused"
    return {
        "sentence": sentence,
        "beside": any(r.whole_bytes for r in rows),
        "rows": [
            {
                "name": r.name,
                "operators": ", ".join(r.labels[:6])
                + (f" and {len(r.labels) - 6} more" if r.labels[6:] else ""),
                "tile": r.tile,
                "streamed": r.streamed,
                "resident": f"{r.resident} of {r.weighted}" if r.weighted else "",
                "scratch": r.scratch_bytes,
                "whole": r.whole_bytes,
                "into": r.in_bytes,
                "halo": r.halo_bytes,
                "out": r.out_bytes,
                "weights": r.weight_bytes,
                "total": r.dram_bytes,
            }
            for r in rows
        ],
    }
