"""The three budgets of the COSMA paper (section V-A): MR, MP and, halfway, MH."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.limits import NO_LIMITS, Limits
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.search import minimum_peak

__all__ = ["Budgets", "budgets"]


@dataclass(frozen=True, slots=True)
class Budgets:
    """Budgets in bytes.

    `mr` is the need of the largest operator; below it nothing runs. `mp` is the minimum peak over all orders,
    proved if `mp_complete`, else the best found, with `mp_bound` below it (and neither is below `mr`).
    `mh` = (mr + mp) // 2.
    """

    mr: int
    mh: int
    mp: int
    mp_bound: int
    mp_complete: bool


def budgets(
    network: Network,
    chip: Chip,
    limits: Limits = NO_LIMITS,
    *,
    in_place: bool = False,
    order: Literal["free", "given", "minpeak"] = "free",
) -> Budgets:
    """Return MR, MH and MP of a network as given: weights count if they are in an operator's workspace.

    MR and MP are exact; MH is rounded down to a whole byte. A limit that ends the peak search leaves `mp` an
    upper bound, not `mp_complete`. `in_place`: outputs may be written over dying inputs; an operator's need
    then depends on the order, so `mr` is that of the `order` in which plans are made.
    """
    problem = Problem.of(network, chip.alignment_bytes, in_place=in_place)
    peak = minimum_peak(problem, limits=limits)
    if order != "free":
        problem = problem.in_order(network.order if order == "given" else peak.order)
    mr = problem.minimum_budget
    mp = max(mr, peak.value)
    return Budgets(mr, (mr + mp) // 2, mp, max(mr, peak.bound), peak.complete)
