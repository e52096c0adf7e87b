"""Steps whose nests fit with their addresses: the places inside a nest may need more than what is alive.

The search counts what is alive. Where the places of a step's nest end beyond the room that other tensors
leave, another nest of the group takes its place: the cheapest found whose places fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onchip.network import mask
from onchip.planners.fusion import FusionProblem
from onchip.planners.joint.layout import step_loads
from onchip.planners.joint.nests import Nests, NestWay
from onchip.planners.joint.search import Step

__all__ = ["fitted"]

MOST_ROOMS = 12
"""The most rooms for which a group that does not fit is asked again."""


def fitted(
    problem: FusionProblem, nests: Nests, steps: Sequence[Step], budget: int
) -> tuple[Step, ...] | None:
    """Return steps that fit within the budget at every step; None if some group has no nest that does, or one
    that is no nest does not fit."""
    found = list(steps)
    for i, load in enumerate(step_loads(problem, steps)):
        if load <= budget:
            continue
        way = steps[i].way
        if not isinstance(way, NestWay):
            return None
        fits = _within(problem, nests, steps[i], way, problem.round_up(way.scratch_bytes) - (load - budget))
        if fits is None:
            return None
        found[i] = replace(steps[i], way=fits)
    return tuple(found)


def _within(problem: FusionProblem, nests: Nests, step: Step, way: NestWay, room: int) -> NestWay | None:
    """Return the cheapest nest found of a step's group whose places fit in `room` bytes."""
    whole = mask(t for i in way.whole if (t := way.axes.buffers[i].tensor) is not None)
    best: NestWay | None = None
    low, high = 0, room  # in `low` bytes nothing fits; places in more than `high` do not
    for _ in range(MOST_ROOMS):
        asked = high if best is None else (low + high + 1) // 2
        if asked <= low:
            break
        other = nests.way(way.candidate, whole, asked, over=step.over, made=step.made)
        if other is None:
            break
        extent = problem.round_up(other.scratch_bytes)
        if extent <= room:
            if best is None or other.dram_bytes < best.dram_bytes:
                best = other
            low = asked
        elif best is None:
            high = min(asked - 1, asked - (extent - room))
        else:
            high = asked - 1
    return best
