"""A comparison as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import Group, RenderableType
from rich.text import Text

from onchip.base.figures import Writers, columns
from onchip.comparison.baselines import SCHEMES
from onchip.comparison.row import Row
from onchip.planners import registry
from onchip.report.grid import Grid
from onchip.report.wording import SENTENCE, exact, visible

__all__ = ["table"]


LEGEND = {
    "DRAM bytes": "all that crosses",
    "gap": "how far above the least of its kind at most",
    "avoidable": "the share that the best row does without",
    "/ limit": "over what every plan moves",
    "traffic": "bytes of spills and reloads",
    "peak": "most bytes in the scratchpad",
    "seconds": "of planning",
}
"""The legend of the columns."""


class Compared(Protocol):
    """The fields of a comparison that the table shows (`onchip.Comparison` documents them)."""

    @property
    def network(self) -> str: ...

    @property
    def budget(self) -> int: ...

    @property
    def weights(self) -> str: ...

    @property
    def bound(self) -> int: ...

    @property
    def limit_bytes(self) -> int: ...

    @property
    def rows(self) -> Sequence[Row]: ...

    @property
    def complete(self) -> bool: ...

    @property
    def time_limit(self) -> float | None: ...


def table(made: Compared) -> RenderableType:
    """Return a rich renderable: a title line, the rows, and their explanation."""

    def over_limit(n: int | None) -> str:
        return f"{n / made.limit_bytes:.3f}" if made.limit_bytes and n is not None else ""

    unproved = [row.scheme for row in made.rows if row.gap and _searches(row.scheme)]
    figures = [c for c in columns(Row, made.rows) if unproved or c.figure.unit != "gap"]
    rows = Grid(("scheme", False), ("status", False), *((column.heading, True) for column in figures))
    for row in made.rows:
        cells = (column.cell(row, {**WRITERS, "limit": over_limit}) for column in figures)
        rows.add_row(row.scheme, row.status, *cells)
    head = Text(visible(made.network), style="bold")
    limit = f"; every plan moves {exact(made.limit_bytes)}" if made.limit_bytes else ""
    head.append(f", {exact(made.budget)}, weights {made.weights}{limit}", style="not bold")
    told = [f"{heading}: {text}" for heading, text in LEGEND.items() if heading in rows.headings]
    titles = [f"{row.scheme}: {visible(row.title)}" for row in made.rows]
    parts: list[RenderableType] = [
        head,
        Text(),
        rows,
        Text("; ".join(told), style="dim"),
        Text(),
        Text("; ".join(titles), style="dim"),
    ]
    if made.bound:
        whole = f"with tensors whole, no plan has less traffic than {made.bound:,} B"
        parts += [Text(), Text(whole)]
    if unproved:
        parts += [Text(), Text(_not_proved(unproved, made.time_limit))]
    parts += [Text(f"{row.scheme}: {visible(row.reason)}") for row in made.rows if row.reason]
    if not made.complete:
        parts += [Text(), Text("interrupted: these rows were finished")]
    if spaces := _spaces(made.rows):
        parts += [Text(), Text("The spaces of these claims", style="bold"), *map(Text, spaces)]
    return Group(*parts)


def _spaces(rows: Sequence[Row]) -> list[str]:
    """Return the spaces that `optimal` and the gap of each row range over, rows of one space together."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.space and _searches(row.scheme):
            found.setdefault(row.space, []).append(row.scheme)
    return [f"{', '.join(names)}: among {visible(space, SENTENCE)}" for space, names in found.items()]


def _searches(scheme: str) -> bool:
    """Return whether more time might improve or prove a row."""
    planner = registry.find(scheme)
    return scheme not in SCHEMES if planner is None else planner.searches


def _not_proved(names: Sequence[str], seconds: float | None) -> str:
    """Return a sentence on the rows that are not proved, and the remedy."""
    had = "" if seconds is None else f" in {seconds:g} s (--time-limit)"
    return f"not proved to be the least{had}, at most the gap above it: {', '.join(names)}"


def _gap(gap: float | None) -> str:
    """Return the gap of a row as text; empty where there is none."""
    if not gap:
        return ""
    return f"{100 * gap:.1f} %" if gap < 9.995 else f"x {1 + gap:,.1f}"


WRITERS: Writers = {
    "known": lambda n: "-" if n is None else f"{n:,}",
    "share": lambda share: "" if share is None else f"{100 * share:.1f} %",
    "gap": _gap,
    "seconds": "{:.2f}".format,
}
"""The forms in which the figures of a row are written."""
