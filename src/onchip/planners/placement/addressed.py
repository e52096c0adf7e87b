"""From the schedule that a search found to the cheapest one found with addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from onchip.base.errors import NoAddresses
from onchip.base.units import MAX_BYTES
from onchip.planners.limits import Limits
from onchip.planners.placement import combined
from onchip.planners.placement.addresses import place
from onchip.planners.placement.drawing import drawings
from onchip.planners.placement.pinning import refuse_if_forbidden
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.rectangles import Piece
from onchip.planners.placement.schedule import Schedule, reloads_of, traffic_of
from onchip.planners.placement.search import Found, minimum_traffic
from onchip.planners.placement.strategy import Answer

__all__ = ["OtherSchedules", "one_at_a_time", "place_schedule", "with_addresses"]

SCHEDULES_TRIED = 12
"""Optimal schedules whose addresses are tried before a relocation or a dearer schedule is accepted."""

SCHEDULES_RELOCATED = 3
"""The number of these that are then tried with tensors moved."""

PACKING_SECONDS, PACKING_EACH, RELOCATING_EACH = 30.0, 10.0, 10.0
"""The most seconds for all of the first together and for one of either, if the time limit leaves as much:
another schedule is often easier to pack."""


OtherSchedules = Callable[[Problem, int, Limits], Found]
"""Finds a schedule for a problem and a budget; another seed in the limits may give another, equally cheap."""


def _searched(problem: Problem, budget: int, limits: Limits) -> Found:
    return minimum_traffic(problem, budget, limits=limits)


def with_addresses(
    problem: Problem,
    budget: int,
    alignment: int,
    found: Found,
    limits: Limits,
    *,
    other_schedules: OtherSchedules | None = _searched,
) -> Answer:
    """Return the cheapest placed schedule found for a search's result, with a proved lower bound of any.

    If it does not pack, `other_schedules` gives others as cheap; None: there are none.

    Raises the errors of `refuse_if_forbidden` if tensors that must stay on chip (`problem.kept`) cannot, and
    `NoAddresses` if no addresses are found that leave them there; without such pins there always are some.
    """
    refuse_if_forbidden(problem, budget, alignment, found, limits)
    # Half of the time is for packing, so that as much remains for moving tensors that do not pack.
    packing = limits.share(0.5).at_most(PACKING_SECONDS)
    tried: list[Schedule] = []
    for schedule in _schedules(problem, budget, found, packing, other_schedules):
        each = packing.share(0.4).at_most(PACKING_EACH)
        packed = place_schedule(schedule, budget, alignment, each, relocate=False)
        if packed is not None:
            return replace(packed, bound=found.bound)
        tried.append(schedule)
        if packing.over():
            break
    # No cheapest schedule packs unmoved: move tensors where that costs least.
    best = None
    if problem.kept is None:  # otherwise this would move tensors that must stay
        best = one_at_a_time(Schedule.nothing_kept(problem, found.order), budget)
    chosen = tried[:SCHEDULES_RELOCATED]
    for i, schedule in enumerate(chosen):
        # Even without any time left make a first pass over the first schedule: it takes a moment.
        if i and limits.left() == 0.0:
            break
        each = limits.share(1 / (len(chosen) - i)).at_most(0.0 if limits.stopped() else RELOCATING_EACH)
        moved = place_schedule(schedule, budget, alignment, each, relocate=True)
        if moved is not None and (best is None or moved.traffic < best.traffic):
            best = moved
        if (best is not None and best.traffic == found.bound) or limits.stopped():
            break
    if best is None:
        raise NoAddresses(budget, found.bound)
    if problem.kept is not None or other_schedules is None or len(problem.inputs) > combined.MOST_OPERATORS:
        return replace(best, bound=found.bound)
    exact, bound = combined.solve(
        problem,
        budget,
        alignment,
        at_least=found.bound,
        below=best.traffic,
        time_limit=limits.left(),
        seed=limits.seed,
    )
    if exact is not None:
        best = Answer(exact.order, exact.placed, exact.scratch, exact.traffic)
    return replace(best, bound=bound)


def _schedules(
    problem: Problem, budget: int, found: Found, limits: Limits, others: OtherSchedules | None
) -> Iterator[Schedule]:
    """Yield the search's schedule, then others as cheap: new evictions in the same order, then new orders."""
    first = Schedule.of(problem, found.steps)
    seen = {(first.order, first.residencies)}
    yield first
    if found.end == "stopped" or others is None:
        return
    same_order = problem.in_order(found.order)
    for attempt in range(1, SCHEDULES_TRIED):
        seed = limits.seed + attempt
        if attempt % 3 and problem.order is None and found.seconds < 2.0:
            other = others(problem, budget, replace(limits, seed=seed))
        else:
            other = others(same_order, budget, replace(limits, seed=seed))
        schedule = Schedule.of(problem, other.steps)
        if other.value == found.value and (schedule.order, schedule.residencies) not in seen:
            seen.add((schedule.order, schedule.residencies))
            yield schedule


def place_schedule(
    schedule: Schedule, budget: int, alignment: int, limits: Limits, *, relocate: bool
) -> Answer | None:
    """Return addresses for a schedule, with the least relocation found if allowed; None if there are none."""
    best: Answer | None = None
    ways = list(drawings(schedule, budget))
    for i, drawing in enumerate(ways):
        try:
            found = place(
                drawing.rectangles,
                budget,
                alignment=alignment,
                time_limit=limits.share(1 / (len(ways) - i)).left(),
                relocate=relocate,
                seed=limits.seed,
            )
        except ValueError:
            # The search overwrote an input with an output, and both have prescribed addresses of their own.
            if schedule.problem.kept is None or not schedule.problem.overwrites:
                raise
            continue
        if found.status == "unknown":
            continue
        placed, scratch = drawing.placed(found.pieces)
        traffic = traffic_of(schedule.problem, reloads_of(p.tensor for p in placed))
        if best is None or traffic < best.traffic:
            best = Answer(schedule.order, placed, scratch, traffic)
        if found.status == "packed":
            break
    return best


def one_at_a_time(schedule: Schedule, budget: int | None = None) -> Answer:
    """Return addresses for a schedule that keeps nothing: each step is stacked from address 0.

    Outputs are written over inputs (if the problem allows it) in steps that exceed `budget` otherwise.
    """
    drawing = next(drawings(schedule, MAX_BYTES if budget is None else budget))
    top = [0] * len(schedule.order)
    pieces = []
    for i, r in enumerate(drawing.rectangles):
        assert r.start + 1 == r.end, "nothing is kept"
        pieces.append(Piece(i, r.start, r.end, top[r.start]))
        top[r.start] += r.size
    placed, scratch = drawing.placed(pieces)
    return Answer(schedule.order, placed, scratch, schedule.traffic)
