"""Placement from end to end: the budget, the strategy, the program, the certificate."""

from __future__ import annotations

import time
from collections.abc import Callable

from onchip.check import certify
from onchip.chip import Chip
from onchip.errors import Infeasible
from onchip.network import Network, bits, mask
from onchip.placement.options import DEFAULTS, PlacementOptions
from onchip.placement.problem import Problem
from onchip.placement.program import program
from onchip.placement.search import Limits, Progress, minimum_peak
from onchip.placement.strategy import Task, strategy
from onchip.plan import Plan

__all__ = ["plan", "refuse_if_infeasible"]


def plan(
    network: Network,
    chip: Chip,
    budget: int,
    options: PlacementOptions = DEFAULTS,
    *,
    progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Plan:
    """The plan with the least non-compulsory DRAM traffic within `budget` bytes of scratchpad.

    `optimal` when its traffic equals a proved lower bound (over the orders that `options.order` allows), else
    `feasible` with that bound. Raises `Infeasible` naming the operator and tensors that do not fit. With a
    limit reached, or on Ctrl-C, the plan is the best so far.
    """
    began = time.perf_counter()
    if options.weights == "resident":
        network = network.with_resident_weights()
    problem = Problem.of(network, chip.alignment_bytes)
    refuse_if_infeasible(network, problem, budget)
    limits = Limits(options.time_limit, options.memory_limit, progress, cancelled, options.seed)
    if options.order == "given":
        problem = problem.in_order(network.order)
    elif options.order == "minpeak":
        peak = minimum_peak(problem, limits=limits)
        problem = problem.in_order(peak.order)
        limits = limits.after(peak.seconds)

    answer = strategy(options.strategy)(Task(network, problem, budget, chip.alignment_bytes, limits, options))
    return certify(
        network,
        chip,
        budget,
        program(network, problem, answer.order, answer.placed, answer.scratch),
        status="optimal" if answer.traffic == answer.bound else "feasible",
        lower_bound_bytes=answer.bound,
        seconds=time.perf_counter() - began,
        options={
            "planner": "placement",
            "granularity": network.granularity,
            "element": network.element,
            "weights": options.weights,
            "order": options.order,
            "strategy": options.strategy,
            "seed": options.seed,
            **answer.figures,
        },
    )


def refuse_if_infeasible(network: Network, problem: Problem, budget: int) -> None:
    """Raise `Infeasible` when some operator alone needs more than `budget` bytes."""
    if problem.minimum_budget <= budget:
        return
    v = max(range(len(problem.inputs)), key=problem.step_bytes)
    tensors = mask(problem.inputs[v]) | mask(problem.outputs[v])
    parts = [(network.tensors[t].name, problem.size[t]) for t in bits(tensors)]
    if problem.workspace[v]:
        parts.append(("its workspace", problem.workspace[v]))
    raise Infeasible(
        needs=problem.minimum_budget,
        has=budget,
        operator=network.operators[v].name,
        tensors=tuple(sorted(parts, key=lambda part: -part[1])),
    )
