"""A plan over time as Chrome's trace format, which Perfetto and chrome://tracing show.

The trace has two tracks, the compute unit and the DMA channel, and a counter of the bytes held in the
scratchpad. Times are the plan's own; on a chip without rates every action takes one unit, in sequence, and
`otherData` says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onchip.check import Clock, clock_of, times_of
from onchip.check.nest_clock import nest_times_of
from onchip.check.nest_times import Timeline
from onchip.check.replay import Crossed, Ran, Released, Reserved, events_of
from onchip.export.nest_trace import nest_events, nest_tracks
from onchip.plans import Plan, Timed

__all__ = ["write"]

PROCESS, COMPUTE, DMA = 1, 1, 2

UNITS = "every copy and run takes one unit, one after the other: the chip states no rates"


def write(plan: Plan, model: str | Path | None = None) -> str:
    """Return the trace as JSON, one event a line, sorted by start."""
    if plan.chip.tiles is not None and times_of(plan) is not None:
        line = Timeline()
        found = nest_times_of(plan, timeline=line)
        named = [_name("thread_name", track, name) for track, name in nest_tracks(plan).items()]
        return _written(plan, "picoseconds / 10^6", named, list(nest_events(plan, line, found)))
    clock = clock_of(plan)
    times = None if clock is None else times_of(plan)
    unit = "picoseconds / 10^6"
    if clock is None or times is None:
        on = replace(plan.chip, dram_bytes_per_second=1.0, macs_per_second=1.0)
        clock = clock_of(replace(plan, chip=on))
        assert clock is not None
        times, unit = _one_by_one(clock.times(plan.program)), UNITS
    named = [_name("thread_name", COMPUTE, "compute"), _name("thread_name", DMA, "DMA")]
    return _written(plan, unit, named, list(_events(plan, clock, times)))


def _written(plan: Plan, unit: str, named: list[dict[str, Any]], events: list[dict[str, Any]]) -> str:
    events.sort(key=lambda event: (event["ts"], event["ph"] != "C"))
    names = [_name("process_name", 0, f"{plan.network.name} on {plan.chip.name}"), *named]
    rows = ",\n  ".join(json.dumps(event) for event in [*names, *events])
    other = {
        "network": plan.network.name,
        "chip": plan.chip.name,
        "time_unit": unit,
        "latency_picoseconds": plan.result.latency_picoseconds,
        "dram_bytes": plan.result.dram_bytes,
    }
    return (
        f'{{"displayTimeUnit": "ns",\n "otherData": {json.dumps(other)},\n "traceEvents": [\n  {rows}\n ]}}\n'
    )


def _one_by_one(times: Sequence[Timed]) -> tuple[Timed, ...]:
    """Return the same actions, each a microsecond long."""
    return tuple(
        Timed(t.index, i * 10**6, (i + 1) * 10**6, None if t.fetched is None else (i + 1) * 10**6)
        for i, t in enumerate(times)
    )


def _name(kind: str, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": PROCESS, "tid": thread, "name": kind, "args": {"name": name}}


def _event(track: int, name: str, kind: str, start: int, end: int, **args: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": PROCESS,
        "tid": track,
        "name": name,
        "cat": kind,
        "ts": start / 10**6,
        "dur": (end - start) / 10**6,
        "args": args,
    }


@dataclass
class _Held:
    """A range, and the times of its first and last access."""

    bytes: int
    first: int | None = None
    last: int = 0

    def touch(self, start: int, end: int) -> None:
        self.first = start if self.first is None else min(self.first, start)
        self.last = max(self.last, end)


def _events(plan: Plan, clock: Clock, times: Sequence[Timed]) -> Iterator[dict[str, Any]]:
    timed = {t.index: t for t in times}
    held: dict[Reserved, _Held] = {}
    twice: dict[int, _Held] = {}  # by tensor: the bytes that it shares with the one that it is written over
    here: dict[int, Reserved] = {}
    parts: dict[int, Sequence[int]] = {}  # concat -> operands in whose bytes it comes to lie
    live = 0
    for event in events_of(plan):
        now = timed.get(event.index)
        match event:
            case Reserved(name=name, tensor=None):
                if event.cause == "scratch":
                    held[event] = _Held(event.bytes)
                    if now is not None:
                        held[event].touch(now.start, now.end)
                        yield _event(
                            DMA, f"weights {name}", "weights", now.start, now.end,
                            bytes=clock.kept[name], instruction=event.index,
                        )  # fmt: skip
            case Reserved(tensor=int(t)):
                here[t], held[event] = event, _Held(event.bytes)
                parts[t] = event.parts
                if event.over is not None:
                    twice[t] = _Held(live + event.bytes - event.live)
                if event.cause == "held":
                    held[event].touch(0, 0)
                elif now is not None:
                    held[event].touch(now.start, now.end)
            case Crossed(range=Reserved() as at):
                assert now is not None
                held[at].touch(now.start, now.end)
                kind = ("load" if event.inward else "store") if event.first else event.kind
                where: dict[str, Any] = {"address": at.address} if event.inward else {}
                yield _event(
                    DMA, f"{kind} {at.name}", kind, now.start, now.end,
                    bytes=event.bytes, **where, instruction=event.index,
                    **({} if at.memory is None or not event.inward else {"memory": at.memory}),
                )  # fmt: skip
            case Ran(unit=unit, joined=False):
                assert now is not None
                ends = {x for t in unit.writes for x in parts.pop(t, ())}
                for t in (*unit.reads, *unit.writes):
                    if t in here:  # the bytes of parts are the concat's from now on
                        held[here[t]].touch(now.start, now.start if t in ends else now.end)
                    if t in twice:
                        twice[t].touch(now.start, now.end)
                macs = sum(plan.network.operators[op].work for op in unit.operators)
                yield _event(
                    COMPUTE, unit.name, "run", now.start, now.end, macs=macs, instruction=event.index
                )
                if now.fetched is not None:
                    crossing = clock.streamed[unit.name] + sum(n for _, n in event.streamed)
                    what = "streaming" if event.streamed else "weights"
                    yield _event(
                        DMA, f"{what} {unit.name}", what, now.start, now.fetched,
                        bytes=crossing, instruction=event.index,
                    )  # fmt: skip
            case Released(range=left, cause="ran") if now is not None:
                held[left].touch(now.start, now.end)
            case Released(range=left, to=Reserved() as to):
                assert now is not None
                held[left].touch(now.start, now.end)
                yield _event(
                    DMA, f"move {to.name}", "move", now.start, now.end,
                    bytes=to.used, address=to.address, memory=to.memory, instruction=event.index,
                )  # fmt: skip
            case Released(range=Reserved(tensor=int(t))):
                del here[t]
        live = event.live
    yield from _occupancy([*held.values()], [*twice.values()])


def _occupancy(held: Iterable[_Held], twice: Iterable[_Held]) -> Iterator[dict[str, Any]]:
    """Yield the bytes in use at every moment that they change; those held `twice` count once."""
    change: dict[int, int] = {}
    for sign, one in (*((1, one) for one in held), *((-1, one) for one in twice)):
        if one.first is not None:
            change[one.first] = change.get(one.first, 0) + sign * one.bytes
            change[one.last] = change.get(one.last, 0) - sign * one.bytes
    total = 0
    for moment in sorted(change):
        total += change[moment]
        yield {
            "ph": "C",
            "pid": PROCESS,
            "name": "scratchpad",
            "ts": moment / 10**6,
            "args": {"bytes": total},
        }
