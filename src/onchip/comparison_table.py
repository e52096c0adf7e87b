"""A comparison as a table for a terminal, from 100 columns up."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from onchip.comparison import Comparison, Row
from onchip.report.wording import exact, visible

__all__ = ["table"]


def table(made: Comparison) -> RenderableType:
    """A rich renderable: a line that says of what, the rows, and what they mean."""
    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading, number in (
        ("scheme", False),
        ("status", False),
        ("traffic", True),
        ("avoidable", True),
        ("DRAM bytes", True),
        ("peak", True),
        ("extent", True),
        ("seconds", True),
    ):
        rows.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for row in made.rows:
        if row.needs_bytes is not None:
            needs = f"needs {row.needs_bytes:,}"
            rows.add_row(row.scheme, row.status, "-", "", "-", "-", needs, f"{row.seconds:.2f}")
        else:
            rows.add_row(row.scheme, row.status, *(_figures(row)), f"{row.seconds:.2f}")
    bound = f"; no plan has less traffic than {made.bound:,} B" if made.bound else ""
    head = Text(visible(made.network), style="bold")
    head.append(f", {exact(made.budget)}, weights {made.weights}{bound}", style="not bold")
    parts: list[RenderableType] = [head, Text(), rows]
    if not made.complete:
        parts += [Text(), Text("interrupted: these rows were finished")]
    return Group(*parts)


def _figures(row: Row) -> list[str]:
    share = "" if row.reduction is None else f"{100 * row.reduction:.1f} %"
    figures = [row.traffic_bytes, row.dram_bytes, row.peak_bytes, row.extent_bytes]
    words = [f"{n:,}" for n in figures if n is not None]
    return [words[0], share, *words[1:]]
