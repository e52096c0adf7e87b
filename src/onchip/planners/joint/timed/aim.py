"""The figure that a plan in nests makes small: its time, or the product of its energy and its time.

Energy is linear in the bytes that cross, and both are sums over groups. Of all pairs (energy, time) a corner
of the convex hull has the least product, and for some price of a byte it has the least time and price
together. So groups are searched for that, and the price follows from what was found: the time of the plan for
the share of its energy that a byte has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from onchip.check.energy import picojoules_per_dram_byte
from onchip.plans import Plan

__all__ = ["Aim", "Goal"]

Goal = Literal["latency", "edp"]

FINE = 10**6
"""The largest denominator of a price."""


@dataclass(frozen=True, slots=True)
class Aim:
    """A goal, and the picoseconds that a byte is worth to it."""

    goal: Goal = "latency"
    per_byte: Fraction = Fraction(0)

    def cost(self, time: int, bytes_: int) -> int:
        """Return what a group costs that takes so many picoseconds, and moves so many bytes."""
        more = bytes_ * self.per_byte
        return time - (-more.numerator // more.denominator)

    def value(self, plan: Plan) -> int:
        """Return what the goal makes small, of a plan with times and, for the product, with energy."""
        time, energy = plan.result.latency_picoseconds, plan.result.energy_picojoules
        assert time is not None
        if self.goal == "latency":
            return time
        assert energy is not None
        return energy * time

    def priced_as(self, plan: Plan) -> Aim:
        """Return the aim with the price at which time and energy of a plan are worth the same."""
        time, energy = plan.result.latency_picoseconds, plan.result.energy_picojoules
        assert time is not None
        if self.goal == "latency" or not energy:
            return self
        price = picojoules_per_dram_byte(plan.chip) * Fraction(time, energy)
        return replace(self, per_byte=price.limit_denominator(FINE))
