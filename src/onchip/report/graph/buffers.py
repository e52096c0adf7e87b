"""What lies in the buffer while a tiled group runs, as the checker derives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onchip.check.contents import contents
from onchip.check.parts import Part
from onchip.errors import IllegalPlan
from onchip.plan import Plan
from onchip.report.graph.units import Unit

__all__ = ["WHAT", "Buffer", "buffers"]

WHAT = ("enters", "inside", "leaves", "resident weights", "weight tile")
"""What a buffer is to its group."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """One piece of the scratch; `what` is its place in `WHAT`."""

    what: int
    part: Part


def buffers(plan: Plan, units: tuple[Unit, ...]) -> Mapping[str, tuple[Buffer, ...]]:
    """The buffers of every tiled group by its name: what enters, is inside, leaves; then weights.

    None of a plan whose groups are not legal: the report shows what is there.
    """
    try:
        found = contents(plan)
    except IllegalPlan:
        return {}
    return {
        u.name: tuple(
            sorted((Buffer(_what(u, p), p) for p in found[u.name] if p.bytes), key=lambda b: b.what)
        )
        for u in units
        if u.name in found
    }


def _what(unit: Unit, part: Part) -> int:
    if part.tensor is None:
        return 3 if part.kept else 4
    return 0 if part.tensor in unit.inputs else 2 if part.tensor in unit.outputs else 1
