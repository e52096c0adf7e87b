"""Fusion as a planner among others."""

from __future__ import annotations

from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.fusion.options import FusionOptions
from onchip.planners.limits import Limits
from onchip.planners.protocol import FiguresOnly, Planner
from onchip.plans import Plan

__all__ = ["PLANNER"]


def _solve(network: Network, chip: Chip, budget: int, options: FusionOptions, limits: Limits) -> Plan:
    from onchip.planners.fusion.fuse import fuse

    made = fuse(network, chip, budget, options, limits, beside=False)
    if made.plan is None:  # options that describe no machine
        figures = {
            "status": made.status,
            "space": made.space,
            "dram_bytes": made.dram_bytes,
            "dram_bound_bytes": made.lower_bound_bytes,
        }
        raise FiguresOnly(made.not_executable, figures)
    return made.plan


PLANNER = Planner(
    "fusion", "onchip fuse: groups in tiles, through DRAM between them", FusionOptions, _solve, section="fuse"
)
