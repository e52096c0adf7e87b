"""The steps common to all verbs: read the model, sort the options, record the answer."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onchip.base import guard
from onchip.base.errors import UsageError
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.network.repeats import folded
from onchip.plans import Plan as PlanProgram
from onchip.plans import bind
from onchip.readers.source import ReadOptions
from onchip.results.planned import Plan

if TYPE_CHECKING:
    from onchip.readers import Source

__all__ = [
    "as_the_chip",
    "cannot_run",
    "how_read",
    "network_of",
    "options_of",
    "read_if_needed",
    "recorded",
    "taken",
]


def options_of(kind: type[Any], given: dict[str, Any]) -> Any:
    """Return the options of a kind with these values; raises `UsageError` for a name of no field."""
    unknown = sorted(set(given) - {f.name for f in fields(kind)})
    if unknown:
        known = ", ".join(f.name for f in fields(kind))
        raise UsageError(f"no such option; known: {known}", item=unknown[0])
    return kind(**given)


def taken(kind: type[Any], options: dict[str, Any]) -> dict[str, Any]:
    """Remove the values of a kind's fields from `options`, and return them."""
    return {f.name: options.pop(f.name) for f in fields(kind) if f.name in options}


def read_if_needed(
    model: str | Path | Source | Network, options: dict[str, Any]
) -> tuple[Source | Network, dict[str, Any]]:
    """Return the model, read if it is a path, and the options that are not the reader's."""
    from onchip.readers import Source, load

    rest = dict(options)
    reading = taken(ReadOptions, rest)
    if isinstance(model, str | Path):
        model = load(model, options_of(ReadOptions, reading))
    elif not isinstance(model, Source | Network):
        raise UsageError(f"expected a path, a Source or a Network, not {type(model).__name__}", item="model")
    elif reading:
        raise UsageError(f"{', '.join(reading)}: the model has been read already", item="options")
    return model, rest


def network_of(model: Source | Network) -> Network:
    """Return the network of a model, as planners see it: one out of a plan without what runs again there."""
    return folded(model).network if isinstance(model, Network) else model.network


def as_the_chip(model: object, on: Chip, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options, with the chip's elements for a zoo network unless they state some."""
    zoo = isinstance(model, str) and model.startswith("zoo:")
    if zoo and options.get("dtype") is None and on.element in ("int8", "int16", "float32"):
        return {
            **options,
            "dtype": "file" if on.element == "float32" else on.element,
        }  # the zoo's own: float32
    return options


def how_read(options: Any) -> dict[str, Any]:
    """Return the reader's options for a plan's record, so that `run` can read the same network again."""
    return {f.name: v for f in fields(options) if (v := getattr(options, f.name)) not in (None, "", False)}


def recorded(plan: PlanProgram, model: Source | Network, **more: int | str) -> Plan:
    """Return the plan with its verbs, and with its model's reader options and `more` among its options."""
    guard.found()
    how = {} if isinstance(model, Network) else how_read(model.options)
    if not isinstance(model, Network) and model.notes:
        how["boundary"] = "; ".join(model.notes)
    return Plan.of(bind(replace(plan, options={**how, **plan.options, **more})))


def cannot_run(model: Source | Network, plan: Plan | None) -> str:
    """Return why the executor refuses a proved fused plan; empty where it does not."""
    from onchip.readers.source import Source, TfliteExecutable

    if not isinstance(model, Source) or plan is None or not plan.groups:
        return ""
    if isinstance(model.executable, TfliteExecutable):
        return "the plan is proved, but onchip run cannot execute .tflite models in tiles yet"
    return ""
