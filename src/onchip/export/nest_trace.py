"""The time of nests as events of Chrome's trace format: a track of steps, each channel, and repeats.

Turns that repeat the one before are not listed: an event on the last track covers them, with their number and
period. Before it stand the first turns, behind it the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onchip.check.nest_times import Timeline
from onchip.plans import Load, Plan, Run, Store, Timed

__all__ = ["nest_events", "nest_tracks"]

COMPUTE, REPEATS, CHANNEL = 1, 2, 3


def nest_tracks(plan: Plan) -> dict[int, str]:
    """Return the names of the tracks by their numbers."""
    assert plan.chip.tiles is not None
    count = len(plan.chip.tiles.channels)
    return {COMPUTE: "compute", REPEATS: "repeats"} | {CHANNEL + n: f"channel {n}" for n in range(count)}


def nest_events(plan: Plan, line: Timeline, times: tuple[Timed, ...]) -> Iterator[dict[str, Any]]:
    """Yield every step, transfer and copy that was walked, and the turns that were not."""
    tiles = plan.chip.tiles
    assert tiles is not None
    names = [step.operator for step in plan.program if isinstance(step, Run)]
    for group, operator, start, end in line.steps:
        yield _event(COMPUTE, operator, "run", start, end, group=names[group])
    for group, buffer, stored, channel, start, end, moved in line.transfers:
        kind = "store" if stored else "fetch"
        yield _event(CHANNEL + channel, f"{kind} {buffer}", kind, start, end, bytes=moved, group=names[group])
    for fold in line.folds:
        name = f"{fold.count} x {fold.period / 1000:,.3f} ns"
        end = fold.start + fold.count * fold.period
        yield _event(REPEATS, name, "period", fold.start, end, turns=fold.count, picoseconds=fold.period)
    for timed in times:
        step = plan.program[timed.index]
        if isinstance(step, Load | Store):
            kind = "load" if isinstance(step, Load) else "store"
            track = CHANNEL + tiles.first("loads" if kind == "load" else "stores")
            yield _event(
                track, f"{kind} {step.tensor}", kind, timed.start, timed.end, instruction=timed.index
            )


def _event(track: int, name: str, kind: str, start: int, end: int, **args: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": 1,
        "tid": track,
        "name": name,
        "cat": kind,
        "ts": start / 10**6,
        "dur": (end - start) / 10**6,
        "args": args,
    }
