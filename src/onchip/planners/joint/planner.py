"""Joint planning as a planner among others."""

from __future__ import annotations

from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.joint.options import FusedPlacementOptions
from onchip.planners.limits import Limits
from onchip.planners.protocol import Planner, recorded
from onchip.plans import Plan

__all__ = ["PLANNER"]


def _solve(network: Network, chip: Chip, budget: int, options: FusedPlacementOptions, limits: Limits) -> Plan:
    from onchip.planners.joint.planning import plan

    return plan(network, chip, budget, *options.halves(), limits)


def _options_of(plan: Plan) -> FusedPlacementOptions:
    """Return the options that a plan records; a file of a version without nests does not name them.

    What is the objective `traffic` for users is `dram` in a plan: weights count, too.
    """
    nests = plan.options.get("nests", False)
    goal = plan.options.get("objective")
    goal = "traffic" if goal in (None, "dram") else goal
    found: FusedPlacementOptions = recorded(
        FusedPlacementOptions, plan, but=("nests", "objective"), nests=nests, objective=goal
    )
    return found


PLANNER = Planner(
    "joint",
    "onchip plan --fuse: groups in tiles and whole tensors",
    FusedPlacementOptions,
    _solve,
    read_options=_options_of,
)
