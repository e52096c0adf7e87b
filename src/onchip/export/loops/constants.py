"""The file of constants that the C program of a plan reads."""

from __future__ import annotations

from pathlib import Path

from onchip.export.loops.c_program import program_of
from onchip.plans import Plan

__all__ = ["write"]


def write(plan: Plan, model: str | Path | None = None) -> bytes:
    """Return the bytes of all constants, in the order in which the program reads them."""
    return program_of(plan, model).constants
