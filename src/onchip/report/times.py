"""The times of a plan: how long an inference takes, and how much of its copies runs hide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from onchip.check.nest_clock import nest_clock_of
from onchip.check.nest_times import Totals
from onchip.plans import Load, Move, Plan, Run, Store
from onchip.report.nest_bars import nest_bars
from onchip.report.steps import Crossing, Timeline
from onchip.report.wording import short_time, visible

__all__ = ["Times", "bars", "rows", "sentence", "times"]

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Times:
    """Picoseconds of a plan whose chip has rates.

    `computing` is the time with an operator running, `copying` that of every DMA channel; `both` the time
    with both, None for nests, whose copies run beside the steps of one group. `stalls` are the longest waits
    of an operator, or of the steps of a group, for its data, as (name, picoseconds), longest first.
    """

    latency: int
    bound: int | None
    computing: int
    copying: tuple[int, ...]
    both: int | None
    stalls: tuple[tuple[str, int], ...]


def times(plan: Plan) -> Times | None:
    """Return the times that the plan states, None where it states none."""
    latency = plan.result.latency_picoseconds
    if not plan.timing or latency is None:
        return None
    nests = _nests(plan)
    stalls = []
    ended = 0
    for timed in plan.timing:
        instruction = plan.program[timed.index]
        if isinstance(instruction, Run):
            inside = timed.end - max(timed.start, ended) - nests[timed.index].running if nests else 0
            wait = max(0, timed.start - ended) + max(0, inside)
            if wait:
                stalls.append((instruction.operator, wait))
            ended = max(ended, timed.end)
    longest = tuple(sorted(stalls, key=lambda row: -row[1]))
    bound = plan.result.latency_lower_bound_picoseconds
    if nests:
        running = sum(totals.running for totals in nests.values())
        return Times(latency, bound, running, _channels(plan, nests.values()), None, longest)
    runs, copies = _lanes(plan)
    return Times(latency, bound, _length(runs), (_length(copies),), _shared(runs, copies), longest)


def _nests(plan: Plan) -> dict[int, Totals]:
    """Return what the steps and transfers of every run take, by instruction; nothing on a chip without rates
    of tiles, whose times are not those of nests."""
    if plan.chip.tiles is None:
        return {}
    clock = nest_clock_of(plan)
    clock.times()
    return clock.totals()


def _channels(plan: Plan, nests: Iterable[Totals]) -> tuple[int, ...]:
    """Return the picoseconds of every channel's transfers, copies of whole tensors included."""
    tiles = plan.chip.tiles
    assert tiles is not None
    busy = [0] * len(tiles.channels)
    for totals in nests:
        busy = [a + b for a, b in zip(busy, totals.busy, strict=True)]
    for timed in plan.timing:
        step = plan.program[timed.index]
        if isinstance(step, Load | Store):
            busy[tiles.first("loads" if isinstance(step, Load) else "stores")] += timed.end - timed.start
    return tuple(busy)


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
    """Return the page's lanes, and (lane, start, end, name, kind, step, bytes) of every run and copy.

    Times are in picoseconds. Lane 0 are the operators, lane 1 the DMA channel; of nests see `nest_bars`. None
    for a plan that states no times.
    """
    latency = plan.result.latency_picoseconds
    if not plan.timing or not latency:
        return None
    if plan.chip.tiles is not None:
        return nest_bars(plan, {timed.index: line.step_at(timed.index) for timed in plan.timing})
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
    lanes = ["Operators", "Copies" if plan.chip.memories else "DRAM copies"]
    return {"latency": latency, "nests": False, "lanes": lanes, "bars": sorted(found)}


def rows(found: Times) -> list[tuple[str, str]]:
    """Return (time, description) for a table."""
    hidden = ""
    if found.both is not None and found.copying[0]:
        hidden = f", {100 * found.both / found.copying[0]:.0f} % of it while an operator runs"
    result = [
        (short_time(found.latency), f"one inference{_gap(found)}"),
        (short_time(found.computing), "operators run"),
        *(
            (short_time(busy), f"DRAM copies{_channel(found, n)}{hidden}")
            for n, busy in enumerate(found.copying)
        ),
    ]
    if found.both is None:
        result.append((short_time(found.latency - found.computing), "no operator runs"))
    if found.stalls:
        name, wait = found.stalls[0]
        rest = len(found.stalls) - 1
        more = f"; {rest:,} more {'wait' if rest > 1 else 'waits'}" if rest else ""
        result.append((short_time(wait), f"longest wait: {visible(name)} for its data{more}"))
    return result


def sentence(found: Times) -> str:
    """Return a plain sentence on what bounds the latency."""
    share = 100 * found.computing / found.latency if found.latency else 100
    most = max(found.copying)
    copying = 100 * most / found.latency if found.latency else 0
    by = "its operators" if found.computing >= most else "its DRAM copies"
    return (
        f"One inference takes {short_time(found.latency)}{_gap(found)}, bound by {by}:"
        f" operators run {share:.0f} % of the time,"
        f" DRAM copies{_channel(found, found.copying.index(most))} go on {copying:.0f} %."
    )


def _channel(found: Times, n: int) -> str:
    """Return which channel, where there are several."""
    return f" through channel {n}" if len(found.copying) > 1 else ""


def _gap(found: Times) -> str:
    if found.bound is None:
        return ""
    if found.bound == found.latency:
        return ", proven least"
    return f", no plan takes less than {short_time(found.bound)}"


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
