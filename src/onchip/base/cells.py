"""Cells of CSV files that a spreadsheet would take for formulas, escaped by an apostrophe.

Names come from files. A spreadsheet runs a cell that begins with one of `= + - @`, a tab or a line end, also
after blanks; with an apostrophe before it the cell is text. A name that begins with an apostrophe gets one
more, so that reading restores every name.
"""

from __future__ import annotations

__all__ = ["neutral", "original"]

_RUN = "=+-@\t\r\n|%\uff1d\uff0b\uff0d\uff20"
_BLANKS = " \u00a0\u200b\ufeff\"'"


def neutral(text: str) -> str:
    """Return the text as a cell that no spreadsheet runs."""
    begins = text.lstrip(_BLANKS)[:1]
    return f"'{text}" if text.startswith("'") or (begins and begins in _RUN) else text


def original(cell: str) -> str:
    """Return the text that `neutral` turned into the cell; other cells are returned unchanged."""
    return cell[1:] if cell.startswith("'") and neutral(cell[1:]) == cell else cell
