"""Cells of CSV files that a spreadsheet would take for formulas, with an apostrophe before them.

Names come from files. A spreadsheet runs a cell that begins with one of `= + - @`, a tab or a line end, also
behind blanks; with an apostrophe before it the cell is text. So that reading gives every name back, a name
that begins with an apostrophe gets one more.
"""

from __future__ import annotations

__all__ = ["neutral", "original"]

_RUN = "=+-@\t\r\n|%\uff1d\uff0b\uff0d\uff20"
_BLANKS = " \u00a0\u200b\ufeff\"'"


def neutral(text: str) -> str:
    """The text as a cell that no spreadsheet runs."""
    begins = text.lstrip(_BLANKS)[:1]
    return f"'{text}" if text.startswith("'") or (begins and begins in _RUN) else text


def original(cell: str) -> str:
    """What `neutral` made the cell of; a cell that it would not have written stays as it is."""
    return cell[1:] if cell.startswith("'") and neutral(cell[1:]) == cell else cell
