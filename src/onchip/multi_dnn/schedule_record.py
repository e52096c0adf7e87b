"""A file `onchip.schedule/1`, key by key: writer and reader are made of these records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec

from onchip.base.fields import WRITTEN, in_order, wire, without_nulls
from onchip.machines.contention import Contention
from onchip.multi_dnn.profile_file import ProfileRecord

__all__ = [
    "BaselineRecord",
    "ContentionRecord",
    "NetworkRecord",
    "ResultRecord",
    "ScheduleRecord",
    "SegmentRecord",
    "SoCRecord",
    "UnitRecord",
]

Amount = Annotated[float, msgspec.Meta(ge=0, lt=1e15)]
Positive = Annotated[float, msgspec.Meta(gt=0, lt=1e15)]
Times = Annotated[int, msgspec.Meta(ge=1, le=10**6)]
Index = Annotated[int, msgspec.Meta(ge=0, le=10**12)]


@dataclass(frozen=True, slots=True)
class UnitRecord:
    """A unit: the part of `Unit` that the judge needs."""

    name: str
    busy_watts: Amount | None = field(default=None, metadata=WRITTEN)
    idle_watts: Amount | None = field(default=None, metadata=WRITTEN)


@dataclass(frozen=True, slots=True)
class SoCRecord:
    """The SoC."""

    name: str
    nominal_gb_per_second: Positive
    peak_gb_per_second: Positive
    units: Annotated[tuple[UnitRecord, ...], msgspec.Meta(min_length=1, max_length=16)]


@without_nulls
@dataclass(frozen=True, slots=True)
class ContentionRecord:
    """The contention model; `three-regions` has a peak, and the constants of every unit."""

    model: Literal["none", "three-regions"]
    set: str = field(default="", metadata=WRITTEN)
    peak_gb_per_second: Positive | None = None
    units: Mapping[str, Contention] | None = None


@dataclass(frozen=True, slots=True)
class SegmentRecord:
    """A group on its unit."""

    run: Index
    group: str
    unit: str
    start_ms: Amount
    end_ms: Amount
    transition_ms: Amount = field(default=0.0, metadata=WRITTEN)


@in_order
@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRecord:
    """A network; `profile` is a key of the file's profiles."""

    name: str
    profile: str
    iterations: Times = field(default=1, metadata=WRITTEN)
    after: tuple[str, ...] = field(default=(), metadata=WRITTEN)
    latency_ms: Amount
    segments: tuple[SegmentRecord, ...]


@dataclass(frozen=True, slots=True)
class BaselineRecord:
    """A schedule beside this one: the objective's value, and the stretches of every unit (`compact`)."""

    value: float
    order: Mapping[str, Sequence[tuple[str, Index, str, str]]]


@dataclass(frozen=True, slots=True)
class ResultRecord:
    """The figures, and what is claimed. `claim` is the key `class`."""

    makespan_ms: Amount
    fps: Amount
    sum_of_rates: Amount
    millijoules: Amount | None = field(default=None, metadata=WRITTEN)
    claim: str = field(default="", metadata=wire("class", written=True))
    objective: str = field(default="makespan_ms", metadata=WRITTEN)
    bound: float | None = field(default=None, metadata=WRITTEN)
    derived_bound: float | None = field(default=None, metadata=WRITTEN)
    seconds: Amount | None = field(default=None, metadata=WRITTEN)
    baselines: Annotated[Mapping[str, BaselineRecord], msgspec.Meta(max_length=64)] = field(
        default_factory=dict, metadata=WRITTEN
    )
    claim_sha256: str = field(default="", metadata=WRITTEN)


@in_order
@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRecord:
    """The whole file. `order` are (network, run, group) by unit, `idle` the same with the ms to wait."""

    format: str
    soc: SoCRecord
    contention: ContentionRecord
    frames: Times = field(default=1, metadata=WRITTEN)
    pipelined: bool = field(default=True, metadata=WRITTEN)
    in_flight: Annotated[int, msgspec.Meta(ge=0, le=10**6)] = field(default=0, metadata=WRITTEN)
    epsilon_ms: Amount = field(default=0.0, metadata=WRITTEN)
    profiles: Mapping[str, ProfileRecord]
    networks: tuple[NetworkRecord, ...]
    order: Mapping[str, tuple[tuple[str, Index, str], ...]]
    idle: tuple[tuple[str, Index, str, Amount], ...] = field(default=(), metadata=WRITTEN)
    result: ResultRecord
