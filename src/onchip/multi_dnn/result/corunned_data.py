"""A judged schedule of several networks as `--json` prints it. All times in ms."""

from __future__ import annotations

from typing import Any

from onchip.base.figures import data
from onchip.multi_dnn.idle import idle_times
from onchip.multi_dnn.judged import Judged
from onchip.multi_dnn.losses import losses
from onchip.multi_dnn.report.words import idle_reason
from onchip.multi_dnn.timeline import Segment

__all__ = ["judged_data"]


def judged_data(made: Judged) -> dict[str, Any]:
    """Return the judge's figures and the claims: the keys that every schedule has."""
    workload, line, claim = made.workload, made.timeline, made.claim
    by_job: list[list[Segment]] = [[] for _ in workload.jobs]
    for s in line.segments:
        by_job[s.step.job].append(s)
    return {
        "soc": workload.soc.name,
        "contention": claim.contention_set,
        "frames": workload.frames,
        "pipelined": workload.pipelined,
        "in_flight": workload.in_flight,
        "epsilon_ms": made.epsilon_ms,
        "overlaps": line.overlaps,
        "objective": claim.objective,
        "makespan_ms": line.makespan_ms,
        "fps": line.fps,
        "sum_of_rates": line.sum_of_rates,
        "millijoules": line.millijoules,
        "busy_ms": dict(zip(workload.soc.unit_names, line.busy_ms, strict=True)),
        "networks": [
            {
                "name": job.name,
                "iterations": job.iterations,
                "after": list(job.after),
                "profile": {
                    "network": job.profile.network,
                    "soc": job.profile.soc,
                    "source": job.profile.source,
                    "synthetic": job.profile.synthetic,
                    "rounds": job.profile.rounds,
                    "undisturbed": job.profile.undisturbed,
                },
                **data(lost, {}),
                "segments": [_segment(made, s) for s in sorted(by_job[j], key=lambda s: s.step)],
            }
            for j, (job, lost) in enumerate(zip(workload.jobs, losses(line), strict=True))
        ],
        "idle": [
            {
                "unit": workload.soc.units[one.unit].name,
                "start": one.start,
                "end": one.end,
                "why": idle_reason(made, one),
            }
            for one in idle_times(made.schedule, line)
        ],
        "class": claim.claim,
        "bound": claim.bound,
        "derived_bound": made.derived_bound,
        "baselines": {rival.name: rival.value for rival in claim.rivals},
        "seconds": claim.seconds,
    }


def _segment(made: Judged, s: Segment) -> dict[str, Any]:
    job = made.workload.jobs[s.step.job]
    return {
        "run": s.step.run,
        "group": job.profile.groups[s.step.group].name,
        "unit": made.workload.soc.units[s.unit].name,
        "start": s.start,
        "end": s.end,
        "ready": s.ready,
        "transition": s.transition_ms,
        "pieces": [{"start": p.start, "end": p.end, "slowdown": p.slowdown} for p in s.pieces],
    }
