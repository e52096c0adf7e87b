"""Where the time goes: how long an inference takes, and how much of its copies runs hide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onchip.plan import Plan, Run
from onchip.report.wording import visible

__all__ = ["Times", "drawn", "rows", "sentence", "short_time", "times"]

Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Times:
    """Picoseconds of a plan whose chip has rates.

    `computing` is while an operator runs, `copying` while the DMA channel is busy, `both` while both are;
    `stalls` are the longest waits of an operator for its data, as (operator, picoseconds), longest first.
    """

    latency: int
    bound: int | None
    computing: int
    copying: int
    both: int
    stalls: tuple[tuple[str, int], ...]


def times(plan: Plan) -> Times | None:
    """The times that the plan states, None where it states none."""
    latency = plan.result.latency_picoseconds
    if not plan.timing or latency is None:
        return None
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
        plan.result.latency_lower_bound_picoseconds,
        _length(runs),
        _length(copies),
        _shared(runs, copies),
        tuple(sorted(stalls, key=lambda row: -row[1])),
    )


def _lanes(plan: Plan) -> tuple[list[Interval], list[Interval]]:
    """When operators run, and when the DMA channel is busy, ascending."""
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


def drawn(plan: Plan) -> list[tuple[str, str]]:
    """Each lane's name and its SVG path, 1000 wide and 10 high; what touches within a pixel is one bar."""
    latency = plan.result.latency_picoseconds
    if not plan.timing or not latency:
        return []
    result = []
    for name, lane in zip(("compute", "DRAM copies"), _lanes(plan), strict=True):
        bars: list[list[float]] = []
        for start, end in lane:
            left, right = 1000 * start / latency, 1000 * end / latency
            if bars and left - bars[-1][1] < 0.5:
                bars[-1][1] = max(bars[-1][1], right)
            elif end > start:
                bars.append([left, right])
        result.append((name, "".join(f"M{a:.1f} 0H{max(b, a + 0.3):.1f}V10H{a:.1f}Z" for a, b in bars)))
    return result


def rows(found: Times) -> list[tuple[str, str]]:
    """(time, what it is) for a table."""
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
    """What bounds the latency, in a plain sentence."""
    share = 100 * found.computing / found.latency if found.latency else 100
    copying = 100 * found.copying / found.latency if found.latency else 0
    by = "its operators" if found.computing >= found.copying else "its DRAM copies"
    return (
        f"One inference takes {short_time(found.latency)}{_gap(found)}, bound by {by}:"
        f" operators run {share:.0f} % of the time, DRAM copies go on {copying:.0f} %."
    )


def _gap(found: Times) -> str:
    if found.bound is None:
        return ""
    if found.bound == found.latency:
        return ", proven least"
    return f", no plan takes less than {short_time(found.bound)}"


def short_time(picoseconds: int) -> str:
    """`1.23 ms`."""
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
    """How long an interval of either list goes on at once; each list is ascending and without overlaps."""
    total = i = j = 0
    while i < len(first) and j < len(second):
        start, end = max(first[i][0], second[j][0]), min(first[i][1], second[j][1])
        total += max(0, end - start)
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return total
