"""The table of plans by length on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import Group, RenderableType
from rich.text import Text

from onchip.by_length.rows import Beyond, Row
from onchip.report.grid import Grid
from onchip.report.wording import exact, visible

__all__ = ["shown"]

MOST = 40
"""The most rows that a terminal lists; all are in the files."""


class Table(Protocol):
    """The parts of a table that are shown (`onchip.Lengths` documents it)."""

    @property
    def name(self) -> str: ...

    @property
    def first(self) -> int: ...

    @property
    def rows(self) -> Sequence[Row]: ...

    @property
    def beyond(self) -> Beyond | None: ...

    def proof(self, row: Row, /) -> str: ...


def shown(table: Table) -> RenderableType:
    """Return a rich renderable of the table."""
    made = table.rows[-1].plan
    grid = Grid(
        (table.name, True),
        ("DRAM bytes", True),
        ("beyond compulsory", True),
        ("reaches", True),
        ("plan", False),
        ("best?", False),
    )
    for row in table.rows[:MOST]:
        short, long = row.begins.result, row.plan.result
        alone = row.first == row.last
        grid.add_row(
            f"{row.first:,}" if alone else f"{row.first:,} to {row.last:,}",
            f"{long.dram_bytes:,}" if alone else f"{short.dram_bytes:,} to {long.dram_bytes:,}",
            f"{long.traffic_bytes:,}"
            if short.traffic_bytes == long.traffic_bytes
            else f"{short.traffic_bytes:,} to {long.traffic_bytes:,}",
            f"{long.extent_bytes:,}",
            row.file,
            table.proof(row).partition(":")[0],
        )
    plans = "1 plan" if len(table.rows) == 1 else f"{len(table.rows):,} plans"
    parts: list[RenderableType] = [
        Text(
            f"{visible(made.network.name)} on {visible(made.chip.name)}, {exact(made.budget)}: {plans} for"
            f" {table.name} from {table.first:,} to {table.rows[-1].last:,}",
            style="bold",
        ),
        Text(
            "Each runs at every length of its row: the same instructions and addresses, the length's sizes."
        ),
        Text(),
        grid,
    ]
    if len(table.rows) > MOST:
        parts.append(Text(f"and {len(table.rows) - MOST:,} more rows"))
    proofs = dict.fromkeys(table.proof(row) for row in table.rows)
    parts += [Text(), *(Text(f"{proof[0].upper()}{proof[1:]}.") for proof in list(proofs)[:4])]
    breaks = [row for row in table.rows if row.why][:MOST]
    parts += [Text(f"{table.name} {row.first:,} begins a row: its plan is {row.why}.") for row in breaks[:6]]
    if table.beyond is not None:
        parts.append(Text(f"No plan from {table.beyond.length:,} on: {table.beyond.reason}"))
    return Group(*parts)
