"""The whole models: least traffic (eq. 12, with a given order eq. 17) and least peak (eq. 13-15)."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from onchip.planners.placement.ilp.actions import Actions, actions
from onchip.planners.placement.ilp.implied import implied_rows
from onchip.planners.placement.ilp.lifetimes import Lifetimes
from onchip.planners.placement.ilp.memory import Memory, memory, unit_of
from onchip.planners.placement.ilp.reading import SENSIBLE, Reading
from onchip.planners.placement.ilp.rows import Model
from onchip.planners.placement.problem import Problem

__all__ = ["Formulation", "least_peak", "least_traffic"]


@dataclass(frozen=True)
class Formulation:
    """A model, the meaning of its variables, and the bytes of one unit of its objective.

    `memory` is None without addresses (least peak).
    """

    model: Model
    lifetimes: Lifetimes
    actions: Actions
    memory: Memory | None
    bytes_per_unit: int


def least_traffic(
    problem: Problem, budget: int, reading: Reading = SENSIBLE, *, implied: bool = True
) -> Formulation:
    """Return eq. 1-12; eq. 16 and 17 if `problem.order` is given. Without `implied` not one row more."""
    model, lifetimes = Model(), Lifetimes.of(problem)
    made = actions(model, lifetimes, reading)
    placed = memory(model, lifetimes, made, budget)
    if implied:
        implied_rows(model, lifetimes, made, budget)
    unit = gcd(*problem.cost) or 1
    for kind in (made.spill, made.retrieve):
        for (i, _), x in kind.items():
            tensor = lifetimes.items[i].tensor
            assert tensor is not None  # a workspace is never spilled
            written_anyway = reading.outputs_written and problem.graph_outputs >> tensor & 1
            if kind is made.retrieve or not written_anyway:
                model.objective.append((x, problem.cost[tensor] // unit))
    return Formulation(model, lifetimes, made, placed, unit)


def least_peak(problem: Problem) -> Formulation:
    """Return eq. 1, 2, 5, 6, 7 and 13-15: the order of least peak if nothing leaves, without addresses."""
    model, lifetimes = Model(), Lifetimes.of(problem)
    made = actions(model, lifetimes, SENSIBLE, leave=False)
    unit = unit_of(lifetimes)
    total = sum(item.size for item in lifetimes.items) // unit
    peak = model.variable("M_peak", 0, total)
    for t in range(lifetimes.steps):
        load = [
            (x, item.size // unit) for i, item in enumerate(lifetimes.items) for x, _ in made.resident(i, t)
        ]
        model.at_most("14", [*load, (peak, -1)], 0)
    model.objective.append((peak, 1))
    return Formulation(model, lifetimes, made, None, unit)
