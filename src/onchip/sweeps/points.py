"""A sweep's points, one by one: what each asks, and the key by which its answer is found again."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from onchip.machines.chip import Chip
from onchip.planners import registry
from onchip.sweeps.budgets import Budget
from onchip.sweeps.spec import Asked, Machine, Model, Spec

__all__ = ["Done", "Point", "Task", "key_of", "points", "task_of", "version"]

KEY_FORMAT = 1
"""Raised when what a point's figures mean changes: older answers are then not found any more."""


class Task(msgspec.Struct, frozen=True):
    """One point as a worker gets it: nothing but data, so that it can cross to any machine.

    `network` is the key of the network's content, `chip` the chip without its name, `options` are all of the
    planner's. `home` is the module of a planner from outside,
    and the folder that it is found from.
    """

    key: str
    network: str
    chip: Chip
    planner: str
    options: dict[str, Any]
    budget: Budget
    seconds: float | None
    home: tuple[str, str] = ("", "")

    @property
    def family(self) -> tuple[str, str]:
        """Points of one network and planner: they are best computed one after the other."""
        return self.network, self.planner


class Done(msgspec.Struct, frozen=True):
    """A point's answer: its figures, by the names that the table has."""

    key: str
    figures: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a spec, in the spec's words."""

    model: Model
    machine: Machine
    asked: Asked
    budget: Budget


def points(spec: Spec) -> tuple[Point, ...]:
    """All points in the order of the table: networks, chips, planners and options, budgets."""
    return tuple(
        Point(model, machine, asked, budget)
        for model in spec.models
        for machine in spec.machines
        for asked in spec.asked
        for budget in spec.budgets
    )


@cache
def version() -> str:
    """The version whose answers these are; empty for a source tree that never was installed."""
    try:
        return metadata.version("onchip")
    except metadata.PackageNotFoundError:
        return ""


def key_of(values: Any) -> str:
    """The SHA-256 of a value's canonical JSON."""
    text = json.dumps(values, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def task_of(point: Point, network: str, seconds: float | None) -> Task:
    """The task of a point whose network has the content `network`.

    Its key is of everything that its answer depends on, and of nothing else: not of names, of the place in
    the spec, or of how long it may take.
    """
    chip = replace(point.machine.chip, name="swept", description="")
    options = {name: value for name, value in asdict(point.asked.options).items() if name != "time_limit"}
    planner, budget = point.asked.planner, point.budget
    asks = [KEY_FORMAT, version(), network, _stated_by(chip), planner, options, budget.text]
    home = point.asked.home
    key = key_of([*asks, *([content_of(home[0])] if home[0] else [])])
    return Task(key, network, chip, planner, options, budget, seconds, home)


@cache
def content_of(module: str) -> str:
    """The hash of a module's file: a planner's answers are those of its code."""
    return hashlib.sha256(Path(str(sys.modules[module].__file__)).read_bytes()).hexdigest()


@cache
def _stated_by(chip: Chip) -> dict[str, Any]:
    """What a chip states, and no more, so that keys it may have one day change nothing."""
    return {name: value for name, value in asdict(chip).items() if value not in (None, "", False, ())}


def labels(given: Sequence[Point]) -> tuple[str, ...]:
    """The columns that tell points apart by what the spec states of options and chips."""
    found: dict[str, None] = {}
    for point in given:
        found.update(dict.fromkeys(_stated(point)))
    rooms = ["read", "chip", *(planner.key for planner in registry.listed())]
    return tuple(sorted(found, key=lambda name: (rooms.index(name.split(".")[0]), name)))


def _stated(point: Point) -> dict[str, Any]:
    return {
        **{f"read.{key}": value for key, value in point.model.read},
        **{f"chip.{key}": value for key, value in point.machine.changed},
        **{f"{point.asked.planner}.{key}": value for key, value in point.asked.stated},
    }


def row_of(point: Point, names: Sequence[str], figures: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table: what was asked, and the answer."""
    stated = _stated(point)
    return {
        "network": point.model.name,
        "chip": point.machine.name,
        "planner": point.asked.planner,
        **{name: _plain(stated.get(name)) for name in names},
        "budget": point.budget.text,
        **{name: figures.get(name) for name in COLUMNS},
    }


def _plain(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else value


COLUMNS = (
    "budget_bytes",
    "status",
    "dram_bytes",
    "dram_bound_bytes",
    "gap",
    "compulsory_limit_bytes",
    "compulsory_bytes",
    "weight_bytes",
    "spill_bytes",
    "reload_bytes",
    "traffic_bytes",
    "peak_bytes",
    "extent_bytes",
    "needs_bytes",
    "macs",
    "dram_seconds",
    "compute_seconds",
    "latency_picoseconds",
    "energy_picojoules",
    "reason",
    "space",
    "seconds",
)
"""The answer's columns, in the table's order."""
