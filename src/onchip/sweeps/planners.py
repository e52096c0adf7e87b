"""What a point may ask: the planners by name, each with its options and what it says of a plan.

A planner is one entry of `PLANNERS`: its options are the keys of the spec's section of its name, and its
function gives a point's figures. Nothing else here knows how many planners there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from onchip.base.errors import UsageError
from onchip.base.units import parse_bytes
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.branches.options import BranchOptions
from onchip.planners.fusion.options import FusionOptions
from onchip.planners.joint.options import JointOptions, refuse
from onchip.planners.placement.options import PlacementOptions
from onchip.plans import Plan

__all__ = ["PLANNERS", "Planner", "figures_of"]

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Planner:
    """`plan` gives the figures of a network on a chip within so many bytes, by options of `options`.

    It raises what a point may answer with: `Infeasible` and other negative answers, or `InputError` where the
    chip lacks a figure.
    """

    options: type[Any]
    plan: Callable[[Network, Chip, int, Any], Figures]

    def asked(self, given: Mapping[str, Any], where: str, item: str) -> Any:
        """The options with these values; raises `UsageError` naming `where` and the key."""
        known = [f.name for f in fields(self.options) if f.name != "time_limit"]
        for key in given:
            if key == "time_limit":
                raise UsageError("stands in [limits] as seconds_per_point", where=where, item=f"{item}.{key}")
            if key not in known:
                raise UsageError(
                    f"no such option; known: {', '.join(known)}", where=where, item=f"{item}.{key}"
                )
        values = dict(given)
        for f in fields(self.options):
            if "parse" in f.metadata and isinstance(values.get(f.name), str):
                values[f.name] = f.metadata["parse"](values[f.name], option=f"{where}: {item}.{f.name}")
            if isinstance(f.default, tuple) and isinstance(values.get(f.name), list):
                values[f.name] = tuple(values[f.name])
            if type(f.default) is bool and type(values.get(f.name, False)) is not bool:
                raise UsageError("must be true or false", where=where, item=f"{item}.{f.name}")
        try:
            return self.options(**values)
        except UsageError as problem:
            raise UsageError(str(problem), where=where, item=item) from None


def figures_of(plan: Plan) -> Figures:
    """What a certified plan says of itself; bounds are of plans of its kind."""
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
        "energy_picojoules": r.energy_picojoules,
    }


@dataclass(frozen=True, slots=True)
class FusedPlacementOptions:
    """What `onchip plan --fuse` may be asked: fusion and placement as one search."""

    overlap: bool = True
    channel_tile: int | None = None
    in_place: bool = False
    memory_limit: int = field(default=2 << 30, metadata={"parse": parse_bytes})
    seed: int = 0
    time_limit: float | None = None

    def __post_init__(self) -> None:
        refuse(*self.halves())  # each refuses what it does not know

    def halves(self) -> tuple[JointOptions, PlacementOptions]:
        """The same as the planner takes it."""
        return (
            JointOptions(fuse=True, overlap=self.overlap, channel_tile=self.channel_tile),
            PlacementOptions(
                in_place=self.in_place,
                memory_limit=self.memory_limit,
                seed=self.seed,
                time_limit=self.time_limit,
            ),
        )


def _place(network: Network, chip: Chip, budget: int, options: PlacementOptions) -> Figures:
    from onchip.planners import placement

    return figures_of(placement.plan(network, chip, budget, options))


def _fuse(network: Network, chip: Chip, budget: int, options: FusionOptions) -> Figures:
    from onchip.planners.fusion.fuse import fuse

    made = fuse(network, chip, budget, options, beside=False)
    if made.plan is not None:
        return figures_of(made.plan)
    return {  # options that describe no machine have figures only
        "status": made.status,
        "space": made.space,
        "dram_bytes": made.dram_bytes,
        "dram_bound_bytes": made.lower_bound_bytes,
        "reason": made.not_executable,
    }


def _join(network: Network, chip: Chip, budget: int, options: FusedPlacementOptions) -> Figures:
    from onchip.planners.joint import plan

    return figures_of(plan(network, chip, budget, *options.halves()))


def _branch(network: Network, chip: Chip, budget: int, options: BranchOptions) -> Figures:
    from onchip.planners.branches.plan import plan_branches

    return figures_of(plan_branches(network, chip, budget, options).plan)


PLANNERS: Mapping[str, Planner] = {
    "plan": Planner(PlacementOptions, _place),
    "fuse": Planner(FusionOptions, _fuse),
    "joint": Planner(FusedPlacementOptions, _join),
    "branches": Planner(BranchOptions, _branch),
}
"""By the names of their commands; `joint` is `onchip plan --fuse`."""
