"""Claims of the packer on a few buffers, each held against trying every offset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from onchip.planners.packing import Buffer, PackOptions, decide
from oracles.claims_outcome import Outcome

__all__ = ["fits", "packing_case"]


def fits(buffers: Sequence[Buffer], capacity: int, alignment: int) -> tuple[int, ...] | None:
    """Offsets within `capacity`, found by trying all; None where there are none."""
    occupied: dict[int, int] = {}  # time -> bytes taken, as bits
    order = sorted(range(len(buffers)), key=lambda i: (buffers[i].offset is None, -buffers[i].size))
    offsets = [0] * len(buffers)
    times = [_times(b) for b in buffers]

    def place(k: int) -> bool:
        if k == len(order):
            return True
        i = order[k]
        buffer = buffers[i]
        step = buffer.alignment
        tried = range(capacity - buffer.size + 1)
        if buffer.offset is not None:
            tried = range(buffer.offset, buffer.offset + 1)
        for at in tried:
            if at % step or at % alignment or at + buffer.size > capacity:
                continue
            taken = ((1 << buffer.size) - 1) << at
            if any(occupied.get(t, 0) & taken for t in times[i]):
                continue
            for t in times[i]:
                occupied[t] = occupied.get(t, 0) | taken
            offsets[i] = at
            if place(k + 1):
                return True
            for t in times[i]:
                occupied[t] ^= taken
        return False

    return tuple(offsets) if place(0) else None


def _times(buffer: Buffer) -> list[int]:
    gone = {t for low, high in buffer.gaps for t in range(low, high)}
    return [t for t in range(buffer.lower, buffer.upper) if t not in gone]


def packing_case(seed: int, *, judge: bool = True) -> Outcome:
    """A few buffers; whether they fit a capacity, or the least that they fit; and whether that is so."""
    rng = Random(f"packing {seed}")
    outcome = Outcome("packing", seed)
    alignment = rng.choice((1, 1, 1, 2, 3))
    buffers = []
    for _ in range(rng.randint(1, 7)):
        lower = rng.randint(0, 6)
        upper = rng.randint(lower + 1, 8)
        made = Buffer(lower, upper, rng.choice((1, 1, 2, 2, 3, 4)), alignment=rng.choice((1, 1, 1, 1, 2, 4)))
        if rng.random() < 0.15 and upper - lower > 2:
            first = rng.randint(lower + 1, upper - 2)
            made = replace(made, gaps=((first, rng.randint(first + 1, upper - 1)),))
        if rng.random() < 0.08:
            at = rng.randint(0, 5)
            step = made.alignment * alignment
            made = replace(made, offset=at // step * step)
        buffers.append(made)
    load = max((sum(b.size for b in buffers if t in _times(b)) for t in range(9)), default=0)
    capacity = load + rng.choice((-1, 0, 0, 0, 1, 2))
    least = rng.random() < 0.5
    limit = 60.0
    if rng.random() < 0.06:
        limit, outcome.limited = rng.choice((0.0, 0.002)), True
    outcome.seconds = limit
    options = PackOptions(alignment=alignment, minimise=least, time_limit=limit)
    with outcome.planning():
        found = decide(buffers, None if least else max(0, capacity), options)
    outcome.budget = max(0, capacity)
    outcome.label = "least" if least else ""
    outcome.status = {"packed": "optimal", "infeasible": "infeasible"}.get(found.status, "unanswered")
    if least and found.extent is not None and found.extent > found.lower_bound:
        outcome.status = "feasible"
    outcome.notes["buffers"] = repr(buffers)
    if not judge:
        return outcome
    with outcome.judging():
        if found.status == "packed":
            wrong = _illegal(buffers, found.offsets, alignment)
            if wrong or (
                not least
                and max(at + b.size for at, b in zip(found.offsets, buffers, strict=True)) > capacity
            ):
                outcome.refuted = f"its packing is none: {wrong or 'above the capacity'}"
        bound = found.lower_bound - 1
        if not outcome.refuted and bound >= 0 and (least or found.status == "infeasible"):
            room = bound if least or found.status != "infeasible" else outcome.budget
            offsets = fits(buffers, room, alignment)
            if offsets is not None:
                outcome.refuted = f"offsets {offsets} fit {room} bytes"
        if found.conflict is not None and not outcome.refuted:
            _conflict(outcome, [buffers[i] for i in found.conflict.which], found.conflict.minimal, alignment)
            _needs(outcome, buffers, found.needs, found.exact, alignment)
    return outcome


def _illegal(buffers: Sequence[Buffer], offsets: Sequence[int], alignment: int) -> str:
    taken: dict[int, int] = {}
    for at, buffer in zip(offsets, buffers, strict=True):
        bytes_ = ((1 << buffer.size) - 1) << at
        if at % alignment or at % buffer.alignment or buffer.offset not in (None, at):
            return f"{buffer} at {at}"
        for t in _times(buffer):
            if taken.get(t, 0) & bytes_:
                return f"{buffer} at {at} at time {t}"
            taken[t] = taken.get(t, 0) | bytes_
    return ""


def _conflict(outcome: Outcome, chosen: list[Buffer], minimal: bool, alignment: int) -> None:
    """What is named does not fit; where it is called minimal any one fewer does."""
    if fits(chosen, outcome.budget, alignment) is not None:
        outcome.refuted = "what is named as too many fits"
    elif minimal and any(
        fits(chosen[:i] + chosen[i + 1 :], outcome.budget, alignment) is None for i in range(len(chosen))
    ):
        outcome.refuted = "what is named as minimal is not"


def _needs(
    outcome: Outcome, buffers: Sequence[Buffer], needs: int | None, exact: bool, alignment: int
) -> None:
    """The needs are the least in which all fit, or a bound of it."""
    if needs is None:
        if fits(buffers, 64, alignment) is not None:
            outcome.needs_wrong = "no capacity is said to be enough"
    elif fits(buffers, needs - 1, alignment) is not None:
        outcome.needs_wrong = f"said to need {needs}, fits in less"
    elif exact and fits(buffers, needs, alignment) is None:
        outcome.needs_wrong = f"said to need {needs} exactly, needs more"
