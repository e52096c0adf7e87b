"""Claims of the branches planner on random small networks: `optimal` moves nothing twice."""

from __future__ import annotations

from random import Random

from onchip.base.errors import Infeasible, NegativeAnswer
from onchip.check import check
from onchip.machines.chip import Chip
from onchip.planners.branches.options import BranchOptions
from onchip.planners.branches.plan import plan_branches
from oracles.claims_networks import random_maps
from oracles.claims_outcome import Outcome, accepts
from oracles.claims_placement import Question, Undecided, cheaper, least_budget

__all__ = ["branches_case"]


def branches_case(seed: int, *, judge: bool = True) -> Outcome:
    """One network and budget; the answer of `plan_branches`, and whether it holds."""
    rng = Random(f"branches {seed}")
    outcome = Outcome("branches", seed)
    network = random_maps(rng, 6, plain=True)
    chip = Chip("odd", alignment_bytes=rng.choice((1, 1, 2, 4)))
    asked = Question(network, chip.alignment_bytes)
    least = least_budget(asked)
    budget = max(1, int(least * rng.choice((0.3, 0.6, 0.9, 1.0, 1.5))))
    options = BranchOptions(rules=rng.choice(("ours", "paper")))
    outcome.network, outcome.budget = network, budget
    try:
        with outcome.planning():
            made = plan_branches(network, chip, budget, options).plan
    except Infeasible as no:
        outcome.status = "infeasible"
        if judge and least <= budget:
            with outcome.judging():
                try:
                    program = cheaper(asked, budget, None)
                except Undecided:
                    outcome.undecided = True
                    return outcome
                assert program is not None
                outcome.beaten = accepts(network, chip, budget, program)
                outcome.refuted = f"called infeasible within {budget} bytes, {no.needs} needed"
        return outcome
    except NegativeAnswer:
        return outcome
    outcome.status, outcome.claimed = made.result.status, made
    if judge:
        figures = check(made)
        if made.result.status == "optimal" and figures.traffic_bytes:
            outcome.refuted = "called optimal, and something crosses twice"
        if figures.traffic_bytes < made.result.lower_bound_bytes:
            outcome.refuted = "its traffic is below its bound"
    return outcome
