"""Plans by rows at several costs: the front of a network's graph, every point with addresses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from onchip.microcontroller.row_plan import planned_rows
from onchip.microcontroller.rows.cut_model import model_of_pieces
from onchip.microcontroller.rows.front import RowPoint, front
from onchip.microcontroller.rows.makers import RowModel
from onchip.microcontroller.rows.planning import RowPlan
from onchip.planners.limits import NO_LIMITS, Limits

__all__ = ["RowsAnew", "points_of"]

SEARCH = 0.6
"""The share of a time limit for the search, the other is for addresses."""

WORTH = 150
"""A point is packed if it saves one in so many bytes over that before."""


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
    limits: Limits = NO_LIMITS,
) -> tuple[RowsAnew, ...]:
    """Return plans that make something twice, from the least work to the fewest bytes; maybe none.

    `again`: rows of an input, or columns of them, may come several times. `shrink` as in `planned_rows`.
    Without a time limit counts alone end the search, so that every machine finds the same plans.
    """
    points = front(rows.graph, usable=lambda pieces: again or not pieces.again, limits=limits.share(SEARCH))
    found: list[RowsAnew] = []
    for point in _worth(points):
        if found and limits.over():
            break
        limits.say(f"packing rows of {point.bytes:,} bytes")
        made = model_of_pieces(rows, point.pieces)
        plan, sizes = planned_rows(made, shared, limits, shrink=shrink, known=point.order)
        found.append(RowsAnew(made, plan, tuple(sizes)))
    return _undominated(found)


def _worth(points: Sequence[RowPoint]) -> list[RowPoint]:
    """Return the points that save enough over those before to be worth packing, the ends first."""
    kept: list[RowPoint] = []
    last = None
    for point in points:
        if len(point.pieces.pieces) == len(point.pieces.base.operators):
            continue  # nothing stands twice
        if last is None or point.bytes * WORTH <= last.bytes * (WORTH - 1) or point is points[-1]:
            kept.append(point)
            last = point
    order: list[RowPoint] = []
    parts = [kept]
    while parts:
        part = parts.pop(0)
        if part:
            middle = len(part) // 2 if order else len(part) - 1
            order.append(part[middle])
            parts += [part[:middle], part[middle + 1 :]]
    return order


def _undominated(found: Sequence[RowsAnew]) -> tuple[RowsAnew, ...]:
    kept: list[RowsAnew] = []
    for one in sorted(found, key=lambda x: (x.macs, x.bytes)):
        if not kept or one.bytes < kept[-1].bytes:
            kept.append(one)
    return tuple(kept)
