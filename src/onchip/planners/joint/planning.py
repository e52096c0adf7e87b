"""Joint planning for every objective: from the plan of fewest bytes on, with operators that run again."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from math import inf
from operator import attrgetter

from onchip.base.errors import IllegalPlan, UsageError
from onchip.check import certify
from onchip.check.claims import objectives
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.network.repeats import has_repeats
from onchip.planners.joint.by_bytes import SEARCHED, FewestBytes, Joint
from onchip.planners.joint.energy import with_energy
from onchip.planners.joint.large_tiles import with_large_tiles
from onchip.planners.joint.options import DEFAULTS, JointOptions, refuse
from onchip.planners.joint.recompute import with_repeats
from onchip.planners.joint.timed import Goal, hastened_plans, quickest
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions
from onchip.plans import Plan

__all__ = ["Joint", "plan", "solve"]

ONCE, AGAIN = 0.5, 0.25
"""The share of the time limit after which the plan is to stand in which every operator runs once; that of the
time that is left for a plan in which some run again."""

BYTES = 0.4
"""The share of the time limit after which the plan of fewest bytes is to stand that a plan for time begins
with."""


def plan(
    network: Network,
    chip: Chip,
    budget: int,
    options: JointOptions = DEFAULTS,
    placing: PlacementOptions | None = None,
    limits: Limits | None = None,
) -> Plan:
    """Return the plan that moves the fewest bytes to and from DRAM within `budget` bytes of scratchpad.

    `optimal` if nothing in the model of docs/joint.md moves less, else `feasible` with a bound. Never worse
    than placement alone, or fusion alone as it was tried (docs/joint.md). Raises `Infeasible` naming the
    operator that fits in no tiling, `UsageError` for options of placement that do not go together with
    fusion. When a limit is reached, or on Ctrl-C, the plan is the best so far; `limits` override those in
    `placing`.
    """
    return solve(network, chip, budget, options, placing, limits).plan


def solve(
    network: Network,
    chip: Chip,
    budget: int,
    options: JointOptions = DEFAULTS,
    placing: PlacementOptions | None = None,
    limits: Limits | None = None,
) -> Joint:
    """Return the same, with the figures for comparison."""
    placing = placing or PlacementOptions()
    refuse(options, placing)
    with (limits or Limits.of(placing)).interruptible() as limits:
        if not options.recompute:
            return _solved(network, chip, budget, options, placing, limits)
        made = _solved(network, chip, budget, options, placing, limits.until(ONCE))
        by_bytes = replace(placing, objective="traffic")

        def again(network: Network) -> Plan:
            return FewestBytes(network, chip, budget, options, by_bytes, limits.share(AGAIN)).run().plan

        if placing.objective == "traffic":
            return replace(made, plan=with_repeats(made.plan, again, limits))
        fewest = with_repeats(again(network), again, limits.share(ONCE))
        if not has_repeats(fewest.network):
            return made
        other = _solved(fewest.network, chip, budget, options, placing, limits.share(1)).plan
        figure, _ = objectives.BOUNDED[placing.objective]
        return replace(made, plan=min(made.plan, other, key=attrgetter(f"result.{figure}")))


def _solved(
    network: Network,
    chip: Chip,
    budget: int,
    options: JointOptions,
    placing: PlacementOptions,
    limits: Limits,
) -> Joint:
    """Return the plan of a network in which nothing more runs again."""
    if placing.objective == "latency" or placing.objective == "edp":
        return _in_time(network, chip, budget, options, placing, limits, placing.objective)
    if placing.objective == "energy":
        return _in_energy(network, chip, budget, options, placing, limits)
    return _in_bytes(network, chip, budget, options, placing, limits)


def _in_bytes(
    network: Network,
    chip: Chip,
    budget: int,
    options: JointOptions,
    placing: PlacementOptions,
    limits: Limits,
) -> Joint:
    """Return the plan of fewest bytes, with large tiles; on a chip with rates of tiles the fastest found of
    those that move as few.
    """
    timed = chip.tiles is not None and options.nests
    run = FewestBytes(network, chip, budget, options, placing, limits.until(SEARCHED) if timed else limits)
    made = run.run()
    wide = with_large_tiles(made.plan, chip, limits)
    if wide is not made.plan:
        made = replace(made, plan=_certified_again(wide, run.began))
    found = [made.plan]
    for other in hastened_plans(made.plan, run.problem, limits) if timed else ():
        with suppress(IllegalPlan):  # a run over an operand, which a nest may not
            found.append(_certified_again(other, run.began))
    return replace(made, plan=min(found, key=_bytes_and_time))


def _certified_again(plan: Plan, began: float) -> Plan:
    """Return a plan whose program was changed, with the claims that it had, and its own figures."""
    r = plan.result
    assert r.dram_lower_bound_bytes is not None
    return certify(
        plan.network,
        plan.chip,
        plan.budget,
        plan.program,
        status=r.status,
        lower_bound_bytes=r.lower_bound_bytes,
        dram_lower_bound_bytes=r.dram_lower_bound_bytes,
        space=r.space,
        seconds=time.perf_counter() - began,
        groups=plan.groups,
        layouts=plan.layouts,
        options=plan.options,
    )


def _bytes_and_time(plan: Plan) -> tuple[int, float]:
    """Return a plan's bytes and its time."""
    return plan.result.dram_bytes, _time(plan)


def _time(plan: Plan) -> float:
    """Return a plan's picoseconds, infinite where no law gives it a time."""
    found = plan.result.latency_picoseconds
    return inf if found is None else found


def _in_time(
    network: Network,
    chip: Chip,
    budget: int,
    options: JointOptions,
    placing: PlacementOptions,
    limits: Limits,
    goal: Goal,
) -> Joint:
    """Return the best plan found for a goal, from the one of fewest bytes.

    What stays at an address of its own, and is joined by no concat, may run in any nest.
    """
    if chip.tiles is None:
        raise UsageError(
            f"{goal} with --fuse needs the rates of tiles, and {chip.name} states none", item="--objective"
        )
    if not options.nests:
        raise UsageError(f"{goal} with --fuse is of nests, and --no-nests forbids them", item="--objective")
    if goal == "edp":
        chip.require("dram_picojoules_per_byte", "--objective edp")
    apart = replace(options, overlap=False, concat_views=False)
    run = FewestBytes(
        network,
        chip,
        budget,
        apart,
        replace(placing, in_place=False, objective="traffic"),
        limits.until(BYTES),
    )
    made = run.run()
    wide = with_large_tiles(made.plan, chip, limits)
    return replace(made, plan=quickest(wide, run.problem, run.began, limits, goal, tiled=options.dram_tiles))


def _in_energy(
    network: Network,
    chip: Chip,
    budget: int,
    options: JointOptions,
    placing: PlacementOptions,
    limits: Limits,
) -> Joint:
    """Return the plan of fewest bytes with its energy, and a bound of it; on a chip with rates of tiles the
    fastest found of those with that energy.
    """
    chip.require("dram_picojoules_per_byte", "--objective energy")
    timed = chip.tiles is not None and options.nests
    until = limits.until(SEARCHED) if timed else limits
    run = FewestBytes(network, chip, budget, options, replace(placing, objective="traffic"), until)
    made = run.run()
    wide = with_large_tiles(made.plan, chip, limits)
    found = [with_energy(wide, chip, run.joins, run.began)]
    for other in hastened_plans(wide, run.problem, limits) if timed else ():
        with suppress(IllegalPlan):  # a run over an operand, which a nest may not
            found.append(with_energy(other, chip, run.joins, run.began))
    return replace(made, plan=min(found, key=_energy_and_time))


def _energy_and_time(plan: Plan) -> tuple[int, float]:
    """Return a plan's energy and its time."""
    energy = plan.result.energy_picojoules
    assert energy is not None
    return energy, _time(plan)
