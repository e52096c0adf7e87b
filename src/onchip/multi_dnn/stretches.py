"""The stretches of a unit: consecutive groups of one run without another network's groups between."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.multi_dnn.schedule import Schedule

__all__ = ["Stretch", "stretches"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Groups `first` to `last` of a run, on one unit; `turn` is its position in that unit's order."""

    job: int
    run: int
    first: int
    last: int
    unit: int
    turn: int


def stretches(schedule: Schedule) -> tuple[tuple[Stretch, ...], ...]:
    """Return the stretches of every unit, in its order. A step with an inserted wait begins a new one."""
    waits = {step for step, ms in schedule.idle_ms if ms}
    found = []
    for unit, steps in enumerate(schedule.order):
        row: list[Stretch] = []
        for step in steps:
            last = row[-1] if row else None
            follows = last is not None and (last.job, last.run, last.last + 1) == step
            if last is not None and follows and step not in waits:
                row[-1] = Stretch(last.job, last.run, last.first, step.group, unit, last.turn)
            else:
                row.append(Stretch(*step, step.group, unit, len(row)))
        found.append(tuple(row))
    return tuple(found)
