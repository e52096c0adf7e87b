"""Profiles as files: `onchip.profile/1` JSON, and a CSV that anyone can write from a profiler's output.

A CSV has a line per layer group, in order. Columns: `group`; for every unit `UNIT_ms` (empty where the group
does not run), and where known `UNIT_gb_per_second`, `UNIT_out_ms`, `UNIT_in_ms`, `UNIT_emc_percent`. A unit
whose bandwidth is not given gets an estimate (see `onchip.multi_dnn.estimate`). `layers` (names with `;`
between them) and `output` (a tensor) are the contents of the group; exports for TensorRT need one or the
other.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

from onchip.base.codec import decode, from_wire, to_object, wire_of
from onchip.base.errors import ProfileError
from onchip.base.fields import WRITTEN, in_order, without_nulls
from onchip.base.files import read_bytes
from onchip.multi_dnn.estimate import estimate_bandwidth
from onchip.multi_dnn.profile import MAX_MS, Group, Profile

__all__ = [
    "PROFILE_FORMAT",
    "ProfileRecord",
    "load_profile",
    "profile_from_csv",
    "profile_from_json",
    "profile_json",
    "profile_of",
    "record_of",
]

PROFILE_FORMAT = "onchip.profile/1"
FIGURES = ("ms", "gb_per_second", "out_ms", "in_ms", "emc_percent")
ABOVE_NOMINAL = 1.05
"""The largest ratio to the data sheet's figure that a counter may show; a larger one is a mistake."""


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A layer group of a file; its figures are by unit."""

    name: str
    ms: Mapping[str, float | None]
    gb_per_second: Mapping[str, float] = field(default_factory=dict, metadata=WRITTEN)
    out_ms: Mapping[str, float] = field(default_factory=dict, metadata=WRITTEN)
    in_ms: Mapping[str, float] = field(default_factory=dict, metadata=WRITTEN)
    layers: tuple[str, ...] = ()
    output: str = ""


@in_order
@without_nulls
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRecord:
    """A file `onchip.profile/1`, key by key: writer and reader are made of it."""

    format: str
    network: str
    soc: str
    units: tuple[str, ...]
    source: str = field(default="", metadata=WRITTEN)
    synthetic: bool = field(default=False, metadata=WRITTEN)
    rounds: int | None = None
    undisturbed: int | None = None
    groups: tuple[GroupRecord, ...]


def profile_json(profile: Profile) -> str:
    """Return the profile as `onchip.profile/1`."""
    return json.dumps(to_object(record_of(profile)), indent=1)


def record_of(profile: Profile) -> ProfileRecord:
    """Return what a file holds of a profile."""

    def row(figures: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(profile.units, figures, strict=True))

    return ProfileRecord(
        format=PROFILE_FORMAT,
        network=profile.network,
        soc=profile.soc,
        units=profile.units,
        source=profile.source,
        synthetic=profile.synthetic,
        rounds=profile.rounds or None,
        undisturbed=profile.undisturbed if profile.rounds else None,
        groups=tuple(
            GroupRecord(
                group.name,
                row(group.ms),
                row(group.gb_per_second),
                row(group.out_ms),
                row(group.in_ms),
                group.layers,
                group.output,
            )
            for group in profile.groups
        ),
    )


def profile_from_json(content: bytes, where: str, nominal_gb_per_second: float = inf) -> Profile:
    """Return the profile in an `onchip.profile/1` file; raises `ProfileError` naming `where` and why."""
    wire = decode(content, wire_of(ProfileRecord), where=where, error=ProfileError)
    return profile_of(from_wire(ProfileRecord, wire), where, nominal_gb_per_second)


def profile_of(record: ProfileRecord, where: str, nominal_gb_per_second: float = inf) -> Profile:
    """Return the validated profile; raises `ProfileError` naming `where` and the key or group."""
    if record.format != PROFILE_FORMAT:
        raise ProfileError(
            f"is {record.format!r}; this version reads {PROFILE_FORMAT!r}", where=where, item="format"
        )
    if not record.units or len(set(record.units)) < len(record.units):
        raise ProfileError("must name its units, each once", where=where, item="units")
    for group in record.groups:
        for unit in record.units:
            if unit not in group.ms:
                raise ProfileError(f"has no ms for unit {unit}", where=where, item=f"group {group.name}")
    rows = [(group.name, {key: getattr(group, key) for key in FIGURES[:4]}) for group in record.groups]
    made_of = [(group.layers, group.output) for group in record.groups]
    _refuse_more_than(nominal_gb_per_second, rows, where)
    read = _build(
        record.network, record.soc, record.units, rows, made_of, record.source, record.synthetic, where
    )
    try:
        return replace(read, rounds=record.rounds or 0, undisturbed=record.undisturbed or 0)
    except ProfileError as problem:
        raise ProfileError(problem.reason, where=where, item=problem.item) from None


def profile_from_csv(
    content: bytes,
    where: str,
    *,
    network: str,
    soc: str,
    units: tuple[str, ...],
    nominal_gb_per_second: float = inf,
) -> Profile:
    """Return the profile in a CSV's bytes; raises `ProfileError` naming `where`, the line and the column."""
    try:
        text = content.decode("utf-8-sig")
        lines = [*csv.reader(io.StringIO(text, newline=""), strict=True)]
    except (UnicodeDecodeError, csv.Error) as problem:
        raise ProfileError(f"is no CSV ({problem})", where=where) from None
    lines = [line for line in lines if line]
    if not lines:
        raise ProfileError("is empty", where=where)
    head = [column.strip() for column in lines[0]]
    allowed = {"group", "layers", "output", *(f"{unit}_{key}" for unit in units for key in FIGURES)}
    for column in head:
        if column not in allowed:
            raise ProfileError(
                f"unknown column; a profile for {', '.join(units)} has group and, for each unit,"
                f" {', '.join(f'UNIT_{key}' for key in FIGURES)}; and layers, output",
                where=where,
                item=column[:60] or "a column without a name",
            )
        if head.count(column) > 1:
            raise ProfileError("is there twice", where=where, item=column)
    for column in ("group", *(f"{unit}_ms" for unit in units)):
        if column not in head:
            raise ProfileError("column is missing", where=where, item=column)
    rows: list[tuple[str, dict[str, dict[str, float | None]]]] = []
    made_of: list[tuple[tuple[str, ...], str]] = []
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(head):
            raise ProfileError(f"has {len(line)} cells, not {len(head)}", where=where, item=f"row {number}")
        cells = dict(zip(head, line, strict=True))
        figures: dict[str, dict[str, float | None]] = {key: {} for key in FIGURES}
        for unit in units:
            for key in FIGURES:
                text = cells.get(f"{unit}_{key}", "").strip()
                if text:
                    figures[key][unit] = _number(text, where, f"row {number}, {unit}_{key}")
        if not cells["group"].strip():
            raise ProfileError("the group has no name", where=where, item=f"row {number}")
        rows.append((cells["group"].strip(), figures))
        layers = tuple(name.strip() for name in cells.get("layers", "").split(";") if name.strip())
        made_of.append((layers, cells.get("output", "").strip()))
    _refuse_more_than(nominal_gb_per_second, rows, where)
    return _build(network, soc, units, rows, made_of, where, False, where)


def _refuse_more_than(
    nominal: float, rows: list[tuple[str, dict[str, dict[str, float | None]]]], where: str
) -> None:
    """Refuse a given bandwidth (not an estimated one) beyond the memory's own."""
    for name, figures in rows:
        for unit, value in figures["gb_per_second"].items():
            if value is not None and ABOVE_NOMINAL * nominal < value <= MAX_MS:
                slip = "; is it in MB/s?" if value / 1000 <= nominal else ""
                raise ProfileError(
                    f"gb_per_second on {unit} is {value:g}; the SoC's memory has {nominal:g} GB/s{slip}",
                    where=where,
                    item=f"group {name}",
                )


def _number(text: str, where: str, item: str) -> float:
    try:
        if "_" in text:
            raise ValueError
        return float(text)
    except ValueError:
        raise ProfileError(f"{text[:40]!r} is not a number", where=where, item=item) from None


def _build(
    network: str,
    soc: str,
    units: tuple[str, ...],
    rows: list[tuple[str, dict[str, dict[str, float | None]]]],
    made_of: list[tuple[tuple[str, ...], str]],
    source: str,
    synthetic: bool,
    where: str,
) -> Profile:
    groups = []
    for (name, figures), (layers, output) in zip(rows, made_of, strict=True):
        for key in FIGURES[:4]:
            for unit in figures[key]:
                if unit not in units:
                    raise ProfileError(
                        f"{key} names an unknown unit {unit!r}", where=where, item=f"group {name}"
                    )
        ms = tuple(figures["ms"].get(unit) for unit in units)
        given = tuple(figures["gb_per_second"].get(unit) for unit in units)
        emc = tuple(figures.get("emc_percent", {}).get(unit) for unit in units)
        out, into = (tuple(figures[key].get(unit) or 0.0 for unit in units) for key in ("out_ms", "in_ms"))
        for key, row, most in (
            ("ms", ms, MAX_MS),
            ("gb_per_second", given, MAX_MS),
            ("emc_percent", emc, 100),
        ):
            for unit, value in zip(units, row, strict=True):
                if value is not None and not 0 <= value <= most:
                    raise ProfileError(
                        f"{key} on {unit} is {value}, not a number from 0 to {most:g}",
                        where=where,
                        item=f"group {name}",
                    )
        groups.append(Group(name, ms, estimate_bandwidth(ms, given, emc), out, into, layers, output))
    try:
        return Profile(network, soc, units, tuple(groups), source, synthetic)
    except ProfileError as problem:
        raise ProfileError(problem.reason, where=where, item=problem.item) from None


def load_profile(
    path: Path,
    *,
    network: str = "",
    soc: str = "",
    units: tuple[str, ...] = (),
    nominal_gb_per_second: float = inf,
) -> Profile:
    """Return the profile in a `.csv` or JSON file. The arguments name a CSV's network, SoC and units.

    Raises `ProfileError` naming the file and the row, group or key that is wrong; a group that asks for more
    than `nominal_gb_per_second`, the memory's data sheet figure, is wrong too.
    """
    content = read_bytes(path, error=ProfileError)
    if path.suffix.lower() == ".csv":
        return profile_from_csv(
            content,
            str(path),
            network=network or path.stem,
            soc=soc,
            units=units,
            nominal_gb_per_second=nominal_gb_per_second,
        )
    return profile_from_json(content, str(path), nominal_gb_per_second)
