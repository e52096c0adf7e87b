"""A plan of rows: orders of small peaks, each packed, and of these plans the one in the fewest bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onchip.microcontroller.rows.addresses import Placed, place
from onchip.microcontroller.rows.graph import RowGraph
from onchip.microcontroller.rows.search import MOST_MOVES, MOST_STATES, Order, Rules, search
from onchip.planners.limits import NO_LIMITS, Limits

__all__ = ["RowPlan", "plan"]


PLAIN = Rules(free_steps=False, cuts=False)

NEAR = 64
"""An order whose peak is above the known one's by less than this part is worth packing."""

MORE_MOVES = 4
"""Times as many moves as a search has else, for orders that may be others and pack better."""


@dataclass(frozen=True, slots=True)
class RowPlan:
    """A graph with an order of small peak, and its rows with addresses in the fewest bytes found.

    The order of `placed` may be another one: the least peak does not always pack best. `order.bound` is a
    bound on both.
    """

    graph: RowGraph
    order: Order
    placed: Placed

    @property
    def optimal(self) -> bool:
        """True if no plan of these rows, each beside the others, has fewer bytes."""
        return self.placed.bytes == self.order.bound


def plan(
    graph: RowGraph,
    outputs: Sequence[Sequence[int]] | None = None,
    *,
    alignment: int = 1,
    spaces: Sequence[int] | None = None,
    known: Order | None = None,
    limits: Limits = NO_LIMITS,
) -> RowPlan:
    """Return the best plan that is found: rows beside one another, held inputs and outputs in one piece each.

    `outputs` are the operators of each output, in the order of its bytes, `spaces` the bytes of workspace
    of each operator's steps, for which `placed` has room; the bound counts none. With a `known` order only
    this and one that is found at once are packed, without the packing search. With limits, the best so far.
    """
    orders: list[Order] = []
    best: Placed | None = None
    for order in _orders(graph, known, limits):
        if order.schedule in {other.schedule for other in orders}:
            continue
        orders.append(order)
        bound = max(o.bound for o in orders)
        placed = place(
            graph,
            order.schedule,
            outputs=outputs,
            alignment=alignment,
            spaces=spaces,
            tighten=known is None,
            limits=limits,
        )
        if best is None or placed.bytes < best.bytes:
            best = placed
        if best.bytes == bound or limits.over():
            break
    assert best is not None
    least = min(orders, key=lambda order: order.peak)
    bound = max(order.bound for order in orders)
    binding = next(order.binding for order in orders if order.bound == bound)
    found = Order(least.schedule, least.peak, bound, binding, sum(order.states for order in orders))
    return RowPlan(graph, found, best)


def _orders(graph: RowGraph, known: Order | None, limits: Limits) -> Iterator[Order]:
    """Yield orders of small peaks that differ; the first is the best, or the known one."""
    if known is not None:
        yield known
        below = known.peak + known.peak // NEAR
        other = search(
            graph, share=False, rules=PLAIN, most_states=0, most_moves=0, below=below, limits=limits
        )
        if other.peak < below:
            yield other
        return
    yield search(graph, share=False, limits=limits)
    some, more = MOST_MOVES, MORE_MOVES * MOST_MOVES
    every_step = Rules(free_steps=False)
    for states, moves, rules in (
        (0, some, Rules()),
        (0, some, every_step),
        (MOST_STATES, some, every_step),
        (0, more, Rules()),
        (0, more, every_step),
    ):
        if not limits.over():
            yield search(graph, share=False, rules=rules, most_states=states, most_moves=moves, limits=limits)
