"""Orders of rows of small peaks: the compiled search behind a typed function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onchip import _core
from onchip.microcontroller.rows.graph import RowGraph
from onchip.planners.limits import NO_LIMITS, Limits

__all__ = ["ALL_RULES", "Order", "Rules", "core_operators", "search"]

MOST_STATES = 200_000
"""States of the complete search, which small graphs come to the end of."""

MOST_MOVES = 400
"""States that the search over moves opens."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of the search, each a switch. None changes the least peak, only the time and the bound."""

    free_steps: bool = True
    """A step that adds no bytes and needs no more than was needed before is taken at once."""
    valley: bool = True
    """The search over moves goes through the state of least bytes: two problems."""
    cuts: bool = True
    """The bound is that of minimum cuts; without them it is what a step alone needs."""


ALL_RULES = Rules()


@dataclass(frozen=True, slots=True)
class Order:
    """A schedule, its peak in bytes, and a bound that no schedule's peak is below.

    `binding` is the operator whose step binds, with the step's number; None where the search itself found
    the bound, or the bytes at one of the ends bind. `states` are those that the search opened.
    """

    schedule: tuple[int, ...]
    peak: int
    bound: int
    binding: tuple[int, int] | None
    states: int

    @property
    def optimal(self) -> bool:
        """True if no order of these rows has a smaller peak."""
        return self.peak == self.bound


def search(
    graph: RowGraph,
    *,
    share: bool = True,
    rules: Rules = ALL_RULES,
    most_states: int = MOST_STATES,
    most_moves: int = MOST_MOVES,
    below: int = 0,
    limits: Limits = NO_LIMITS,
) -> Order:
    """Return the best order of rows that is found; `share`: rows may share bytes with rows read last.

    `most_states` limits the complete search, 0 leaves it out. With `below` other than 0 only orders of fewer
    bytes are wanted: the search ends early where it finds none soon. With limits, the best so far.
    """
    found = _core.rows_search(
        operators=core_operators(graph),
        share=share,
        rules=_core.RowRules(free_steps=rules.free_steps, valley=rules.valley, cuts=rules.cuts),
        most_states=most_states,
        most_moves=most_moves,
        below=below,
        limits=limits.core(lambda _: limits.stopped()),
    )
    binding = (found.binding, found.binding_step) if found.binding >= 0 else None
    return Order(tuple(found.schedule), found.peak, found.bound, binding, found.states)


def core_operators(graph: RowGraph) -> Sequence[_core.RowOperator]:
    """Return the operators in the form of the compiled core."""
    return [
        _core.RowOperator(
            steps=op.steps,
            bytes=op.bytes,
            kept=op.kept,
            held=op.held,
            anew=op.anew,
            operands=[
                _core.RowOperand(maker=o.maker, windows=list(o.windows), distance=o.distance)
                for o in op.operands
            ],
        )
        for op in graph.operators
    ]
