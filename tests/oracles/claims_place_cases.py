"""Claims of whole-operator placement on random small networks, each held against elementary moves."""

from __future__ import annotations

from random import Random

from onchip.base.errors import Infeasible, NeedsTraffic, NegativeAnswer
from onchip.machines.chip import Chip
from onchip.planners.placement import PlacementOptions, plan
from onchip.plans import Plan, PlanChip
from oracles.claims_networks import random_maps, random_sizes
from oracles.claims_outcome import Outcome, certified
from oracles.claims_placement import Question, Undecided, cheaper, least_budget

__all__ = ["placement_case"]

ALIGNMENTS = (1, 1, 1, 2, 3, 4, 8)


def placement_case(seed: int, *, judge: bool = True) -> Outcome:
    """One network, chip, budget and set of options; the answer of `placement.plan`, and whether it holds."""
    rng = Random(f"placement {seed}")
    outcome = Outcome("placement", seed)
    large = rng.random() < 0.65
    network = random_sizes(rng) if large else random_maps(rng, 5)
    chip = Chip("odd", alignment_bytes=rng.choice(ALIGNMENTS))
    options = {
        "in_place": rng.random() < 0.4,
        "order": "given" if rng.random() < 0.2 else "free",
        "weights": "resident" if rng.random() < 0.25 else "streamed",
        "objective": "peak" if rng.random() < 0.15 else "traffic",
    }
    if rng.random() < 0.06:
        outcome.limited = True
        options |= rng.choice(({"time_limit": 0.0}, {"time_limit": 0.005}, {"memory_limit": 2000}))
    placing = PlacementOptions(**options)  # type: ignore[arg-type]
    outcome.seconds = placing.time_limit
    outcome.label = f"{placing.objective}{' in place' if placing.in_place else ''}"
    whole = network.with_resident_weights() if placing.weights == "resident" else network
    asked = Question(whole, chip.alignment_bytes, placing.in_place, placing.order == "given")
    with outcome.judging():
        least = least_budget(asked)
    total = sum(asked.up(t.bytes) for t in network.tensors)
    slack = rng.choice((-1, 0, 0, 0, 0, 1, 1, 2, rng.randint(0, max(1, total - least))))
    budget = max(1, least + slack * rng.choice((1, chip.alignment_bytes)))
    outcome.network, outcome.budget = network, budget
    try:
        with outcome.planning():
            made = plan(network, chip, budget, placing)
    except NeedsTraffic as no:
        outcome.status = "infeasible" if no.needs == no.at_least else "feasible"
        if judge:
            _needs_traffic(outcome, asked, no)
        return outcome
    except Infeasible as no:
        outcome.status = "infeasible"
        if judge:
            _infeasible(outcome, asked, chip, no, least, placing)
        return outcome
    except NegativeAnswer:
        return outcome
    outcome.status, outcome.claimed = made.result.status, made
    if judge:
        with outcome.judging():
            _hold(outcome, asked, made)
    return outcome


def _hold(outcome: Outcome, asked: Question, made: Plan) -> None:
    result = made.result
    peak = made.options.get("objective") == "peak"
    if result.traffic_bytes < result.lower_bound_bytes:
        outcome.refuted = "its own traffic is below its bound"
        return
    budget, limit = made.budget, result.lower_bound_bytes
    if peak:
        bound = result.peak_lower_bound_bytes
        if bound is None:
            return
        budget, limit = bound - 1, 1
    try:
        program = cheaper(asked, budget, limit)
    except Undecided:
        outcome.undecided = True
        return
    if program is not None:
        chip = PlanChip("odd", asked.alignment)
        outcome.beaten = certified(asked.network, chip, budget, program, options=dict(made.options))
        what = "needs less" if peak else "has less traffic"
        outcome.refuted = f"a plan {what} than {budget + 1 if peak else limit} bytes"


def _infeasible(
    outcome: Outcome, asked: Question, chip: Chip, no: Infeasible, least: int, placing: PlacementOptions
) -> None:
    with outcome.judging():
        if least <= outcome.budget:
            program = cheaper(asked, outcome.budget, None)
            assert program is not None
            outcome.beaten = certified(
                asked.network, PlanChip("odd", asked.alignment), outcome.budget, program
            )
            outcome.refuted = f"called infeasible within {outcome.budget} bytes"
    if no.needs != least:
        outcome.needs_wrong = f"said to need {no.needs}, needs {least}"
        return
    with outcome.planning():
        try:
            plan(outcome.network or asked.network, chip, no.needs, placing)
        except NegativeAnswer as again:
            if placing.objective == "traffic" and not outcome.limited:
                outcome.needs_wrong = f"no plan within the {no.needs} bytes that are enough: {again}"


def _needs_traffic(outcome: Outcome, asked: Question, no: NeedsTraffic) -> None:
    with outcome.judging():
        try:
            program = cheaper(asked, no.at_least - 1, 1)
        except Undecided:
            outcome.undecided = True
            return
        if program is not None:
            chip = PlanChip("odd", asked.alignment)
            outcome.beaten = certified(asked.network, chip, no.at_least - 1, program)
            outcome.refuted = f"without traffic said to need {no.at_least} bytes at least"
        elif outcome.budget >= no.needs:
            outcome.needs_wrong = "said to need no more than there is"
