"""Plans by rows at several costs: the front of a network's graph, every point with addresses."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from onchip.microcontroller.row_plan import planned_rows
from onchip.microcontroller.rows.cut_model import model_of_pieces
from onchip.microcontroller.rows.front import front
from onchip.microcontroller.rows.makers import RowModel
from onchip.microcontroller.rows.planning import RowPlan
from onchip.planners.limits import NO_LIMITS, Limits

__all__ = ["RowsAnew", "points_of"]


@dataclass(frozen=True, slots=True)
class RowsAnew:
    """A plan by rows: its network in pieces, addresses, workspaces, and multiply-accumulates."""

    rows: RowModel
    plan: RowPlan
    sizes: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return self.plan.placed.bytes

    @property
    def macs(self) -> int:
        return self.rows.graph.work


def points_of(
    rows: RowModel,
    shared: Collection[str] = (),
    *,
    again: bool,
    shrink: bool,
    say: Callable[[str], None] = lambda _: None,
    limits: Limits = NO_LIMITS,
) -> tuple[RowsAnew, ...]:
    """Return plans that make something twice, from the least work to the fewest bytes; maybe none.

    `again`: rows of an input, or columns of them, may come several times. `shrink` as in `planned_rows`.
    """
    found: list[RowsAnew] = []
    search = limits.share(0.5)
    points = front(rows.graph, usable=lambda pieces: again or not pieces.again, limits=search)
    for point in points[1:]:
        say(f"packing rows of {point.bytes:,} bytes")
        made = model_of_pieces(rows, point.pieces)
        plan, sizes = planned_rows(made, shared, limits, shrink=shrink, known=point.order)
        new = RowsAnew(made, plan, tuple(sizes))
        if not found or new.bytes < found[-1].bytes:
            found.append(new)
    return tuple(found)
