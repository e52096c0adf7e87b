"""The table of plans by length on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import Group, RenderableType
from rich.text import Text

from onchip.by_length.rows import Beyond, Row
from onchip.plans import Plan
from onchip.report.grid import Grid
from onchip.report.wording import exact, visible

__all__ = ["shown", "shown_session"]

MOST = 40
"""The most rows that a terminal lists; all are in the files."""


class Table(Protocol):
    """The parts of a table that are shown (`onchip.Lengths` documents it)."""

    @property
    def name(self) -> str: ...

    @property
    def first(self) -> int: ...

    @property
    def asked(self) -> int: ...

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
    if table.asked < table.first:
        last = table.first - 1
        parts.append(Text(f"{table.name} {table.asked:,} to {last:,} were not planned: time is over."))
    if table.beyond is not None:
        parts.append(Text(f"No plan from {table.beyond.length:,} on: {table.beyond.reason}"))
    return Group(*parts)


def shown_session(prompt: Plan, steps: Table) -> RenderableType:
    """Return a rich renderable of a prompt and the steps behind it."""
    grid = Grid(
        ("address", True),
        ("bytes", True),
        ("rows", True),
        ("the prompt makes", False),
        ("steps append", False),
    )
    ids, tensors = prompt.network.tensor_id, prompt.network.tensors
    for begins, grows in list(zip(prompt.caches, steps.rows[0].plan.caches, strict=True))[:MOST]:
        t = tensors[ids[begins.output]]
        filled, size = t.shape[begins.axis], t.bytes // t.shape[begins.axis] * begins.rows
        pair = f"{visible(grows.input or '')} to {visible(grows.output)}"
        grid.add_row(
            f"{begins.address:,}", f"{size:,}", f"{filled:,} of {begins.rows:,}", visible(begins.output), pair
        )
    r = prompt.result
    return Group(
        Text(
            f"{visible(prompt.network.name)}, then {visible(steps.rows[0].plan.network.name)}, in one arena"
            f" of {exact(prompt.budget)}",
            style="bold",
        ),
        Text("Caches lie at the same place in all plans; each begins with what the one before left."),
        Text(),
        grid,
        Text(),
        Text(
            f"The prompt moves {r.dram_bytes:,} B, {r.traffic_bytes:,} of them beyond what is compulsory"
            f" ({r.status}), and reaches {r.extent_bytes:,} B: prompt.json."
        ),
        Text(),
        shown(steps),
    )
