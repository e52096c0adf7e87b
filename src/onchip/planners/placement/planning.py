"""Placement from end to end: the budget, the strategy, the program, the certificate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from onchip.base.errors import Infeasible, NeedsTraffic, NegativeAnswer, NoAddresses, UsageError
from onchip.base.units import MAX_BYTES
from onchip.check import certify, clock_of, energy, plan_chip_of
from onchip.machines.chip import Chip
from onchip.network import Network, bits, mask
from onchip.planners.limits import NO_LIMITS, Limits
from onchip.planners.placement.caches import Caches, lowered, raised, read_caches, with_caches
from onchip.planners.placement.claim import space_of
from onchip.planners.placement.objectives.bounds import latency_bound
from onchip.planners.placement.objectives.latency import fastest
from onchip.planners.placement.objectives.peak import extent_of, smallest
from onchip.planners.placement.options import DEFAULTS, PlacementOptions
from onchip.planners.placement.pinning import Pinning, hold, least_budget, one_after_the_other, read_pinning
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.program import program
from onchip.planners.placement.search import minimum_peak
from onchip.planners.placement.strategy import Answer, Task, strategy
from onchip.planners.placement.weights import apart, as_planned, pinned_addresses
from onchip.plans import Pin, PinnedTensor, PinnedWeights, Plan, State

__all__ = ["plan", "refuse_if_infeasible"]


def plan(
    network: Network,
    chip: Chip,
    budget: int | None,
    options: PlacementOptions = DEFAULTS,
    limits: Limits | None = None,
) -> Plan:
    """Return the plan that is best by `options.objective` within `budget` bytes of scratchpad.

    `optimal` if the minimised figure equals a proved lower bound (over the orders that `options.order`
    allows), else `feasible` with that bound. Only the objective `peak` needs no budget: None allows as much
    as it takes. Raises `Infeasible` naming the operator and tensors that do not fit, `ChipError` for a figure
    of the chip that the objective needs. When a limit is reached, or on Ctrl-C, the plan is the best so far;
    `limits` override those in `options`.
    """
    with (limits or Limits.of(options)).interruptible() as limits:
        return _plan(network, chip, budget, options, limits)


def _plan(
    network: Network,
    chip: Chip,
    budget: int | None,
    options: PlacementOptions,
    limits: Limits,
) -> Plan:
    began = time.perf_counter()
    _refuse_if_unanswerable(chip, budget, options)
    room = MAX_BYTES if budget is None else budget
    caches, states = read_caches(network, options.state, options.capacity, chip.alignment_bytes)
    if caches:
        _refuse_with_caches(options)
    has, room = room, room - caches.bytes
    pinning = lowered(read_pinning(network, options.pin, states, chip.alignment_bytes), caches.bytes)
    weights_apart = apart(chip, options)
    weights_at = pinned_addresses(network, chip, pinning) if weights_apart else {}
    network = as_planned(network, chip, options, pinning)
    problem = Problem.of(network, chip.alignment_bytes, in_place=options.in_place)
    space = space_of(network, options, apart=weights_apart, held=bool(pinning), caches=bool(caches))
    if pinning:
        if options.strategy == "ilp":
            raise UsageError("keeps nothing on chip: use another with --pin or --state", item="strategy ilp")
        problem = hold(
            network,
            problem,
            pinning,
            weights_apart=weights_apart,
            alignment=chip.alignment_bytes,
            budget=room,
        )
    if caches:
        problem = with_caches(network, problem, caches, given=options.order == "given")
    if options.order == "given":
        problem = problem.in_order(network.order)
    if options.order == "minpeak":
        if not options.in_place and options.objective != "peak" and not caches:  # the same in all orders
            refuse_if_infeasible(network, problem, room, space, chip.alignment_bytes, limits)
        peak = minimum_peak(problem, limits=limits)
        problem = problem.in_order(peak.order)  # in place, the needs of operators depend on the order
    if options.objective != "peak":  # `peak` takes what it needs, whatever the budget
        try:
            refuse_if_infeasible(network, problem, room, space, chip.alignment_bytes, limits)
        except Infeasible as no:
            raise (caches.misfit(no, has) if caches else no) from None

    task = Task(network, problem, room, chip.alignment_bytes, limits, options)
    peak_bound = None
    if options.objective == "peak":
        answer, peak_bound = smallest(task)
        extent = extent_of(task, answer)
        if extent > room:
            raise NeedsTraffic(needs=extent, at_least=peak_bound, has=room, space=space)
        budget, reached = extent if budget is None else budget, extent == peak_bound
    else:
        answer = _solved_beside(task, caches, has)
        reached = answer.traffic == answer.bound
    on = plan_chip_of(chip)
    if weights_apart:
        on = replace(on, weight_scratchpad_bytes=chip.weight_scratchpad_bytes)
    made = certify(
        network,
        on,
        has if budget is None else budget,
        program(network, problem, answer.order, answer.placed, answer.scratch, caches.at),
        status="optimal" if reached else "feasible",
        lower_bound_bytes=answer.bound,
        peak_lower_bound_bytes=peak_bound,
        seconds=time.perf_counter() - began,
        space=space,
        pins=_pins(network, pinning, answer, weights_at, caches.bytes),
        state=_state(network, problem, caches.bytes),
        caches=caches.plan,
        options={
            "planner": "placement",
            "granularity": network.granularity,
            "element": network.element,
            "weights": options.weights,
            "objective": "peak" if options.objective == "peak" else "traffic",
            "order": options.order,
            **({"in_place": True} if options.in_place else {}),
            **({"inputs": "literal"} if options.inputs == "literal" else {}),
            "strategy": options.strategy,
            "seed": limits.seed,
            **answer.figures,
        },
    )
    return _with_times_and_energy(made, task, answer, began)


def _with_times_and_energy(made: Plan, task: Task, answer: Answer, began: float) -> Plan:
    """Return the plan with bounds of other figures that its chip gives; for `latency` a faster program."""
    clock, objective, result = clock_of(made), task.options.objective, made.result
    if made.caches:  # the bound of the latency is of networks whose inputs are all loaded
        clock = None
    instructions, status, slowest = made.program, result.status, None
    if clock is not None:
        traffic = answer.bound
        slowest = latency_bound(clock, task.problem, task.budget, traffic)
        if objective == "latency":
            found = fastest(task, clock, answer, made.program, slowest)
            instructions, status = found.program, "optimal" if found.latency == slowest else "feasible"
    # The part without traffic is the same for every plan, and the rest has its proved bound.
    least = energy(made.network, made.chip, result.dram_bytes - result.traffic_bytes + answer.bound)
    if slowest is None and least is None:
        return made
    return certify(
        made.network,
        made.chip,
        made.budget,
        instructions,
        status=status,
        lower_bound_bytes=result.lower_bound_bytes,
        peak_lower_bound_bytes=result.peak_lower_bound_bytes,
        latency_lower_bound_picoseconds=slowest,
        energy_lower_bound_picojoules=least,
        seconds=time.perf_counter() - began,
        space=result.space,
        pins=made.pins,
        state=made.state,
        caches=made.caches,
        options={**made.options, "objective": objective},
    )


def _refuse_if_unanswerable(chip: Chip, budget: int | None, options: PlacementOptions) -> None:
    """Refuse an objective that needs a figure of the chip, or a budget, that is missing."""
    if options.objective == "latency":
        for key in ("dram_bytes_per_second", "macs_per_second"):
            chip.require(key, "--objective latency")
    elif options.objective == "energy":
        chip.require("dram_picojoules_per_byte", "--objective energy")
    elif options.objective == "edp":
        raise UsageError("edp is planned in tiles: --fuse", item="--objective")
    elif options.objective == "peak" and (options.pin or options.state):
        raise UsageError("keeps nothing on chip: use another with --pin or --state", item="objective peak")
    if budget is None and options.objective != "peak":
        raise UsageError("is needed for every objective but peak", item="budget")


def _refuse_with_caches(options: PlacementOptions) -> None:
    """Refuse what does not plan the room beside caches alone."""
    for key, value in (("strategy", "ilp"), ("objective", "latency"), ("inputs", "literal")):
        if getattr(options, key) == value:
            raise UsageError(f"{value} keeps no caches: use another with a --state that grows", item=key)


def _solved_beside(task: Task, caches: Caches, has: int) -> Answer:
    """Return the strategy's answer in the room above the caches, with addresses there."""
    if not caches:
        return _solved(task)
    try:
        return raised(_solved(task), caches.bytes)
    except Infeasible as no:
        raise caches.misfit(no, has) from None


def _solved(task: Task) -> Answer:
    """Return the strategy's answer; with a state also over orders in which old and new share an address."""
    solve = strategy(task.options.strategy)
    first, bound, refusal = None, 0, None
    try:
        first = solve(task)
        bound = first.bound
    except NoAddresses as none:
        bound, refusal = none.bound, none
    tighter = one_after_the_other(task.problem)
    if tighter is None or (first is not None and first.traffic == bound):
        if first is None:
            assert refusal is not None
            raise refusal
        return first
    second = None
    with suppress(NegativeAnswer):  # of these orders only
        second = solve(replace(task, problem=tighter))
    found = [answer for answer in (first, second) if answer is not None]
    if not found:
        assert refusal is not None
        raise refusal
    return replace(min(found, key=lambda answer: answer.traffic), bound=bound)


def refuse_if_infeasible(
    network: Network,
    problem: Problem,
    budget: int,
    space: str = "",
    alignment: int = 1,
    limits: Limits = NO_LIMITS,
) -> None:
    """Raise `Infeasible` if some operator needs more than `budget` bytes, beside the tensors kept on chip.

    It carries the least budget in which the whole network has a plan of the requested `space`.
    """
    if problem.minimum_budget <= budget:
        return
    hardest = problem.hardest_step
    v, kept = hardest.operator, problem.kept
    if kept is not None:
        enough = least_budget(problem, problem.minimum_budget - 1, alignment, limits)
        if enough > problem.minimum_budget:
            raise Infeasible(needs=enough, has=budget, tensors=kept.names, at_least=True, space=space)
    tensors = mask(problem.inputs[v])
    if hardest.over is None:  # otherwise the output lies on an input, and takes no room of its own
        tensors |= mask(problem.outputs[v])
    parts = [(problem.name_of(t, network), problem.size[t]) for t in bits(tensors) if problem.size[t]]
    if problem.workspace[v]:
        parts.append(("its workspace", problem.workspace[v]))
    plain = not problem.overwrites and kept is None
    others = (op.id for op in network.operators if plain and op.id != v)
    alike = [w for w in others if problem.step_bytes(w) == problem.minimum_budget]
    names = [network.operators[w].name for w in (v, *alike) if w < len(network.operators)]
    raise Infeasible(
        needs=problem.minimum_budget,
        has=budget,
        operator=names[0] if names else "",
        operators=tuple(names),
        tensors=tuple(sorted(parts, key=lambda part: -part[1])),
        at_least=kept is not None,  # around kept tensors, others might find no addresses
        space=space,
    )


def _pins(
    network: Network, pinning: Pinning, answer: Answer, weights_at: Mapping[int, int], above: int
) -> tuple[Pin, ...]:
    """Return the requested pins, with the addresses that pinned weights were given."""
    virtual = {p.tensor - len(network.tensors): p.address for p in answer.placed}
    return (
        *(
            PinnedTensor(network.tensors[t].name, None if at is None else at + above)
            for t, at in pinning.tensors
        ),
        *(
            PinnedWeights(network.operators[v].name, weights_at.get(v, virtual.get(i, 0)))
            for i, (v, _) in enumerate(pinning.weights)
        ),
    )


def _state(network: Network, problem: Problem, above: int) -> tuple[State, ...]:
    if problem.kept is None:
        return ()
    name = [t.name for t in network.tensors]
    return tuple(State(name[first], name[last], at + above) for first, last, at in problem.kept.state)
