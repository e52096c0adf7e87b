"""Segments among the planners: the planner that proves the claims of its plans again."""

from __future__ import annotations

from typing import get_args

from onchip.base.errors import UsageError
from onchip.machines.chip import Chip
from onchip.microcontroller.segments.options import InputMode, Objective, SegmentOptions
from onchip.network import Network
from onchip.planners.limits import Limits
from onchip.planners.protocol import Planner
from onchip.plans import Plan

__all__ = ["PLANNER"]


def _solve(network: Network, _: Chip, budget: int, options: SegmentOptions, limits: Limits) -> Plan:
    from onchip.microcontroller.segments.planning import plan

    return plan(network, budget, options, limits)


def _options_of(plan: Plan) -> SegmentOptions:
    modes: dict[object, InputMode] = {mode: mode for mode in get_args(InputMode)}
    goals: dict[object, Objective] = {goal: goal for goal in get_args(Objective)}
    mode, goal = modes.get(plan.options.get("input")), goals.get(plan.options.get("segments"))
    if mode is None or goal is None:
        raise UsageError("the plan names no input mode and objective of segments", item="--prove")
    return SegmentOptions(mode, goal)


PLANNER = Planner(
    "segments",
    "onchip mcu: outputs over inputs, maps in rings of rows",
    SegmentOptions,
    _solve,
    anywhere=False,
    read_options=_options_of,
)
