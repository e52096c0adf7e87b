"""The groups of a plan as its program runs them: the free bytes around the scratch of each."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.check.interpreter import Figures, Machine, interpret
from onchip.check.units import Unit
from onchip.plans import Plan

__all__ = ["Running", "running"]


@dataclass(frozen=True, slots=True)
class Running:
    """A unit at its run: `free` are all bytes of its memory that nothing else has, `around` is the range of
    them that holds its scratch. Both are empty for a unit without scratch."""

    unit: Unit
    free: int
    around: range


def running(plan: Plan) -> tuple[Figures, dict[str, Running]]:
    """Return the figures of a plan's program, and every unit as it runs, by name.

    Raises `IllegalPlan` for a program that is not legal.
    """
    found: dict[str, Running] = {}

    class Listening(Machine):
        """Notes what room every run has."""

        def run(self, unit: Unit, streaming: dict[int, int]) -> None:
            free, around = 0, range(0)
            if unit.name in self.scratch:
                at, (start, end) = self.scratch[unit.name]
                free = at.size - at.ranges.total + end - start
                around = range(*at.ranges.around(start, end, at.size))
            found[unit.name] = Running(unit, free, around)
            super().run(unit, streaming)

    return interpret(plan, Listening), found
