"""The objectives of plans: the figure that each minimizes, its bound, and whether the two agree."""

from __future__ import annotations

import math
from collections.abc import Mapping

from onchip.check.rules import broken
from onchip.plans import Result

__all__ = ["BOUNDED", "minimized", "prove_bounds"]

BOUNDED: Mapping[str, tuple[str, str]] = {
    "traffic": ("traffic_bytes", "lower_bound_bytes"),
    "peak": ("extent_bytes", "peak_lower_bound_bytes"),
    "latency": ("latency_picoseconds", "latency_lower_bound_picoseconds"),
    "energy": ("energy_picojoules", "energy_lower_bound_picojoules"),
    "edp": ("energy_delay", "energy_delay_lower_bound"),
    "dram": ("dram_bytes", "dram_lower_bound_bytes"),
    "memory": ("memory_picoseconds", "memory_lower_bound_picoseconds"),
}
"""Objective -> (the figure that it minimizes, its planner's bound): fields of `Result`."""


def minimized(objective: str) -> tuple[str, ...]:
    """Return what a plan of an objective minimizes, in turn: `memory` minimizes traffic first."""
    return ("traffic", "memory") if objective == "memory" else (objective,)


def prove_bounds(result: Result, objective: object) -> None:
    """Refuse a status and bounds that contradict the figures of the program. Raises `Broken`."""
    if objective not in BOUNDED:
        broken("result", f"the objective is {str(objective)[:60]!r}, none of {', '.join(BOUNDED)}")
    if result.status not in ("optimal", "feasible"):
        broken("result", f"status is {result.status!r}, neither optimal nor feasible")
    for goal, (figure, bound) in BOUNDED.items():
        value, least = getattr(result, figure), getattr(result, bound)
        if least is not None and not 0 <= least <= (-1 if value is None else value):
            most = (
                "where nothing is to bound" if value is None else f"not from 0 to the {figure} of {value:,}"
            )
            broken("result", f"{bound} is {least:,}, {most}")
        meant = goal in minimized(str(objective))
        if meant and result.status == "optimal" and (value is None or least != value):
            broken(
                "result",
                f"status is optimal, but {figure} is {_or_none(value)} and {bound} {_or_none(least)}",
            )
    if not (math.isfinite(result.seconds) and result.seconds >= 0):
        broken("result", f"seconds is {result.seconds}, not a time")


def _or_none(value: int | None) -> str:
    return "not given" if value is None else f"{value:,}"
