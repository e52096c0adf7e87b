"""OR-Tools, the largest of the packages that onchip needs, and the one that many answers do without.

Default answers lose by its absence, so it comes with onchip. Where somebody has taken it away, whatever does
not search with it answers as before, and the rest says what is missing.
"""

from __future__ import annotations

from importlib import import_module

from onchip.base.errors import MissingExtra

__all__ = ["needs_or_tools"]


def needs_or_tools() -> None:
    """Raise `MissingExtra` if OR-Tools is not installed."""
    try:
        import_module("ortools")
    except ImportError:
        raise MissingExtra("", "ortools") from None
