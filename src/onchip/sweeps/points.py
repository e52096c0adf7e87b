"""A sweep's points, one by one: the request of each, and the key of its answer."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import msgspec

from onchip.machines.chip import Chip
from onchip.planners import registry
from onchip.sweeps.budgets import Budget
from onchip.sweeps.spec import Asked, Machine, Model, Spec

__all__ = ["Done", "Point", "Task", "key_of", "points", "task_of", "version"]

KEY_FORMAT = 1
"""The version of the figures' meaning: raise it when a meaning changes, and older answers are not reused."""


class Task(msgspec.Struct, frozen=True):
    """One point as a worker receives it: only data, so that it can be sent to any machine.

    `network` is the key of the network's content, `chip` the chip without its name, `options` are all of the
    planner's. `home` is the module of an external planner, and the folder that it is found from.
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
        """The network and planner of the point: points of one family are best computed in sequence."""
        return self.network, self.planner


class Done(msgspec.Struct, frozen=True):
    """A point's answer: its figures, by the names of the table's columns."""

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
    """Return all points in the order of the table: networks, chips, planners and options, budgets."""
    return tuple(
        Point(model, machine, asked, budget)
        for model in spec.models
        for machine in spec.machines
        for asked in spec.asked
        for budget in spec.budgets
    )


@cache
def version() -> str:
    """Return the version that made the answers; empty for a source tree that is not installed."""
    try:
        return metadata.version("onchip")
    except metadata.PackageNotFoundError:
        return ""


def key_of(values: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON."""
    text = json.dumps(values, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def task_of(point: Point, network: str, seconds: float | None) -> Task:
    """Return the task of a point whose network has the content `network`.

    Its key covers everything that its answer depends on, and nothing else: not names, the position in the
    spec, or the time limit.
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
    """Return the hash of a module's file: a planner's answers depend on its code."""
    return hashlib.sha256(Path(str(sys.modules[module].__file__)).read_bytes()).hexdigest()


@cache
def _stated_by(chip: Chip) -> dict[str, Any]:
    """Return the values that a chip states, so that keys added to chips later change no hash."""
    stated = {key: value for key, value in chip.figures().items() if value not in (None, "", False, ())}
    if chip.tiles is not None:
        stated["tiles"] = chip.tiles
    return cast("dict[str, Any]", msgspec.to_builtins(stated))


def labels(given: Sequence[Point]) -> tuple[str, ...]:
    """Return the columns that distinguish points by the options and chips that the spec states."""
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
    """Return a row of the table: the request and the answer."""
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
    "latency_bound_picoseconds",
    "energy_picojoules",
    "energy_bound_picojoules",
    "reason",
    "space",
    "seconds",
)
"""The answer's columns, in the table's order."""
