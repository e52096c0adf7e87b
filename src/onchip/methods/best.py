"""The best plan in one scratchpad: whole where that moves the least that there is, else fused in tiles."""

from __future__ import annotations

from contextlib import suppress

from onchip.base.errors import Infeasible, NegativeAnswer, UsageError
from onchip.machines.chip import Chip
from onchip.methods.said import Answer
from onchip.methods.unfit import with_budgets
from onchip.network import Network
from onchip.network.needed import needed_bytes
from onchip.planners import joint, placement
from onchip.planners.budgets import context_of
from onchip.planners.joint import JointOptions, plan_begun, refuse
from onchip.planners.limits import Limits, Progress
from onchip.planners.placement import PlacementOptions
from onchip.plans import Plan

__all__ = ["PATIENCE", "best", "in_tiles", "whole", "why_whole"]

PATIENCE = 60.0
"""Seconds for tiles unless the options state others: what is searched for has no end of its own."""

OF_NESTS = ("latency", "edp")
"""Objectives of plans in nests, on a chip with rates of tiles: whole operators have times by another law."""

WHOLE = 0.3
"""The share of a time limit after which the plan of whole tensors ends."""


def whole(
    network: Network, on: Chip, bytes_: int | None, placing: PlacementOptions, progress: Progress | None
) -> Answer:
    """Return the plan of whole tensors, with the budgets that it is compared with."""
    try:
        planned = placement.plan(network, on, bytes_, placing, Limits.of(placing, progress))
    except Infeasible as no:
        raise with_budgets(no, network, on, placing) from None
    return Answer(planned, context_of(planned, network, on, placing, progress))


def in_tiles(
    network: Network,
    on: Chip,
    bytes_: int,
    fusing: JointOptions,
    placing: PlacementOptions,
    progress: Progress | None,
    limits: Limits | None = None,
) -> Answer:
    """Return the plan of groups in tiles and whole tensors."""
    limits = limits or Limits.of(placing, progress)
    plan = plan_begun if placing.state else joint.plan
    try:
        return Answer(plan(network, on, bytes_, fusing, placing, limits))
    except Infeasible as no:
        raise with_budgets(no, network, on, placing) from None


def best(
    network: Network,
    on: Chip,
    bytes_: int | None,
    fusing: JointOptions,
    placing: PlacementOptions,
    progress: Progress | None,
) -> Answer:
    """Return the plan of whole tensors where nothing can move less, else the better of it and one in tiles.

    On a chip with rates of tiles only runs in tiles have times, so it is one in tiles that moves no more.
    Where an option keeps tensors whole, the answer says so.
    """
    why = why_whole(fusing, placing, on)
    if not why and bytes_ is not None and placing.objective in OF_NESTS:
        with Limits.of(placing, progress).interruptible() as limits:
            return in_tiles(network, on, bytes_, fusing, placing, progress, limits.patient(PATIENCE))
    if bytes_ is None or why:
        found = whole(network, on, bytes_, placing, progress)
        return Answer(found.plan, found.context, (why,) if why else ())
    with Limits.of(placing, progress).interruptible() as limits:
        planned: Plan | None = None
        with suppress(Infeasible):  # then tiles may fit
            planned = placement.plan(network, on, bytes_, placing, limits.until(WHOLE))
        least = planned is not None and _moves_the_least(planned) and not (on.tiles and fusing.nests)
        if planned is not None and (least or limits.stopped()):
            return Answer(planned, context_of(planned, network, on, placing, progress))
        try:
            found = in_tiles(network, on, bytes_, fusing, placing, progress, limits.patient(PATIENCE))
        except NegativeAnswer:
            if planned is None:
                raise
            return Answer(planned, context_of(planned, network, on, placing, progress))
    if planned is not None and planned.result.dram_bytes < found.plan.result.dram_bytes:
        return Answer(planned, context_of(planned, network, on, placing, progress))
    return found


def why_whole(fusing: JointOptions, placing: PlacementOptions, on: Chip) -> str:
    """Return why tensors stay whole, if an option asks for what tiles do not have; else nothing."""
    if placing.objective in OF_NESTS and on.tiles is None:
        asked = f"--objective {placing.objective}"
        return f"tensors stay whole: {on.name} states no rates of tiles, which {asked} needs for tiles"
    try:
        refuse(fusing, placing)
    except UsageError as no:
        option = no.item or ""
        if option == "--objective":
            return f"tensors stay whole: tiles are not planned for --objective {placing.objective} yet"
        return f"tensors stay whole: {option} does not go with tiles"
    if placing.state:
        return "tensors stay whole: --state goes with tiles only where --fuse asks for them"
    return ""


def _moves_the_least(plan: Plan) -> bool:
    """Return whether no more crosses than what the outputs need, as in every plan."""
    return plan.result.dram_bytes <= needed_bytes(plan.network)
