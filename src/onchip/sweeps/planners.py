"""The options that a point may set of a planner, and the figures of its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from onchip.base.errors import UsageError
from onchip.planners.protocol import Planner
from onchip.plans import Plan

__all__ = ["figures_of", "options_asked"]


def options_asked(planner: Planner, given: Mapping[str, Any], where: str, item: str) -> Any:
    """Return the planner's options with these values; raises `UsageError` naming `where` and the key."""
    known = [f.name for f in fields(planner.options) if f.name != "time_limit"]
    for key in given:
        if key == "time_limit":
            raise UsageError("stands in [limits] as seconds_per_point", where=where, item=f"{item}.{key}")
        if key not in known:
            raise UsageError(f"no such option; known: {', '.join(known)}", where=where, item=f"{item}.{key}")
    values = dict(given)
    for f in fields(planner.options):
        if "parse" in f.metadata and isinstance(values.get(f.name), str):
            values[f.name] = f.metadata["parse"](values[f.name], option=f"{where}: {item}.{f.name}")
        if isinstance(f.default, tuple) and isinstance(values.get(f.name), list):
            values[f.name] = tuple(values[f.name])
        if type(f.default) is bool and type(values.get(f.name, False)) is not bool:
            raise UsageError("must be true or false", where=where, item=f"{item}.{f.name}")
    try:
        return planner.options(**values)
    except UsageError as problem:
        raise UsageError(str(problem), where=where, item=item) from None


def figures_of(plan: Plan) -> dict[str, Any]:
    """Return the figures of a certified plan; bounds are for plans of its kind."""
    r = plan.result
    bound = r.dram_lower_bound_bytes
    if bound is None:
        bound = r.dram_bytes - r.traffic_bytes + r.lower_bound_bytes
    return {
        "status": r.status,
        "space": r.space,
        "dram_bytes": r.dram_bytes,
        "compulsory_bytes": r.compulsory_bytes,
        "weight_bytes": r.weight_bytes,
        "spill_bytes": r.spill_bytes,
        "reload_bytes": r.reload_bytes,
        "traffic_bytes": r.traffic_bytes,
        "dram_bound_bytes": bound,
        "peak_bytes": r.peak_bytes,
        "extent_bytes": r.extent_bytes,
        "latency_picoseconds": r.latency_picoseconds,
        "latency_bound_picoseconds": r.latency_lower_bound_picoseconds,
        "energy_picojoules": r.energy_picojoules,
        "energy_bound_picojoules": r.energy_lower_bound_picojoules,
    }
