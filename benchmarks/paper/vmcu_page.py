"""What the page has already: rows of sections that need a machine or a checkout, for claims and pictures."""

from __future__ import annotations

import re
from pathlib import Path

from page_marks import marks

__all__ = ["PAGE", "numbers", "rows"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "vmcu.md"


def rows(section: str, columns: int) -> list[list[str]]:
    """Return the cells of a section's rows of so many columns, heads left out; there must be some."""
    begin, end = marks(section)
    text = PAGE.read_text("utf-8").partition(begin)[2].partition(end)[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    dashes = {i for i, line in enumerate(lines) if re.fullmatch(r"[|:\- ]+", line)}
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for i, line in enumerate(lines)
        if i not in dashes and i + 1 not in dashes
    ]
    found = [row for row in cells if len(row) == columns]
    if not found:
        raise ValueError(f"{section} of {PAGE.name} has no rows of {columns} columns")
    return found


def numbers(cells: list[str]) -> list[float]:
    """Return a row's figures: 1,234 as 1234, 12.5% as 12.5."""
    return [float(cell.replace(",", "").removesuffix("%")) for cell in cells]
