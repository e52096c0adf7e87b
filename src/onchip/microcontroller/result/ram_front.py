"""RAM against work over all methods: chains, rows, rows in strips and copies, whole tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from onchip.base.errors import Infeasible, ModelError
from onchip.machines.board import MOST_BYTES
from onchip.microcontroller.network import network_of, states_of
from onchip.microcontroller.result.microcontroller_plan import planned_for
from onchip.microcontroller.result.row_choice import RowPlans, rows_too_little
from onchip.microcontroller.row_plan import plan_of_rows
from onchip.microcontroller.segments.frontier import front
from onchip.microcontroller.segments.planning import plan_of, too_little
from onchip.planners.limits import NO_LIMITS, Limits

if TYPE_CHECKING:
    from onchip.microcontroller.int8.model import Int8Model
    from onchip.microcontroller.row_points import RowsAnew
    from onchip.microcontroller.segments import Front, FrontPoint, SegmentOptions
    from onchip.plans import Plan

__all__ = ["RamFront", "RamPoint", "ram_front"]

How = Literal["chains", "rows", "rows made twice", "whole"]


@dataclass(frozen=True, slots=True)
class RamPoint:
    """A plan: its bytes of RAM, multiply-accumulates, their ratio to the network's own, and its method.

    `reckoned` is the estimated ratio of instructions, `bound` the bytes that it needs at once in any
    placement, `groups` the number of its groups. `program` makes the certified plan, `lack` the error for too
    few bytes.
    """

    ram_bytes: int
    macs: int
    factor: float
    reckoned: float
    how: How
    bound: int
    groups: int
    program: Callable[[], Plan]
    lack: Callable[[int], Infeasible]


@dataclass(frozen=True, slots=True)
class RamFront:
    """Points from the least work to the fewest bytes, of which none is worse than another in bytes and work.

    `complete`: the whole space of chains was searched, and no point makes rows of a graph twice, of which
    only some graphs were tried.
    """

    points: tuple[RamPoint, ...]
    macs: int
    complete: bool
    seconds: float


def ram_front(
    model: Int8Model, options: SegmentOptions, known: RowPlans | None = None, limits: Limits = NO_LIMITS
) -> RamFront:
    """Return the front over the methods that `options.method` allows.

    Raises `ModelError` for a network to which none applies.
    """
    points: list[RamPoint] = []
    macs, complete, refused = 0, True, None
    try:
        if options.method != "rows":
            found = front(network_of(model), options, limits=limits)
            macs, complete = found.macs, found.complete
            points += [_of_chains(found, point, options) for point in found.points]
    except ModelError as no:
        refused = no
        points += _whole(model, options)
    if options.method != "chains":
        try:
            points += _of_rows(model, options, known or RowPlans(), limits)
        except ModelError as no:
            refused = no
    if not points:
        assert refused is not None
        raise refused
    macs = macs or min(point.macs for point in points)
    kept = _undominated(points)
    complete = complete and not any(point.how == "rows made twice" for point in kept)
    return RamFront(kept, macs, complete, limits.spent())


def _undominated(points: list[RamPoint]) -> tuple[RamPoint, ...]:
    """Return the points that no other is as good as in bytes and multiply-adds; of equals the first one."""
    kept: list[RamPoint] = []
    for point in sorted(points, key=lambda p: (p.macs, p.ram_bytes, p.reckoned)):
        if not kept or point.ram_bytes < kept[-1].ram_bytes:
            kept.append(point)
    return tuple(kept)


def _of_chains(found: Front, point: FrontPoint, options: SegmentOptions) -> RamPoint:
    return RamPoint(
        point.ram_bytes,
        point.macs,
        point.factor,
        point.reckoned,
        "chains",
        point.choice.bound,
        len(point.choice.groups),
        lambda: plan_of(found.chain, point.choice, point.ram_bytes, options),
        lambda has: too_little(found.chain, point.choice, has),
    )


def _whole(model: Int8Model, options: SegmentOptions) -> list[RamPoint]:
    """Return the plan in whole tensors, where there is one."""
    try:
        plan = planned_for(network_of(model), MOST_BYTES, options, states_of(model)).plan
    except ModelError:
        return []
    needs, macs = plan.result.extent_bytes, plan.result.macs or 0

    def lack(has: int) -> Infeasible:
        return Infeasible(needs=needs, has=has, operator=model.layers[0].name, tensors=())

    return [RamPoint(needs, macs, 1.0, 1.0, "whole", needs, len(model.layers), lambda: plan, lack)]


def _of_rows(model: Int8Model, options: SegmentOptions, known: RowPlans, limits: Limits) -> list[RamPoint]:
    first = known.once(model, (), options, limits)
    rest = () if options.objective == "once" else known.anew(model, (), options, limits)
    own = max(first.macs, 1)
    return [_by_rows(found, own, twice=found is not first) for found in (first, *rest)]


def _by_rows(found: RowsAnew, own: int, *, twice: bool) -> RamPoint:
    plan = plan_of_rows(found.rows, found.plan, found.sizes)
    macs = plan.result.macs or 0
    factor = macs / own
    return RamPoint(
        plan.result.extent_bytes,
        macs,
        factor,
        factor,
        "rows made twice" if twice else "rows",
        found.plan.order.peak,
        1,
        lambda: plan,
        lambda has: rows_too_little(found, plan.result.extent_bytes, has),
    )
