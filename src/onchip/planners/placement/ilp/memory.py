"""The address of every resident tensor at every step: L, V, u, d and eq. 9-11."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd

from onchip.planners.placement.ilp.actions import Actions, Key
from onchip.planners.placement.ilp.lifetimes import Lifetimes
from onchip.planners.placement.ilp.rows import Model, Terms

__all__ = ["Memory", "memory", "unit_of"]


Pair = tuple[int, int, int]
"""(index of an item, index of a later one, step)."""


@dataclass(slots=True)
class Memory:
    """The base addresses L, in units of `unit` bytes, and V, u and d.

    `stays` is V of an item at a step; `above` and `below` are u and d of two items at a step, the first one
    above or below the second.
    """

    unit: int
    address: dict[Key, int] = field(default_factory=dict)
    stays: dict[Key, int] = field(default_factory=dict)
    above: dict[Pair, int] = field(default_factory=dict)
    below: dict[Pair, int] = field(default_factory=dict)


def unit_of(lifetimes: Lifetimes) -> int:
    """Return the greatest common divisor of all sizes, in bytes.

    Any items that pack also pack at multiples of it: pushed down as far as possible, an item starts at 0 or
    at the end of another. Smaller numbers spare the solvers' tolerances.
    """
    return gcd(*(item.size for item in lifetimes.items))


def memory(model: Model, lifetimes: Lifetimes, made: Actions, budget: int) -> Memory:
    """Add L, V, u, d with eq. 9 (as bounds of L), 10 and 11 for `budget` bytes."""
    unit = unit_of(lifetimes)
    room, result = budget // unit, Memory(unit)
    size = [item.size // unit for item in lifetimes.items]
    for i, item in enumerate(lifetimes.items):
        for t in range(item.first, item.last + 1):
            result.address[i, t] = model.variable("L", 0, room - size[i])
    for i, j, steps in lifetimes.pairs():
        for t in steps:
            _apart(model, made, result, (i, j, t), size)
    for (i, t), preserve in made.preserve.items():
        result.stays[i, t] = stays = model.variable("V")
        _stays(
            model, made.resident(i, t - 1), preserve, result.address[i, t - 1], result.address[i, t], stays
        )
    return result


def _apart(model: Model, made: Actions, result: Memory, pair: Pair, size: list[int]) -> None:
    """Add eq. 10: two items resident at step t do not overlap; u: the first is above, d: below."""
    a, b, t = pair
    at = result.address
    above, below = model.variable("u"), model.variable("d")
    result.above[pair], result.below[pair] = above, below
    both = [*made.resident(a, t), *made.resident(b, t)]
    model.at_most("10", [(above, 1), (below, 1)], 1)
    model.at_most("10", [*both, (above, -1), (below, -1)], 1)
    model.at_most("10", [(at[a, t], 1), (at[b, t], -1)], -size[a], when=below)
    model.at_most("10", [(at[b, t], 1), (at[a, t], -1)], -size[b], when=above)


def _stays(model: Model, before: Terms, preserve: int, was: int, is_: int, stays: int) -> None:
    """Add eq. 11: a preserved item keeps its address; V (`stays`) is the paper's variable for that."""
    model.at_most("11", [(was, 1), (is_, -1)], 0, when=stays)
    model.at_most("11", [(is_, 1), (was, -1)], 0, when=stays)
    model.at_most("11", [*before, (preserve, 1), (stays, -1)], 1)
    model.at_most("11", [(stays, 1), *((x, -k) for x, k in before)], 0)
    model.at_most("11", [(stays, 1), (preserve, -1)], 0)
