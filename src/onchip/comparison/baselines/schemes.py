"""The schemes by name, and one function that runs any of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from onchip.check import certify, plan_chip_of
from onchip.comparison.baselines.replacement import belady, least_traffic
from onchip.comparison.baselines.stepwise import stepwise
from onchip.comparison.baselines.whole_life import executorch, place_lives, tflm
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.limits import NO_LIMITS, Limits
from onchip.planners.placement.claim import space_of
from onchip.planners.placement.options import PlacementOptions
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.program import program
from onchip.planners.placement.search import minimum_peak
from onchip.planners.placement.strategy import Answer
from onchip.planners.placement.weights import apart, as_planned
from onchip.plans import Plan

__all__ = ["SCHEMES", "DoesNotFit", "Scheme", "solve"]


@dataclass(frozen=True, slots=True)
class DoesNotFit:
    """The answer of a scheme without eviction that needs `needs` bytes of arena, more than the budget."""

    needs: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Scheme:
    """One scheme: the order that it runs in, its title for readers, and its placement of that order.

    `place(problem, order, budget)` returns a placed schedule, or the bytes of arena that it needs.
    """

    name: str
    order: Literal["given", "minpeak"]
    title: str
    place: Callable[[Problem, Sequence[int], int], Answer | int]


def _static(planner: Callable[..., tuple[int, ...]]) -> Callable[[Problem, Sequence[int], int], Answer | int]:
    def place(problem: Problem, order: Sequence[int], budget: int) -> Answer | int:
        answer, needs = place_lives(problem, order, planner)
        return answer if needs <= budget else needs

    return place


SCHEMES = {
    s.name: s
    for s in (
        Scheme("given-belady", "given", "own order, TFLite arena, Belady", partial(stepwise, rule=belady)),
        Scheme(
            "given-greedy",
            "given",
            "own order, TFLite arena, least traffic each time",
            partial(stepwise, rule=least_traffic),
        ),
        Scheme(
            "minpeak-belady",
            "minpeak",
            "least-peak order, TFLite arena, Belady",
            partial(stepwise, rule=belady),
        ),
        Scheme(
            "minpeak-greedy",
            "minpeak",
            "least-peak order, TFLite arena, least traffic each time",
            partial(stepwise, rule=least_traffic),
        ),
        Scheme("tflm", "given", "TFLM's greedy planner, no replacement", _static(tflm)),
        Scheme("executorch", "given", "ExecuTorch's greedy planner, no replacement", _static(executorch)),
    )
}
"""The four of COSMA's section V-A, then those of today's runtimes."""


def solve(
    name: str,
    network: Network,
    chip: Chip,
    budget: int,
    *,
    weights: Literal["streamed", "resident"] = "streamed",
    order: Sequence[int] | None = None,
    bound: int = 0,
    limits: Limits = NO_LIMITS,
) -> Plan | DoesNotFit:
    """Return the certified plan of scheme `name` within `budget` bytes, or its need, if it cannot evict.

    `order` saves the search for the scheme's order when the caller has it; without it `limits` apply to the
    search of the least-peak order. `bound` is a proved lower bound of the traffic of any plan: a plan that
    attains it is `optimal`, else `feasible`. The budget must not be below the problem's minimum
    (`ValueError`).
    """
    began = time.perf_counter()
    scheme = SCHEMES[name]
    asked = PlacementOptions(weights=weights)
    network = as_planned(network, chip, asked)
    problem = Problem.of(network, chip.alignment_bytes)
    if budget < problem.minimum_budget:
        raise ValueError(f"budget {budget} is below the minimum {problem.minimum_budget}")
    if order is None:
        order = network.order if scheme.order == "given" else minimum_peak(problem, limits=limits).order
    answer = scheme.place(problem, order, budget)
    if isinstance(answer, int):
        return DoesNotFit(answer, time.perf_counter() - began)
    own_room = replace(plan_chip_of(chip), weight_scratchpad_bytes=chip.weight_scratchpad_bytes)
    return certify(
        network,
        own_room if apart(chip, asked) else chip,
        budget,
        program(network, problem, answer.order, answer.placed, answer.scratch),
        status="optimal" if answer.traffic == bound else "feasible",
        lower_bound_bytes=bound,
        space=space_of(network, asked, apart=apart(chip, asked)),
        seconds=time.perf_counter() - began,
        options={
            "planner": "baseline",
            "granularity": network.granularity,
            "element": network.element,
            "weights": weights,
            "order": scheme.order,
            "strategy": name,
        },
    )
