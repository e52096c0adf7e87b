"""The file of constants that a plan's program of two threads reads."""

from __future__ import annotations

from pathlib import Path

from onchip.export.threads.c_threads import threads_of
from onchip.plans import Plan

__all__ = ["write"]


def write(plan: Plan, model: str | Path | None = None) -> bytes:
    """Return the constants, those with one buffer in the order of their fills."""
    return threads_of(plan, model).constants
