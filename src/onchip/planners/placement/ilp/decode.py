"""From a solver's values to a placed schedule, each stay cut to the steps that use it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from onchip.planners.placement.ilp.actions import Actions
from onchip.planners.placement.ilp.formulation import Formulation
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.program import Placed
from onchip.planners.placement.schedule import reloads_of, traffic_of
from onchip.planners.placement.strategy import Answer

__all__ = ["legal", "order_of", "placed_schedule"]


def order_of(formulation: Formulation, values: Sequence[int]) -> tuple[int, ...]:
    """Return the operators in the order in which a solution runs them."""
    runs = {t: v for (v, t), x in formulation.actions.operator.items() if values[x]}
    return tuple(runs[t] for t in range(formulation.lifetimes.steps))


def placed_schedule(formulation: Formulation, values: Sequence[int]) -> Answer:
    """Return the solution's order, residencies and addresses, with their traffic."""
    assert formulation.memory is not None
    problem, lifetimes = formulation.lifetimes.problem, formulation.lifetimes
    order = order_of(formulation, values)
    at = {key: values[x] * formulation.memory.unit for key, x in formulation.memory.address.items()}
    step = {v: t for t, v in enumerate(order)}
    placed: list[Placed] = []
    scratch: dict[int, int] = {}
    for i, item in enumerate(lifetimes.items):
        if item.tensor is None:
            assert item.producer is not None
            scratch[item.producer] = at[i, step[item.producer]]
            continue
        touching = item.readers if item.producer is None else (item.producer, *item.readers)
        uses = sorted(step[v] for v in touching)
        for begin, end in _stays(formulation.actions, values, i, range(item.first, item.last + 1)):
            used = [t for t in uses if begin <= t < end]
            if used:  # a stay without uses is no part of a plan
                placed.append(Placed(item.tensor, used[0], used[-1] + 1, at[i, begin]))
    traffic = traffic_of(problem, reloads_of(p.tensor for p in placed))
    return Answer(order, tuple(placed), scratch, traffic)


def _stays(made: Actions, values: Sequence[int], item: int, steps: range) -> Iterator[tuple[int, int]]:
    """Yield the item's residencies [begin, end): from a creation or retrieval while it is preserved."""
    begun: int | None = None
    for t in (*steps, steps.stop):
        preserve = made.preserve.get((item, t))
        if begun is not None and not (preserve is not None and values[preserve]):
            yield begun, t
            begun = None
        if any(
            x is not None and values[x] for x in (made.create.get((item, t)), made.retrieve.get((item, t)))
        ):
            begun = t


def legal(problem: Problem, answer: Answer, budget: int) -> bool:
    """Return whether no two boxes overlap in time and bytes, and none leaves the budget.

    A MIP solver keeps rows within a tolerance, so its addresses are checked before they are used.
    """
    boxes = [(p.start, p.end, p.address, p.address + problem.size[p.tensor]) for p in answer.placed]
    for t, v in enumerate(answer.order):
        if v in answer.scratch:
            at = answer.scratch[v]
            boxes.append((t, t + 1, at, at + problem.workspace[v]))
    if any(low < 0 or high > budget for _, _, low, high in boxes):
        return False
    at_step: list[list[tuple[int, int]]] = [[] for _ in answer.order]
    for begin, end, low, high in boxes:
        for t in range(begin, end):
            at_step[t].append((low, high))
    return all(a[1] <= b[0] or b[1] <= a[0] for boxes_ in at_step for a, b in combinations(boxes_, 2))
