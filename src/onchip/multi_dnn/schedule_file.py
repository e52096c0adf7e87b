"""Schedules read from `onchip.schedule/1` JSON: strictly, and without trusting anything they state."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from onchip.base.codec import decode, from_wire, wire_of
from onchip.base.errors import InputError, PlanFormatError
from onchip.base.files import read_bytes
from onchip.machines.contention import NO_CONTENTION, ContentionModel, ThreeRegions
from onchip.machines.soc import SoC, Unit
from onchip.multi_dnn.compact import schedule_of_rows
from onchip.multi_dnn.content import kind_of
from onchip.multi_dnn.profile_file import profile_of
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.schedule_json import SCHEDULE_FORMAT, Claim, Rival, document_digest
from onchip.multi_dnn.schedule_record import BaselineRecord, ContentionRecord, ScheduleRecord
from onchip.multi_dnn.workload import Job, Workload

__all__ = ["StatedSchedule", "is_schedule", "read_schedule", "schedule_from_json"]


@dataclass(frozen=True, slots=True)
class StatedSchedule:
    """A schedule file: the schedule to judge, and the figures it states.

    `figures` are makespan_ms, fps, sum_of_rates and (where stated) millijoules, `latency_ms` by network, and
    `segments` the stated (start, end, transition) of every step, all in ms. `derived_bound` is stated of the
    claim's objective. `claim_sha256` is the stated digest of the file, and `digest` the actual one.
    """

    workload: Workload
    schedule: Schedule
    epsilon_ms: float
    claim: Claim
    figures: Mapping[str, float]
    latency_ms: tuple[float, ...]
    segments: Mapping[Step, tuple[float, float, float]]
    derived_bound: float | None = None
    claim_sha256: str = ""
    digest: str = ""


def is_schedule(path: Path) -> bool:
    """Return whether a file's content is a schedule, of any version, whole or not; a plan is none.

    Raises `PlanFormatError` for another kind of onchip's files.
    """
    try:
        kind = kind_of(read_bytes(path, error=PlanFormatError))
    except PlanFormatError:
        return False
    if kind in ("profile", "network"):
        raise PlanFormatError(f"is a {kind}, where a plan or a schedule is expected", where=str(path))
    return kind == "schedule"


def read_schedule(path: Path) -> StatedSchedule:
    """Return the schedule file at `path`; raises `PlanFormatError` or `ProfileError` naming file and key."""
    return schedule_from_json(read_bytes(path, error=PlanFormatError), str(path))


def schedule_from_json(content: bytes, where: str) -> StatedSchedule:
    """Return the schedule in a file's bytes, not judged yet.

    Raises `PlanFormatError` naming `where` and the key.
    """
    decoded = decode(content, wire_of(ScheduleRecord), where=where, error=PlanFormatError)
    record: ScheduleRecord = from_wire(ScheduleRecord, decoded)

    def refuse(item: str, reason: str) -> PlanFormatError:
        return PlanFormatError(reason, where=where, item=item)

    if record.format != SCHEDULE_FORMAT:
        raise refuse("format", f"is {record.format!r}; this version reads {SCHEDULE_FORMAT!r}")
    unit_id = {unit.name: n for n, unit in enumerate(record.soc.units)}
    if len(unit_id) < len(record.soc.units):
        raise refuse("soc.units", "names a unit twice")
    soc = SoC(
        record.soc.name,
        tuple(Unit(u.name, busy_watts=u.busy_watts, idle_watts=u.idle_watts) for u in record.soc.units),
        record.soc.nominal_gb_per_second,
        record.soc.peak_gb_per_second,
    )
    profiles = {
        key: profile_of(profile, f"{where}: profile {key}") for key, profile in record.profiles.items()
    }
    jobs = []
    for net in record.networks:
        if net.profile not in profiles:
            raise refuse(f"network {net.name}", f"names an unknown profile {net.profile!r}")
        jobs.append(Job(net.name, profiles[net.profile], net.iterations, net.after))
    try:
        workload = Workload(
            soc,
            tuple(jobs),
            _model(record.contention, soc, refuse),
            record.frames,
            record.pipelined,
            record.in_flight,
        )
    except InputError as problem:
        raise (
            problem if problem.where == where else refuse(problem.item or "networks", problem.reason)
        ) from None

    job_id = {job.name: n for n, job in enumerate(jobs)}
    groups = [{group.name: n for n, group in enumerate(job.profile.groups)} for job in jobs]

    def step_of(name: str, run: int, group: str, item: str) -> Step:
        if name not in job_id:
            raise refuse(item, f"names an unknown network {name!r}")
        job = job_id[name]
        if group not in groups[job]:
            raise refuse(item, f"names an unknown group {group!r} of network {name}")
        if run >= workload.runs(job):
            raise refuse(item, f"is about run {run} of network {name}, which has {workload.runs(job)}")
        return Step(job, run, groups[job][group])

    steps = sum(workload.runs(j) * len(job.profile.groups) for j, job in enumerate(jobs))
    given = sum(len(net.segments) for net in record.networks)
    if given != steps:
        raise refuse("networks", f"have {given:,} segments for {steps:,} groups to run")
    units: list[list[list[int]]] = [
        [[-1] * len(job.profile.groups) for _ in range(workload.runs(j))] for j, job in enumerate(jobs)
    ]
    segments: dict[Step, tuple[float, float, float]] = {}
    for net in record.networks:
        for segment in net.segments:
            item = f"network {net.name}, run {segment.run}, group {segment.group}"
            step = step_of(net.name, segment.run, segment.group, item)
            if segment.unit not in unit_id:
                raise refuse(item, f"names an unknown unit {segment.unit!r}")
            if step in segments:
                raise refuse(item, "is given twice")
            units[step.job][step.run][step.group] = unit_id[segment.unit]
            segments[step] = (segment.start_ms, segment.end_ms, segment.transition_ms)
    for unit in record.order:
        if unit not in unit_id:
            raise refuse("order", f"names an unknown unit {unit!r}")
    schedule = Schedule(
        tuple(tuple(map(tuple, rows)) for rows in units),
        tuple(
            tuple(step_of(*row, item=f"order of {name}") for row in record.order.get(name, ()))
            for name in unit_id
        ),
        tuple((step_of(name, run, group, "idle"), ms) for name, run, group, ms in record.idle),
    )
    result = record.result
    figures = {"makespan_ms": result.makespan_ms, "fps": result.fps, "sum_of_rates": result.sum_of_rates}
    if result.millijoules is not None:
        figures["millijoules"] = result.millijoules
    rivals = tuple(_rival(workload, name, stated, refuse) for name, stated in result.baselines.items())
    claim = Claim(result.claim, result.objective, result.bound, result.seconds, rivals, record.contention.set)
    latency = tuple(net.latency_ms for net in record.networks)
    return StatedSchedule(
        workload,
        schedule,
        record.epsilon_ms,
        claim,
        figures,
        latency,
        segments,
        result.derived_bound,
        result.claim_sha256,
        document_digest(json.loads(content)) if result.claim_sha256 else "",
    )


def _rival(
    workload: Workload, name: str, record: BaselineRecord, refuse: Callable[[str, str], PlanFormatError]
) -> Rival:
    item = f"result.baselines.{name}"
    return Rival(
        name, schedule_of_rows(workload, record.order, lambda reason: refuse(item, reason)), record.value
    )


def _model(
    record: ContentionRecord, soc: SoC, refuse: Callable[[str, str], PlanFormatError]
) -> ContentionModel:
    constants = record.units or {}
    for name in constants:
        if name not in soc.unit_names:
            raise refuse("contention", f"names an unknown unit {name!r}")
    if record.model == "none":
        return NO_CONTENTION
    for unit in soc.unit_names:
        if unit not in constants:
            raise refuse("contention", f"has no constants for unit {unit}")
    return ThreeRegions(tuple(constants[unit] for unit in soc.unit_names), record.peak_gb_per_second or 1.0)
