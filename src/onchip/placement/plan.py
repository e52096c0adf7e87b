"""Placement from end to end: the budget, the search, the addresses, the program, the certificate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, get_args, get_origin, get_type_hints

from onchip.check import certify
from onchip.chip import Chip
from onchip.errors import Infeasible, UsageError
from onchip.network import Network, bits, mask
from onchip.placement import combined
from onchip.placement.addresses import Placement, Rectangle, place
from onchip.placement.problem import Problem
from onchip.placement.program import Placed, program
from onchip.placement.schedule import Schedule, reloads_of, traffic_of
from onchip.placement.search import (
    Found,
    Limits,
    Progress,
    minimum_peak,
    minimum_traffic,
)
from onchip.plan import Plan
from onchip.units import MAX_BYTES, parse_bytes

__all__ = ["PlacementOptions", "plan"]

SCHEDULES_TRIED = 12
"""Optimal schedules whose addresses are looked for before a relocation or a dearer schedule is accepted."""

SCHEDULES_RELOCATED = 3
"""How many of these are then tried with tensors moved."""

PACKING_SECONDS, PACKING_EACH, RELOCATING_EACH = 30.0, 10.0, 10.0
"""The most for all of the first together and for one of either, if the time limit leaves as much: another
schedule is often easier to pack."""


@dataclass(frozen=True, slots=True)
class PlacementOptions:
    """How placement works. The fields are also the command line's flags."""

    weights: Literal["streamed", "resident"] = "streamed"
    """`streamed`: weights take no scratchpad; `resident`: an operator's weights are held while it runs."""

    order: Literal["free", "given", "minpeak"] = "free"
    """`free` decides the order too, `given` keeps the network's, `minpeak` fixes the one of lowest peak."""

    time_limit: float | None = None
    """Seconds in all; when they are over, the plan is the best so far, with its gap."""

    memory_limit: int = field(default=2 << 30, metadata={"parse": parse_bytes})
    """Bytes of search states; when they are full, the plan is the best so far, with its gap."""

    strategy: Literal["exact"] = "exact"
    """`exact`: complete search, then addresses."""

    seed: int = 0
    """Breaks ties: another seed may give another plan, as good."""

    def __post_init__(self) -> None:
        for key, hint in get_type_hints(type(self)).items():
            value, allowed = getattr(self, key), get_args(hint)
            if get_origin(hint) is Literal and value not in allowed:
                raise UsageError(f"{value!r} is not one of {', '.join(map(str, allowed))}", item=key)
        limit = self.time_limit
        if limit is not None and not (isinstance(limit, int | float) and 0 <= limit < float("inf")):
            raise UsageError(f"{limit!r} is no number of seconds from 0 up", item="time_limit")
        if type(self.memory_limit) is not int or not 1 <= self.memory_limit <= MAX_BYTES:
            raise UsageError(
                f"{self.memory_limit!r} is no number of bytes from 1 to 1 TiB", item="memory_limit"
            )
        if type(self.seed) is not int or not 0 <= self.seed < 1 << 63:
            raise UsageError(f"{self.seed!r} is no whole number from 0 to 2^63 - 1", item="seed")


@dataclass(frozen=True, slots=True)
class _Answer:
    """A placed schedule and what it costs."""

    order: tuple[int, ...]
    placed: tuple[Placed, ...]
    scratch: dict[int, int]
    traffic: int


DEFAULTS = PlacementOptions()


def plan(
    network: Network,
    chip: Chip,
    budget: int,
    options: PlacementOptions = DEFAULTS,
    *,
    progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Plan:
    """The plan with the least non-compulsory DRAM traffic within `budget` bytes of scratchpad.

    `optimal` when its traffic equals a proved lower bound (over the orders that `options.order` allows), else
    `feasible` with that bound. Raises `Infeasible` naming the operator and tensors that do not fit. With a
    limit reached, or on Ctrl-C, the plan is the best so far.
    """
    began = time.perf_counter()
    if options.weights == "resident":
        network = network.with_resident_weights()
    problem = Problem.of(network, chip.alignment_bytes)
    _refuse_if_infeasible(network, problem, budget)
    limits = Limits(options.time_limit, options.memory_limit, progress, cancelled, options.seed)
    if options.order == "given":
        problem = problem.in_order(network.order)
    elif options.order == "minpeak":
        peak = minimum_peak(problem, limits=limits)
        problem = problem.in_order(peak.order)
        limits = limits.after(peak.seconds)

    # Finding out that time is up must leave some of it for the addresses.
    share = limits if limits.seconds is None else replace(limits, seconds=limits.seconds * 0.7)
    found = minimum_traffic(problem, budget, limits=share)
    left = limits.after(found.seconds)
    answer, bound = _with_addresses(problem, budget, chip.alignment_bytes, found, left)
    return certify(
        network,
        chip,
        budget,
        program(network, problem, answer.order, answer.placed, answer.scratch),
        status="optimal" if answer.traffic == bound else "feasible",
        lower_bound_bytes=bound,
        seconds=time.perf_counter() - began,
        options={
            "planner": "placement",
            "granularity": network.granularity,
            "element": network.element,
            "weights": options.weights,
            "order": options.order,
            "strategy": options.strategy,
            "seed": options.seed,
        },
    )


def _refuse_if_infeasible(network: Network, problem: Problem, budget: int) -> None:
    if problem.minimum_budget <= budget:
        return
    v = max(range(len(problem.inputs)), key=problem.step_bytes)
    tensors = mask(problem.inputs[v]) | mask(problem.outputs[v])
    parts = [(network.tensors[t].name, problem.size[t]) for t in bits(tensors)]
    if problem.workspace[v]:
        parts.append(("its workspace", problem.workspace[v]))
    raise Infeasible(
        needs=problem.minimum_budget,
        has=budget,
        operator=network.operators[v].name,
        tensors=tuple(sorted(parts, key=lambda part: -part[1])),
    )


def _with_addresses(
    problem: Problem, budget: int, alignment: int, found: Found, limits: Limits
) -> tuple[_Answer, int]:
    """The cheapest placed schedule that is found, and the proved lower bound of any."""
    began = time.perf_counter()

    def left() -> Limits:
        return limits.after(time.perf_counter() - began)

    def share(of: Limits, part: float, most: float) -> Limits:
        return of.at_most(most if of.seconds is None else min(most, of.seconds * part))

    # Half of the time is for packing, so that there is as much for moving what does not pack.
    packing = share(limits, 0.5, PACKING_SECONDS)
    tried: list[Schedule] = []
    for schedule in _schedules(problem, budget, found, packing):
        rest = packing.after(time.perf_counter() - began)
        packed = _place(schedule, budget, alignment, share(rest, 0.4, PACKING_EACH), relocate=False)
        if packed is not None:
            return packed, found.bound
        tried.append(schedule)
        if _cancelled(limits) or packing.after(time.perf_counter() - began).seconds == 0.0:
            break
    # No cheapest schedule packs as it is: move tensors where that costs least.
    best = _one_at_a_time(Schedule.nothing_kept(problem, found.order))
    chosen = tried[:SCHEDULES_RELOCATED]
    for i, schedule in enumerate(chosen):
        # Even without any time left the first pass over a schedule is made: it takes a moment.
        rest = share(left(), 1 / (len(chosen) - i), RELOCATING_EACH)
        rest = rest.at_most(0.0) if _cancelled(limits) else rest
        moved = _place(schedule, budget, alignment, rest, relocate=True)
        if moved is not None and moved.traffic < best.traffic:
            best = moved
        if best.traffic == found.bound or _cancelled(limits):
            break
    if len(problem.inputs) > combined.MOST_OPERATORS:
        return best, found.bound
    exact, bound = combined.solve(
        problem,
        budget,
        alignment,
        at_least=found.bound,
        below=best.traffic,
        time_limit=left().seconds,
        seed=limits.seed,
    )
    if exact is not None:
        best = _Answer(exact.order, exact.placed, exact.scratch, exact.traffic)
    return best, bound


def _schedules(problem: Problem, budget: int, found: Found, limits: Limits) -> Iterator[Schedule]:
    """The search's schedule, then others as cheap: new evictions in the same order, then new orders."""
    began = time.perf_counter()
    yield Schedule.of(problem, found.steps)
    if found.end == "stopped":
        return
    same_order = problem.in_order(found.order)
    for attempt in range(1, SCHEDULES_TRIED):
        seed = limits.seed + attempt
        again = limits.after(time.perf_counter() - began)
        if attempt % 3 and problem.order is None and found.seconds < 2.0:
            other = minimum_traffic(problem, budget, limits=replace(again, seed=seed))
        else:
            other = minimum_traffic(same_order, budget, limits=replace(again, seed=seed))
        if other.value == found.value:
            yield Schedule.of(problem, other.steps)


def _cancelled(limits: Limits) -> bool:
    return limits.cancelled is not None and limits.cancelled()


def _place(
    schedule: Schedule, budget: int, alignment: int, limits: Limits, *, relocate: bool
) -> _Answer | None:
    """Addresses for a schedule, with the least relocation found if it may; None when there are none."""
    problem = schedule.problem
    copied = {t for t in range(len(problem.size)) if schedule.has_copy(t)} | set(schedule.reloads)
    rectangles = [
        Rectangle(
            r.tensor,
            r.start,
            r.end,
            problem.size[r.tensor],
            r.uses,
            r.tensor in copied,
            cost=problem.cost[r.tensor],
        )
        for r in schedule.residencies
    ]
    scratch = schedule.scratch
    rectangles += [
        Rectangle(len(problem.size) + v, i, i + 1, problem.workspace[v], movable=False) for i, v in scratch
    ]
    result: Placement = place(
        rectangles,
        budget,
        alignment=alignment,
        time_limit=limits.seconds,
        relocate=relocate,
        seed=limits.seed,
    )
    if result.status == "unknown":
        return None
    count = len(schedule.residencies)
    placed = tuple(
        Placed(rectangles[piece.rectangle].item, piece.start, piece.end, piece.address)
        for piece in result.pieces
        if piece.rectangle < count
    )
    room = {
        scratch[piece.rectangle - count][1]: piece.address
        for piece in result.pieces
        if piece.rectangle >= count
    }
    return _Answer(schedule.order, placed, room, traffic_of(problem, reloads_of(p.tensor for p in placed)))


def _one_at_a_time(schedule: Schedule) -> _Answer:
    """Addresses for a schedule that keeps nothing: each step is stacked from address 0."""
    problem = schedule.problem
    top = [0] * len(schedule.order)
    placed = []
    for r in schedule.residencies:
        placed.append(Placed(r.tensor, r.start, r.end, top[r.start]))
        top[r.start] += problem.size[r.tensor]
    scratch = {v: top[i] for i, v in schedule.scratch}
    return _Answer(schedule.order, tuple(placed), scratch, schedule.traffic)
