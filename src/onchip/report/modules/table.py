"""The modules of a plan on a terminal: the bytes they move, against every layer through DRAM."""

from __future__ import annotations

from collections.abc import Sequence

from onchip.planners.modules.table import ModuleTable, Row
from onchip.report.grid import Grid
from onchip.report.wording import shorten, visible

__all__ = ["MOST_ROWS", "kilobytes", "shortly", "terminal_table"]

MOST_ROWS = 40
"""The most modules to list; of more, those that move most."""


def kilobytes(n: int) -> str:
    """Return KiB, to the last digit."""
    return f"{n / 1024:,.3f}".rstrip("0").rstrip(".")


def shortly(n: int) -> str:
    """Return KiB with at most one digit after the point: `364.5 KiB`."""
    return f"{n / 1024:,.1f}".removesuffix(".0") + " KiB"


def terminal_table(table: ModuleTable, width: int) -> Grid:
    """Return a row for each module and their sum, then one for the stretches outside."""
    rows = table.modules
    shown = set(range(len(rows)))
    if len(rows) > MOST_ROWS:
        shown = set(sorted(shown, key=lambda i: (-rows[i].fm_bytes, -rows[i].naive_fm_bytes, i))[:MOST_ROWS])
    headings = ["", "weights", "naive maps", "maps", "reads+writes", "maps %"]
    body = [(row.name, _cells(row)) for i, row in enumerate(rows) if i in shown]
    ends = [("all modules", _cells(table.total))]
    if table.outside:
        ends.append(("outside", _cells(table.total_outside)))
    taken = sum(
        max(map(len, column)) + 2
        for column in zip(headings, *(cells for _, cells in [*body, *ends]), strict=True)
    )
    found = Grid(("module (KiB)", False), *((heading, True) for heading in headings))
    for name, cells in body:
        found.add_row(shorten(visible(name), max(12, width - taken - 2)), *cells)
    if rest := [row for i, row in enumerate(rows) if i not in shown]:
        found.add_row(f"{len(rest):,} more", *_summed(rest))
    for name, cells in ends:
        found.add_row(name, *cells)
    return found


def _summed(rows: Sequence[Row]) -> list[str]:
    return _cells(ModuleTable(tuple(rows)).total)


def _cells(row: Row) -> list[str]:
    return [
        row.processing or "",
        kilobytes(row.weight_bytes),
        kilobytes(row.naive_fm_bytes),
        kilobytes(row.fm_bytes),
        f"{row.reads:,}+{row.writes:,}",
        "" if row.fm_ratio is None else f"{100 * row.fm_ratio:.2f}",
    ]
