"""From a placed schedule to values of the model: a first solution for a solver. The reverse of `decode`."""

from __future__ import annotations

from onchip.planners.placement.ilp.formulation import Formulation
from onchip.planners.placement.program import Placed
from onchip.planners.placement.strategy import Answer

__all__ = ["values_of"]


def values_of(formulation: Formulation, answer: Answer) -> tuple[int, ...] | None:
    """Return a value for every variable, or None for addresses that are no multiples of the model's unit.

    An item is created where its first stay begins and retrieved where a later one does; it is preserved in
    between, and spilled where the first stay ends if there is another.
    """
    assert formulation.memory is not None
    made, memory, items = formulation.actions, formulation.memory, formulation.lifetimes.items
    values = list(formulation.model.lower)
    step = {v: t for t, v in enumerate(answer.order)}
    stays: dict[int, list[Placed]] = {}
    for one in sorted(answer.placed, key=lambda p: p.start):
        stays.setdefault(one.tensor, []).append(one)
    at: dict[tuple[int, int], int] = {}  # addresses of what is resident
    for i, item in enumerate(items):
        if item.tensor is None:
            assert item.producer is not None
            t = step[item.producer]
            values[made.create[i, t]] = 1
            at[i, t] = answer.scratch[item.producer]
            continue
        for n, stay in enumerate(stays[item.tensor]):
            values[(made.retrieve if n else made.create)[i, stay.start]] = 1
            for t in range(stay.start, stay.end):
                at[i, t] = stay.address
            for t in range(stay.start + 1, stay.end):
                values[made.preserve[i, t]] = values[memory.stays[i, t]] = 1
            if n == 0 and len(stays[item.tensor]) > 1 and (i, stay.end) in made.spill:
                values[made.spill[i, stay.end]] = 1
    for key, address in at.items():
        if address % memory.unit:
            return None
        values[memory.address[key]] = address // memory.unit
    for (i, j, t), above in memory.above.items():
        if (i, t) in at and (j, t) in at:
            values[above if at[i, t] > at[j, t] else memory.below[i, j, t]] = 1
    return tuple(values)
