"""A plan over time as Chrome's trace format, which Perfetto and chrome://tracing show.

Two tracks, the compute unit and the DMA channel, and a counter of the bytes held in the scratchpad. Times are
the plan's own; on a chip without rates every action takes one unit, one after the other, and
`otherData` says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onchip.check import Clock, clock_of, times_of
from onchip.check.ledger import Ledger
from onchip.network import bits
from onchip.plans import Alloc, Free, Join, Load, Move, Plan, Run, Scratch, Store, Timed

__all__ = ["write"]

PROCESS, COMPUTE, DMA = 1, 1, 2

UNITS = "every copy and run takes one unit, one after the other: the chip states no rates"


def write(plan: Plan, model: str | Path | None = None) -> str:
    """The trace as JSON, one event a line, sorted by start."""
    clock = clock_of(plan)
    times = None if clock is None else times_of(plan)
    unit = "picoseconds / 10^6"
    if clock is None or times is None:
        on = replace(plan.chip, dram_bytes_per_second=1.0, macs_per_second=1.0)
        clock = clock_of(replace(plan, chip=on))
        assert clock is not None
        times, unit = _one_by_one(clock.times(plan.program)), UNITS
    events = list(_events(plan, clock, times))
    events.sort(key=lambda event: (event["ts"], event["ph"] != "C"))
    names = [
        _name("process_name", 0, f"{plan.network.name} on {plan.chip.name}"),
        _name("thread_name", COMPUTE, "compute"),
        _name("thread_name", DMA, "DMA"),
    ]
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
    """The same actions, each a microsecond long."""
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
    """A range, and when it is first and last touched."""

    bytes: int
    first: int | None = None
    last: int = 0

    def touch(self, start: int, end: int) -> None:
        self.first = start if self.first is None else min(self.first, start)
        self.last = max(self.last, end)


def _events(plan: Plan, clock: Clock, times: Sequence[Timed]) -> Iterator[dict[str, Any]]:
    net = plan.network
    timed = {t.index: t for t in times}
    handed = {net.tensor_id[name] for pair in plan.state for name in (pair.input, pair.output)}
    inputs = set(bits(net.input_roots)) - handed
    ledger = Ledger(inputs, set(bits(net.output_roots)) - handed, copies=set(inputs))
    here: dict[str, _Held] = {}
    scratch: dict[str, _Held] = {}
    held: list[_Held] = []
    parts: dict[str, Sequence[str]] = {}  # concat -> operands in whose bytes it comes to lie

    def hold(where: dict[str, _Held], name: str, size: int) -> _Held:
        where[name] = _Held(plan.chip.round_up(size))
        held.append(where[name])
        return where[name]

    for pair in plan.state:
        hold(here, pair.input, clock.bytes[pair.input]).touch(0, 0)
    for index, instruction in enumerate(plan.program):
        now = timed.get(index)
        match instruction:
            case Move(name, address, memory):
                assert now is not None
                size, left = clock.bytes[name], here[name]
                left.touch(now.start, now.end)
                hold(here, name, size).touch(now.start, now.end)
                yield _event(
                    DMA, f"move {name}", "move", now.start, now.end,
                    bytes=size, address=address, memory=memory, instruction=index,
                )  # fmt: skip
            case Load(name, address, memory):
                assert now is not None
                size = clock.bytes[name]
                hold(here, name, size).touch(now.start, now.end)
                before = ledger.reload
                ledger.bring_in(net.tensor_id[name], size, size)
                kind = "reload" if ledger.reload > before else "load"
                yield _event(
                    DMA, f"{kind} {name}", kind, now.start, now.end,
                    bytes=size, address=address, instruction=index,
                    **({} if memory is None else {"memory": memory}),
                )  # fmt: skip
            case Store(name):
                assert now is not None
                size, before = clock.bytes[name], ledger.spill
                ledger.send_out(net.tensor_id[name], size, size)
                kind = "spill" if ledger.spill > before else "store"
                here[name].touch(now.start, now.end)
                yield _event(DMA, f"{kind} {name}", kind, now.start, now.end, bytes=size, instruction=index)
            case Alloc(name, _, over, by, joined):
                new = hold(here, name, clock.bytes[name])
                parts[name] = joined
                if over is not None:  # bytes of both are counted with the older one
                    old = here[over].bytes
                    new.bytes -= max(0, min(by + old, new.bytes) - max(by, 0))
            case Scratch(name, _):
                room = hold(scratch, name, clock.units[name].workspace)
                if now is not None:
                    room.touch(now.start, now.end)
                    yield _event(
                        DMA, f"weights {name}", "weights", now.start, now.end,
                        bytes=clock.kept[name], instruction=index,
                    )  # fmt: skip
            case Run(name, streaming):
                assert now is not None
                unit, operands = clock.units[name], (*clock.reads[name], *clock.writes[name])
                ends = {x for t in clock.writes[name] for x in parts.pop(t, ())}
                for t in operands:
                    if t in here:  # the bytes of parts are the concat's from now on
                        here[t].touch(now.start, now.start if t in ends else now.end)
                for t in ends:
                    del here[t]
                if name in scratch:
                    scratch.pop(name).touch(now.start, now.end)
                macs = sum(net.operators[op].work for op in unit.operators)
                yield _event(COMPUTE, name, "run", now.start, now.end, macs=macs, instruction=index)
                if now.fetched is not None:
                    crossing = clock.streamed[name] + sum(n for _, n in streaming)
                    what = "weights" if not streaming else "streaming"
                    yield _event(
                        DMA, f"{what} {name}", what, now.start, now.fetched,
                        bytes=crossing, instruction=index,
                    )  # fmt: skip
            case Join(name):
                ledger.copies.add(net.tensor_id[clock.writes[name][0]])
            case Free(name):
                del here[name]
    yield from _occupancy(held)


def _occupancy(held: Sequence[_Held]) -> Iterator[dict[str, Any]]:
    """The bytes in use, at every moment that they change."""
    change: dict[int, int] = {}
    for one in held:
        if one.first is not None:
            change[one.first] = change.get(one.first, 0) + one.bytes
            change[one.last] = change.get(one.last, 0) - one.bytes
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
