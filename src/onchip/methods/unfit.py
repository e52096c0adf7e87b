"""The need of a network where nothing fits: the least found, MR and MP."""

from __future__ import annotations

from onchip.base.errors import Infeasible
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners import placement
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions

__all__ = ["with_budgets"]

SECONDS = 2.0
"""The most seconds for the least peak of any order: the answer is no already."""


def with_budgets(no: Infeasible, network: Network, on: Chip, placing: PlacementOptions) -> Infeasible:
    """Return the same refusal with MR and MP of the network, where they mean something."""
    if placing.pin or placing.state or no.memory:
        return no
    planned = placement.as_planned(network, on, placing)
    limits = Limits.of(placing)
    within = min(SECONDS, SECONDS if limits.time_limit is None else limits.time_limit / 4)
    named = placement.budgets(
        planned, on, limits.anew(within), in_place=placing.in_place, order=placing.order
    )
    return no.but(mr=named.mr, mp=named.mp if named.mp_complete else None)
