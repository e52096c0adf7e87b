"""Claims of plans for microcontrollers on random chains of layers, held against simulated bytes."""

from __future__ import annotations

from random import Random

from onchip.base.errors import Infeasible
from onchip.microcontroller.segments import SegmentOptions, plan
from onchip.plans import PlanChip
from oracles.claims_networks import random_chain
from oracles.claims_outcome import Outcome, accepts
from oracles.claims_segments import Chain

__all__ = ["segments_case"]

PLENTY = 1_000_000


def segments_case(seed: int, *, judge: bool = True) -> Outcome:
    """One chain; the answer of `segments.plan`, and whether it holds.

    Both objectives are asked with plenty of RAM; what a plan takes that is called optimal is claimed to be
    the least of all plans. `least` within one byte less has to be infeasible.
    """
    rng = Random(f"segments {seed}")
    outcome = Outcome("segments", seed)
    network = random_chain(rng, 3)
    objective = rng.choice(("least", "least", "free"))
    outcome.network, outcome.label, outcome.budget = network, objective, PLENTY
    with outcome.planning():
        made = plan(network, PLENTY, SegmentOptions(objective=objective))  # type: ignore[arg-type]
    outcome.claimed, outcome.status = made, made.result.status
    least = made.result.extent_bytes
    if objective == "least":
        with outcome.planning():
            try:
                again = plan(network, least - 1, SegmentOptions(objective="least"))
                outcome.refuted = f"{again.result.extent_bytes} bytes in less than the least of {least}"
                outcome.beaten = again
                return outcome
            except Infeasible as no:
                if no.needs != least:
                    outcome.needs_wrong = f"said to need {no.needs}, the least is {least}"
    if not judge or made.result.status != "optimal":
        return outcome
    with outcome.judging():
        chain = Chain(network)
        found = chain.program(least - 1)
        if found is not None:
            beaten = accepts(found[0], PlanChip("mcu"), least - 1, found[1], found[2])
            if beaten is None:
                outcome.notes["refused"] = f"within {least - 1} bytes"
            else:
                outcome.beaten = beaten
                outcome.refuted = f"{beaten.result.extent_bytes} bytes where {least} were the least"
    return outcome
