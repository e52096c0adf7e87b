"""Searches that find nothing, told from plans of ours that the checker refuses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from onchip.base.errors import IllegalPlan, NegativeAnswer

__all__ = ["found_nothing"]


@contextmanager
def found_nothing() -> Iterator[None]:
    """Pass over a search that finds nothing. A plan that the checker refuses is a fault, and stays raised."""
    try:
        yield
    except IllegalPlan:
        raise
    except NegativeAnswer:
        pass
