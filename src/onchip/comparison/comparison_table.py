"""A comparison as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import Group, RenderableType
from rich.text import Text

from onchip.comparison.baselines import SCHEMES
from onchip.comparison.row import Row
from onchip.planners import registry
from onchip.report.grid import Grid
from onchip.report.wording import SENTENCE, exact, visible

__all__ = ["table"]


class Compared(Protocol):
    """What the table shows of a comparison (`onchip.Comparison` says what each is)."""

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
    """A rich renderable: a line that says of what, the rows, and what they mean."""
    unproved = [row.scheme for row in made.rows if row.gap and _searches(row.scheme)]
    figures = (
        "DRAM bytes",
        *(("gap",) if unproved else ()),
        "avoidable",
        "/ limit",
        "traffic",
        "peak",
        "seconds",
    )
    rows = Grid(("scheme", False), ("status", False), *((heading, True) for heading in figures))
    for row in made.rows:
        if row.dram_bytes is None:
            why = "" if row.needs_bytes is None else f"needs {row.needs_bytes:,}"
            cells = ["-", "", "", "-", why]
        else:
            cells = _figures(row, made.limit_bytes)
        if unproved:
            cells.insert(1, _gap(row))
        rows.add_row(row.scheme, row.status, *cells, f"{row.seconds:.2f}")
    head = Text(visible(made.network), style="bold")
    limit = f"; every plan moves {exact(made.limit_bytes)}" if made.limit_bytes else ""
    head.append(f", {exact(made.budget)}, weights {made.weights}{limit}", style="not bold")
    parts: list[RenderableType] = [head, Text(), rows]
    if made.bound:
        whole = f"with tensors whole, no plan has less traffic than {made.bound:,} B"
        parts += [Text(), Text(whole)]
    parts += [Text(), *map(Text, _spaces(made.rows))]
    if unproved:
        parts += [Text(), Text(_not_proved(unproved, made.time_limit))]
    parts += [Text(f"{row.scheme}: {visible(row.reason)}") for row in made.rows if row.reason]
    if not made.complete:
        parts += [Text(), Text("interrupted: these rows were finished")]
    return Group(*parts)


def _spaces(rows: Sequence[Row]) -> list[str]:
    """What `optimal` and the gap of each row range over, rows of one space together."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.space and _searches(row.scheme):
            found.setdefault(row.space, []).append(row.scheme)
    return [f"{', '.join(names)}: among {visible(space, SENTENCE)}" for space, names in found.items()]


def _searches(scheme: str) -> bool:
    """Might a row be better, or be proved, with more time?"""
    planner = registry.find(scheme)
    return scheme not in SCHEMES if planner is None else planner.searches


def _not_proved(names: Sequence[str], seconds: float | None) -> str:
    """Whose rows may have a better one, and what there is to do about it."""
    had = "" if seconds is None else f" in {seconds:g} s (--time-limit)"
    return f"not proved to be the least{had}, at most the gap above it: {', '.join(names)}"


def _gap(row: Row) -> str:
    """How far above the least a row may lie; empty where it does not."""
    if not row.gap:
        return ""
    return f"{100 * row.gap:.1f} %" if row.gap < 9.995 else f"x {1 + row.gap:,.1f}"


def _figures(row: Row, limit: int) -> list[str]:
    share = "" if row.reduction is None else f"{100 * row.reduction:.1f} %"
    over = f"{row.dram_bytes / limit:.3f}" if limit and row.dram_bytes is not None else ""
    return [f"{row.dram_bytes:,}", share, over, f"{row.traffic_bytes:,}", f"{row.peak_bytes:,}"]
