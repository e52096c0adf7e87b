"""A comparison as a table for a terminal, from 100 columns up."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from onchip.report.wording import exact, visible
from onchip.results.comparison import Comparison, Row

__all__ = ["table"]


def table(made: Comparison) -> RenderableType:
    """A rich renderable: a line that says of what, the rows, and what they mean."""
    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading, number in (
        ("scheme", False),
        ("status", False),
        ("DRAM bytes", True),
        ("avoidable", True),
        ("/ limit", True),
        ("traffic", True),
        ("peak", True),
        ("seconds", True),
    ):
        rows.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for row in made.rows:
        if row.dram_bytes is None:
            why = "" if row.needs_bytes is None else f"needs {row.needs_bytes:,}"
            rows.add_row(row.scheme, row.status, "-", "", "", "-", why, f"{row.seconds:.2f}")
        else:
            rows.add_row(row.scheme, row.status, *_figures(row, made.limit_bytes), f"{row.seconds:.2f}")
    head = Text(visible(made.network), style="bold")
    limit = f"; every plan moves {exact(made.limit_bytes)}" if made.limit_bytes else ""
    head.append(f", {exact(made.budget)}, weights {made.weights}{limit}", style="not bold")
    parts: list[RenderableType] = [head, Text(), rows]
    if made.bound:
        whole = f"with tensors whole, no plan has less traffic than {made.bound:,} B"
        parts += [Text(), Text(whole)]
    parts += [Text(f"{row.scheme}: {visible(row.reason)}") for row in made.rows if row.reason]
    if not made.complete:
        parts += [Text(), Text("interrupted: these rows were finished")]
    return Group(*parts)


def _figures(row: Row, limit: int) -> list[str]:
    share = "" if row.reduction is None else f"{100 * row.reduction:.1f} %"
    over = f"{row.dram_bytes / limit:.3f}" if limit and row.dram_bytes is not None else ""
    return [f"{row.dram_bytes:,}", share, over, f"{row.traffic_bytes:,}", f"{row.peak_bytes:,}"]
