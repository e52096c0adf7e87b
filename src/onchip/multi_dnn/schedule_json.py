"""Schedules written as `onchip.schedule/1` JSON: everything that the judge needs, and the claims.

The file holds the profiles, the SoC's units, the contention model's constants, the networks with the unit and
the times of every group, each unit's order, the figures, and the schedules beside it whole. The file alone
suffices to judge all of it again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from onchip.base.codec import to_object
from onchip.base.errors import PlanFormatError
from onchip.machines.contention import ContentionModel, NoContention, ThreeRegions
from onchip.machines.soc import SoC
from onchip.multi_dnn.compact import compact_rows
from onchip.multi_dnn.derived_bound import derived_bound
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.profile_file import record_of
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.schedule_record import (
    BaselineRecord,
    ContentionRecord,
    NetworkRecord,
    ResultRecord,
    ScheduleRecord,
    SegmentRecord,
    SoCRecord,
    UnitRecord,
)
from onchip.multi_dnn.timeline import Figure, Segment, Timeline
from onchip.multi_dnn.workload import Job

__all__ = ["SCHEDULE_FORMAT", "Claim", "Rival", "document_digest", "schedule_json"]

SCHEDULE_FORMAT = "onchip.schedule/1"


@dataclass(frozen=True, slots=True)
class Rival:
    """A schedule of the same workload that another one is compared with, and its objective's `value`.

    Rivals have no inserted waits; `idle_ms` of the schedule is not written.
    """

    name: str
    schedule: Schedule
    value: float


@dataclass(frozen=True, slots=True)
class Claim:
    """A solver's claim about its schedule.

    `claim` is the class of the result (`onchip.multi_dnn.classes`), `objective` its objective
    (a `timeline.Figure`), `bound` a bound of any schedule, in the objective's unit, `rivals` the
    schedules beside it, `contention_set` the model's name. The judge derives the rivals' values; of class and
    bound it can only detect contradictions with themselves or others.
    """

    claim: str = ""
    objective: str = "makespan_ms"
    bound: float | None = None
    seconds: float | None = None
    rivals: tuple[Rival, ...] = ()
    contention_set: str = ""

    @property
    def figure(self) -> Figure | None:
        """The objective, None for one that this version does not know."""
        return Figure.named(self.objective)


def schedule_json(
    schedule: Schedule, timeline: Timeline, *, epsilon_ms: float = 0.0, claim: Claim | None = None
) -> str:
    """Return the schedule with its `timeline` as `onchip.schedule/1`.

    Raises `PlanFormatError` when the workload's contention model is none that a file can hold.
    """
    claim = claim or Claim()
    workload = timeline.workload
    soc, jobs = workload.soc, workload.jobs
    profiles: dict[str, Profile] = {}
    keys = []
    for job in jobs:
        key = next((k for k, p in profiles.items() if p == job.profile), "")
        if not key:
            key = (
                job.profile.network
                if job.profile.network not in profiles
                else f"{job.profile.network} for {job.name}"
            )
            while key in profiles:
                key += "'"
            profiles[key] = job.profile
        keys.append(key)
    by_job: list[list[Segment]] = [[] for _ in jobs]
    for segment in timeline.segments:
        by_job[segment.step.job].append(segment)

    def named(step: Step) -> tuple[str, int, str]:
        return jobs[step.job].name, step.run, jobs[step.job].profile.groups[step.group].name

    def record_of_segment(job: Job, s: Segment) -> SegmentRecord:
        group, unit = job.profile.groups[s.step.group].name, soc.units[s.unit].name
        return SegmentRecord(s.step.run, group, unit, s.start, s.end, s.transition_ms)

    record = ScheduleRecord(
        format=SCHEDULE_FORMAT,
        soc=SoCRecord(
            soc.name,
            soc.nominal_gb_per_second,
            soc.peak_gb_per_second,
            tuple(UnitRecord(u.name, u.busy_watts, u.idle_watts) for u in soc.units),
        ),
        contention=_contention(workload.model, soc, claim.contention_set),
        frames=workload.frames,
        pipelined=workload.pipelined,
        in_flight=workload.in_flight,
        epsilon_ms=epsilon_ms,
        profiles={key: record_of(profile) for key, profile in profiles.items()},
        networks=tuple(
            NetworkRecord(
                name=job.name,
                profile=key,
                iterations=job.iterations,
                after=job.after,
                latency_ms=latency,
                segments=tuple(record_of_segment(job, s) for s in sorted(segments, key=lambda s: s.step)),
            )
            for job, key, latency, segments in zip(jobs, keys, timeline.latency_ms, by_job, strict=True)
        ),
        order={
            unit.name: tuple(map(named, steps)) for unit, steps in zip(soc.units, schedule.order, strict=True)
        },
        idle=tuple((*named(step), ms) for step, ms in schedule.idle_ms),
        result=ResultRecord(
            timeline.makespan_ms,
            timeline.fps,
            timeline.sum_of_rates,
            timeline.millijoules,
            claim.claim,
            claim.objective,
            claim.bound,
            derived_bound(workload, claim.objective, epsilon_ms),
            claim.seconds,
            {r.name: BaselineRecord(r.value, compact_rows(workload, r.schedule)) for r in claim.rivals},
        ),
    )
    document = to_object(record)
    document["result"]["claim_sha256"] = document_digest(json.loads(json.dumps(document)))
    return json.dumps(document, indent=1)


def document_digest(document: Any) -> str:
    """Return the SHA-256, in hex, of a schedule file without its search time and the digest itself.

    It binds the claims to the content that they are about; it is no signature.
    """
    kept = {k: v for k, v in document["result"].items() if k not in ("seconds", "claim_sha256")}
    text = json.dumps({**document, "result": kept}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _contention(model: ContentionModel, soc: SoC, name: str) -> ContentionRecord:
    if isinstance(model, NoContention):
        return ContentionRecord("none", name or "none")
    if not isinstance(model, ThreeRegions):
        raise PlanFormatError(
            f"a schedule under the contention model {type(model).__name__} cannot be written;"
            " only three-regions and none can"
        )
    rows = dict(zip(soc.unit_names, model.units, strict=True))
    return ContentionRecord("three-regions", name, model.peak, rows)
