"""Rows beyond the paper's equations: each cuts off no optimum, and all help a solver to its proof."""

from __future__ import annotations

from onchip.planners.placement.ilp.actions import Actions
from onchip.planners.placement.ilp.lifetimes import Item, Lifetimes
from onchip.planners.placement.ilp.memory import unit_of
from onchip.planners.placement.ilp.rows import Model, Terms

__all__ = ["implied_rows"]


def implied_rows(model: Model, lifetimes: Lifetimes, made: Actions, budget: int) -> None:
    """Add rows: loads fit; dead tensors are not kept (the paper, in words); no retrieval precedes use."""
    unit = unit_of(lifetimes)
    loads: list[Terms] = [[] for _ in range(lifetimes.steps)]
    for i, item in enumerate(lifetimes.items):
        for t in range(item.first, item.last + 1):
            loads[t] += [(x, item.size // unit) for x, _ in made.resident(i, t)]
    for load in loads:
        model.at_most("capacity", load, budget // unit)
    for i, item in enumerate(lifetimes.items):
        _wanted(model, lifetimes, made, i, item)


def _wanted(model: Model, lifetimes: Lifetimes, made: Actions, i: int, item: Item) -> None:
    runs = made.operator

    def reads(begin: int, end: int) -> Terms:
        """Return minus the number of readers that run at steps [begin, end)."""
        return [(runs[v, t], -1) for v in item.readers for t in range(begin, end) if (v, t) in runs]

    for t in range(item.first + 1, item.last + 1):
        preserve, retrieve = made.preserve.get((i, t)), made.retrieve.get((i, t))
        if preserve is not None:
            model.at_most("dead", [(preserve, 1), *reads(t, lifetimes.steps)], 0)
        if retrieve is not None:
            model.at_most("late", [(retrieve, 1), *reads(t, t + 1)], 0)
