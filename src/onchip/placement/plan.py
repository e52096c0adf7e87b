"""Placement from end to end: the budget, the strategy, the program, the certificate."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from onchip.check import certify, plan_chip_of
from onchip.chip import Chip
from onchip.errors import Infeasible, UsageError
from onchip.network import Network, bits, mask
from onchip.placement.held import Wishes, hold, read_wishes
from onchip.placement.options import DEFAULTS, PlacementOptions
from onchip.placement.problem import Problem
from onchip.placement.program import program
from onchip.placement.search import Limits, Progress, minimum_peak
from onchip.placement.strategy import Answer, Task, strategy
from onchip.placement.weights import apart, as_planned, pinned_addresses
from onchip.plan import Pin, PinnedTensor, PinnedWeights, Plan, State

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
    wishes = read_wishes(network, options.pin, options.state, chip.alignment_bytes)
    weights_apart = apart(chip, options)
    weights_at = pinned_addresses(network, chip, wishes) if weights_apart else {}
    network = as_planned(network, chip, options, wishes)
    problem = Problem.of(network, chip.alignment_bytes, in_place=options.in_place)
    in_order = problem.in_order(network.order) if options.order == "given" else problem
    refuse_if_infeasible(network, in_order, budget)
    if wishes:
        if options.strategy == "ilp":
            raise UsageError("keeps nothing on chip: use another with --pin or --state", item="strategy ilp")
        problem = hold(network, problem, wishes, weights_apart=weights_apart, alignment=chip.alignment_bytes)
        refuse_if_infeasible(network, problem, budget)
    limits = Limits(options.time_limit, options.memory_limit, progress, cancelled, options.seed)
    if options.order == "given":
        problem = problem.in_order(network.order)
    elif options.order == "minpeak":
        peak = minimum_peak(problem, limits=limits)
        problem = problem.in_order(peak.order)
        refuse_if_infeasible(network, problem, budget)  # in place, what operators need depends on the order
        limits = limits.after(peak.seconds)

    answer = strategy(options.strategy)(Task(network, problem, budget, chip.alignment_bytes, limits, options))
    return certify(
        network,
        replace(plan_chip_of(chip), weight_scratchpad_bytes=chip.weight_scratchpad_bytes)
        if weights_apart
        else chip,
        budget,
        program(network, problem, answer.order, answer.placed, answer.scratch),
        status="optimal" if answer.traffic == answer.bound else "feasible",
        lower_bound_bytes=answer.bound,
        seconds=time.perf_counter() - began,
        pins=_pins(network, wishes, answer, weights_at),
        state=_state(network, problem),
        options={
            "planner": "placement",
            "granularity": network.granularity,
            "element": network.element,
            "weights": options.weights,
            "order": options.order,
            **({"in_place": True} if options.in_place else {}),
            "strategy": options.strategy,
            "seed": options.seed,
            **answer.figures,
        },
    )


def refuse_if_infeasible(network: Network, problem: Problem, budget: int) -> None:
    """Raise `Infeasible` when some operator alone needs more than `budget` bytes."""
    if problem.minimum_budget <= budget:
        return
    hardest = problem.hardest_step
    v = hardest.operator
    tensors = mask(problem.inputs[v])
    if hardest.over is None:  # else the output lies on an input, and takes no room of its own
        tensors |= mask(problem.outputs[v])
    parts = [(problem.name_of(t, network), problem.size[t]) for t in bits(tensors) if problem.size[t]]
    if problem.workspace[v]:
        parts.append(("its workspace", problem.workspace[v]))
    raise Infeasible(
        needs=problem.minimum_budget,
        has=budget,
        operator=network.operators[v].name if v < len(network.operators) else "",
        tensors=tuple(sorted(parts, key=lambda part: -part[1])),
    )


def _pins(network: Network, wishes: Wishes, answer: Answer, weights_at: Mapping[int, int]) -> tuple[Pin, ...]:
    """What was wished to stay, with the addresses that pinned weights were given."""
    virtual = {p.tensor - len(network.tensors): p.address for p in answer.placed}
    return (
        *(PinnedTensor(network.tensors[t].name, at) for t, at in wishes.tensors),
        *(
            PinnedWeights(network.operators[v].name, weights_at.get(v, virtual.get(i, 0)))
            for i, (v, _) in enumerate(wishes.weights)
        ),
    )


def _state(network: Network, problem: Problem) -> tuple[State, ...]:
    if problem.kept is None:
        return ()
    name = [t.name for t in network.tensors]
    return tuple(State(name[first], name[last], at) for first, last, at in problem.kept.state)
