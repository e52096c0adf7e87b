"""A schedule over time as Chrome's trace format, which Perfetto and chrome://tracing show.

The trace has a track for every unit, an arrow for every change of units, and a counter of the speed that each
unit loses to the others' use of the memory. Times are the judge's, in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from onchip.multi_dnn.judged import Judged
from onchip.multi_dnn.schedule import Step

__all__ = ["write"]

PROCESS = 1


def write(made: Judged) -> str:
    """Return the trace as JSON, one event a line, sorted by start."""
    workload = made.workload
    events = sorted(_events(made), key=lambda e: (e["ts"], e["ph"] != "C"))
    who = " + ".join(job.name for job in workload.jobs)
    names = [_name("process_name", 0, f"{who} on {workload.soc.name}")]
    names += [_name("thread_name", u + 1, unit.name) for u, unit in enumerate(workload.soc.units)]
    rows = ",\n  ".join(json.dumps(event) for event in [*names, *events])
    other = {
        "networks": [job.name for job in workload.jobs],
        "soc": workload.soc.name,
        "contention": made.claim.contention_set,
        "makespan_ms": made.timeline.makespan_ms,
    }
    return (
        f'{{"displayTimeUnit": "ms",\n "otherData": {json.dumps(other)},\n "traceEvents": [\n  {rows}\n ]}}\n'
    )


def _name(kind: str, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": PROCESS, "tid": thread, "name": kind, "args": {"name": name}}


def _events(made: Judged) -> Iterator[dict[str, Any]]:
    workload, line = made.workload, made.timeline
    at = {s.step: s for s in line.segments}
    for n, s in enumerate(line.segments):
        job = workload.jobs[s.step.job]
        group = job.profile.groups[s.step.group]
        here = {"pid": PROCESS, "tid": s.unit + 1}
        yield {
            "ph": "X",
            **here,
            "name": f"{job.name} {group.name}",
            "cat": "group",
            "ts": s.start * 1000,
            "dur": (s.end - s.start) * 1000,
            "args": {
                "network": job.name,
                "run": s.step.run,
                "group": group.name,
                "alone_ms": group.ms[s.unit],
                "gb_per_second": group.gb_per_second[s.unit],
                "waited_ms": s.start - s.ready,
                "transition_ms": s.transition_ms,
            },
        }
        unit = workload.soc.units[s.unit].name
        for p in s.pieces:
            yield _lost(unit, p.start, 1 - 1 / p.slowdown)
        yield _lost(unit, s.end, 0.0)
        after = at.get(Step(s.step.job, s.step.run, s.step.group + 1))
        if after is not None and after.unit != s.unit:
            flow = {"cat": "transition", "name": "change of units", "id": n + 1}
            yield {"ph": "s", **here, **flow, "ts": s.end * 1000}
            yield {
                "ph": "f",
                "bp": "e",
                "pid": PROCESS,
                "tid": after.unit + 1,
                **flow,
                "ts": after.start * 1000,
            }


def _lost(unit: str, ms: float, share: float) -> dict[str, Any]:
    return {
        "ph": "C",
        "pid": PROCESS,
        "name": f"{unit}: speed lost",
        "ts": ms * 1000,
        "args": {"percent": round(100 * share, 6)},
    }
