"""`onchip.timeline/1`: each group's unit and times, as flat rows of JSON, one a line. Times in ms.

A schedule file (`onchip.schedule/1`) has the profiles and can be judged again; this has only the input of
a user's own runtime. docs/corun-use.md lists the keys.
"""

from __future__ import annotations

import json
from typing import Any

from onchip.multi_dnn.judged import Judged
from onchip.multi_dnn.schedule import Step

__all__ = ["FORMAT", "write"]

FORMAT = "onchip.timeline/1"


def write(made: Judged) -> str:
    """Return the JSON object; rows are in the order in which the groups begin."""
    workload, line = made.workload, made.timeline
    turn = {step: n for row in made.schedule.order for n, step in enumerate(row)}
    idle = dict(made.schedule.idle_ms)
    head: dict[str, Any] = {
        "format": FORMAT,
        "soc": workload.soc.name,
        "units": list(workload.soc.unit_names),
        "frames": workload.frames,
        "pipelined": workload.pipelined,
        "makespan_ms": line.makespan_ms,
        "networks": [
            {"name": job.name, "iterations": job.iterations, "after": list(job.after)}
            for job in workload.jobs
        ],
    }
    rows = []
    for s in line.segments:
        job = workload.jobs[s.step.job]
        group = job.profile.groups[s.step.group]
        rows.append(
            {
                "network": job.name,
                "run": s.step.run,
                "group": group.name,
                "unit": workload.soc.units[s.unit].name,
                "turn": turn[s.step],
                "start_ms": s.start,
                "end_ms": s.end,
                "transition_ms": s.transition_ms,
                "idle_before_ms": idle.get(Step(*s.step), 0.0),
                "layers": list(group.layers),
                "output": group.output,
            }
        )
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    body = ",\n  ".join(json.dumps(row) for row in rows)
    return "{\n" + ",\n".join(lines) + f',\n "groups": [\n  {body}\n ]\n}}\n'
