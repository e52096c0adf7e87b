"""The bars of the page's timeline for a plan of nests: groups, steps, and every channel.

Turns that repeat the one before are one bar, with their number and period: before it stand the first turns,
behind it the last. What is too short to be seen beside its neighbours is drawn together with these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from onchip.check.nest_clock import nest_times_of
from onchip.check.nest_times import Timeline as NestTimeline
from onchip.plans import Load, Plan, Run, Store
from onchip.report.wording import short_time, visible

__all__ = ["nest_bars"]

GROUPS, STEPS, CHANNEL = 0, 1, 2
"""The numbers of the lanes; of the channels the first."""

FINEST = 4_000
"""Bars of a lane within one part in so many of the whole time are drawn as one."""

Bar = tuple[int, int, int, str, str, int, int]
"""Lane, start, end, name, kind, step, bytes."""


def nest_bars(plan: Plan, at_step: dict[int, int]) -> dict[str, Any]:
    """Return the lanes' names and all bars, times in picoseconds.

    `plan` has times by the law of nests; `at_step` gives the step of the schedule for every instruction.
    """
    tiles = plan.chip.tiles
    latency = plan.result.latency_picoseconds
    assert tiles is not None
    assert latency is not None
    several = len(tiles.channels) > 1
    channels = [f"Channel {n}" if several else "DRAM copies" for n in range(len(tiles.channels))]
    every = list(_bars(plan, at_step))
    bars = [bar for lane in range(CHANNEL + len(channels)) for bar in _together(every, lane, latency)]
    return {
        "latency": latency,
        "nests": True,
        "lanes": ["Groups", "Steps", *channels],
        "bars": sorted(
            bar for lane in range(CHANNEL + len(channels)) for bar in _together(bars, lane, latency)
        ),
    }


def _bars(plan: Plan, at_step: dict[int, int]) -> Iterator[Bar]:
    tiles, line = plan.chip.tiles, NestTimeline()
    assert tiles is not None
    times = nest_times_of(plan, timeline=line)
    runs = [index for index, step in enumerate(plan.program) if isinstance(step, Run)]
    steps = [at_step[index] for index in runs]
    size = {t.name: t.bytes for t in plan.network.tensors}
    for timed in times:
        step = plan.program[timed.index]
        at = at_step[timed.index]
        if isinstance(step, Run):
            yield GROUPS, timed.start, timed.end, visible(step.operator), "group", at, 0
        elif isinstance(step, Load | Store):
            loads = isinstance(step, Load)
            lane, kind = CHANNEL + tiles.first("loads" if loads else "stores"), "fetch" if loads else "store"
            yield lane, timed.start, timed.end, visible(step.tensor), kind, at, size[step.tensor]
    for group, operator, start, end in line.steps:
        yield STEPS, start, end, visible(operator), "run", steps[group], 0
    for group, buffer, stored, channel, start, end, moved in line.transfers:
        kind = "store" if stored else "fetch"
        yield CHANNEL + channel, start, end, visible(buffer), kind, steps[group], moved
    for fold in line.folds:
        end = fold.start + fold.count * fold.period
        name = f"{fold.count:,} more turns of {short_time(fold.period)}"
        for lane in range(STEPS, CHANNEL + len(tiles.channels)):
            yield lane, fold.start, end, name, "period", steps[fold.group], 0


def _together(bars: Iterable[Bar], lane: int, latency: int) -> Iterator[Bar]:
    """Yield the bars of a lane, those that nobody can tell apart as one."""
    found = sorted(bar for bar in bars if bar[0] == lane)
    most = latency // FINEST
    at = 0
    while at < len(found):
        behind = at + 1
        while behind < len(found) and found[behind][2] - found[at][1] <= most:
            behind += 1
        some = found[at:behind]
        at = behind
        if len(some) == 1:
            yield some[0]
            continue
        kinds = {bar[4] for bar in some}
        kind = some[0][4] if len(kinds) == 1 else "several"
        start, end, moved = some[0][1], max(bar[2] for bar in some), sum(bar[6] for bar in some)
        yield lane, start, end, f"{len(some):,} from {some[0][3]} on", kind, some[0][5], moved
