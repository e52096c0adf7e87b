"""The times of a plan: how long an inference takes, and how much of its copies runs hide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from onchip.check.nest_clock import occupied_of
from onchip.plans import Load, Move, Plan, Run, Store
from onchip.report.steps import Crossing, Timeline
from onchip.report.wording import visible

__all__ = ["Times", "bars", "rows", "sentence", "short_time", "times"]

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Times:
    """Picoseconds of a plan whose chip has rates.

    `computing` is the time with an operator running, `copying` with a busy DMA channel, `both` with both;
    `stalls` are the longest waits of an operator for its data, as (operator, picoseconds), longest first. On
    a chip with rates of tiles `computing` are the steps of all nests, `channels` the transfers of each
    channel, `copying` those of the busiest one; `both` and `stalls` are not known.
    """

    latency: int
    bound: int | None
    computing: int
    copying: int
    both: int
    stalls: tuple[tuple[str, int], ...]
    channels: tuple[int, ...] = ()


def times(plan: Plan) -> Times | None:
    """Return the times that the plan states, None where it states none."""
    latency = plan.result.latency_picoseconds
    if not plan.timing or latency is None:
        return None
    bound = plan.result.latency_lower_bound_picoseconds
    if plan.chip.tiles is not None:
        stepping, channels = occupied_of(plan)
        return Times(latency, bound, stepping, max(channels), 0, (), channels)
    runs, copies = _lanes(plan)
    stalls = []
    ended = 0
    for timed in plan.timing:
        instruction = plan.program[timed.index]
        if isinstance(instruction, Run):
            if timed.start > ended:
                stalls.append((instruction.operator, timed.start - ended))
            ended = timed.end
    return Times(
        latency,
        bound,
        _length(runs),
        _length(copies),
        _shared(runs, copies),
        tuple(sorted(stalls, key=lambda row: -row[1])),
    )


def _lanes(plan: Plan) -> tuple[list[Interval], list[Interval]]:
    """Return the intervals in which operators run, and those of the busy DMA channel, ascending."""
    runs: list[Interval] = []
    copies: list[Interval] = []
    for timed in plan.timing:
        if isinstance(plan.program[timed.index], Run):
            runs.append((timed.start, timed.end))
            if timed.fetched is not None:
                copies.append((timed.start, timed.fetched))
        else:
            copies.append((timed.start, timed.end))
    return runs, copies


def bars(plan: Plan, line: Timeline) -> dict[str, Any] | None:
    """Return the page's bars: (lane, start, end, name, kind, step, bytes) of every run and copy.

    Times are in picoseconds. Lane 0 are the operators, lane 1 the DMA channel. None for a plan that states no
    times.
    """
    latency = plan.result.latency_picoseconds
    if not plan.timing or not latency:
        return None
    crossed: dict[int, list[Crossing]] = {}
    for c in line.crossings:
        crossed.setdefault(c.instruction, []).append(c)
    size = {t.name: t.bytes for t in plan.network.tensors}
    found: list[tuple[int, int, int, str, str, int, int]] = []
    for timed in plan.timing:
        instruction, of = plan.program[timed.index], line.step_at(timed.index)
        moved = crossed.get(timed.index, [])
        n = sum(c.bytes for c in moved)
        if isinstance(instruction, Run):
            name = visible(instruction.operator)
            found.append((0, timed.start, timed.end, name, "run", of, 0))
            if timed.fetched is not None:
                n += line.steps[of].traffic.weights
                found.append((1, timed.start, timed.fetched, name, "stream", of, n))
        elif isinstance(instruction, Move):
            n = size[instruction.tensor]
            found.append((1, timed.start, timed.end, visible(instruction.tensor), "move", of, n))
        elif isinstance(instruction, Load | Store):
            kind = moved[0].kind.partition("_")[0] if moved else "reload"
            found.append((1, timed.start, timed.end, visible(instruction.tensor), kind, of, n))
    return {"latency": latency, "bars": sorted(found)}


def rows(found: Times) -> list[tuple[str, str]]:
    """Return (time, description) for a table."""
    if found.channels:
        return [
            (short_time(found.latency), f"one inference{_gap(found)}"),
            (short_time(found.computing), "operators run, step by step"),
            *(
                (short_time(busy), f"DRAM transfers{f' of channel {n}' if len(found.channels) > 1 else ''}")
                for n, busy in enumerate(found.channels)
            ),
        ]
    hidden = (
        f", {100 * found.both / found.copying:.0f} % of it while an operator runs" if found.copying else ""
    )
    result = [
        (short_time(found.latency), f"one inference{_gap(found)}"),
        (short_time(found.computing), "operators run"),
        (short_time(found.copying), f"DRAM copies{hidden}"),
    ]
    if found.stalls:
        name, wait = found.stalls[0]
        rest = len(found.stalls) - 1
        more = f"; {rest:,} more {'wait' if rest > 1 else 'waits'}" if rest else ""
        result.append((short_time(wait), f"longest wait: {visible(name)} for its data{more}"))
    return result


def sentence(found: Times) -> str:
    """Return a plain sentence on what bounds the latency."""
    share = 100 * found.computing / found.latency if found.latency else 100
    copying = 100 * found.copying / found.latency if found.latency else 0
    by = "its operators" if found.computing >= found.copying else "its DRAM copies"
    one = "" if len(found.channels) < 2 else " in the busiest channel"
    return (
        f"One inference takes {short_time(found.latency)}{_gap(found)}, bound by {by}:"
        f" operators run {share:.0f} % of the time, DRAM copies go on {copying:.0f} %{one}."
    )


def _gap(found: Times) -> str:
    if found.bound is None:
        return ""
    if found.bound == found.latency:
        return ", proven least"
    return f", no plan takes less than {short_time(found.bound)}"


def short_time(picoseconds: int) -> str:
    """Return the time in a short unit: `1.23 ms`."""
    for unit, size in (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3)):
        if picoseconds >= size:
            return (
                f"{picoseconds / size:.3g} {unit}"
                if picoseconds < 999.5 * size
                else f"{picoseconds / size:,.0f} {unit}"
            )
    return f"{picoseconds} ps"


def _length(intervals: Iterable[Interval]) -> int:
    return sum(end - start for start, end in intervals)


def _shared(first: list[Interval], second: list[Interval]) -> int:
    """Return the total overlap of two lists of intervals, each ascending and without overlaps."""
    total = i = j = 0
    while i < len(first) and j < len(second):
        start, end = max(first[i][0], second[j][0]), min(first[i][1], second[j][1])
        total += max(0, end - start)
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return total
