"""Claims of placement in several memories on random small networks, held against elementary moves."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from onchip.base.errors import Infeasible, NegativeAnswer
from onchip.check import plan_chip_of
from onchip.machines.chip import Chip, Memory
from onchip.planners.placement import PlacementOptions
from onchip.planners.placement.memories import plan_in_memories
from onchip.plans import PlanChip
from oracles.claims_memories import Memories, Undecided
from oracles.claims_networks import random_maps, random_sizes
from oracles.claims_outcome import Outcome, accepts
from oracles.claims_placement import Question, least_budget

__all__ = ["memories_case"]


def memories_case(seed: int, *, judge: bool = True) -> Outcome:
    """One network, two or three memories; the answer of `plan_in_memories`, and whether it holds."""
    rng = Random(f"memories {seed}")
    outcome = Outcome("memories", seed)
    network = random_sizes(rng, 4) if rng.random() < 0.75 else random_maps(rng, 3)
    alignment = rng.choice((1, 1, 1, 2, 4))
    resident = rng.random() < 0.2
    options = {
        "weights": "resident" if resident else "streamed",
        "order": "given" if rng.random() < 0.2 else "free",
        "moves": rng.random() < 0.8,
        "time_limit": 10.0,
    }
    if rng.random() < 0.05:
        outcome.limited = True
        options["time_limit"] = 0.0
    outcome.seconds = float(options["time_limit"])
    placing = PlacementOptions(**options)  # type: ignore[arg-type]
    whole = network.with_resident_weights() if resident else network
    asked = Question(whole, alignment, given_order=placing.order == "given")
    least = least_budget(asked)
    memories = []
    for i in range(rng.choice((2, 2, 2, 3))):
        share = rng.choice((0.4, 0.6, 0.8, 1.0, 1.3, 2.0)) if i else rng.choice((0.6, 0.8, 1.0, 1.2))
        memories.append(
            Memory(
                f"m{i}",
                max(1, round(least * share)),
                operands=i == 0 or rng.random() < 0.75,
                bytes_per_second=rng.choice((1e12, 5e11, 1e11, 1e10)),
            )
        )
    chip = Chip("several", alignment_bytes=alignment, memories=tuple(memories))
    outcome.network, outcome.budget = network, sum(m.bytes for m in memories)
    judging = Memories(asked, memories, placing.moves)
    on = replace(plan_chip_of(chip), memories=tuple(memories))
    try:
        with outcome.planning():
            made = plan_in_memories(network, chip, memories, placing)
    except Infeasible:
        outcome.status = "infeasible"
        if judge:
            with outcome.judging():
                _beaten(outcome, judging, on, None, "called infeasible")
        return outcome
    except NegativeAnswer:
        return outcome
    outcome.status, outcome.claimed = made.result.status, made
    if judge:
        result = made.result
        bound = result.lower_bound_bytes, 0
        if result.traffic_bytes == result.lower_bound_bytes:
            bound = result.lower_bound_bytes, result.memory_lower_bound_picoseconds or 0
        with outcome.judging():
            _beaten(outcome, judging, on, bound, f"cheaper than {bound}")
    return outcome


def _beaten(
    outcome: Outcome, judge: Memories, on: PlanChip, limit: tuple[int, int] | None, words: str
) -> None:
    try:
        found = judge.cheaper(limit)
    except Undecided:
        outcome.undecided = True
        return
    if found is None:
        return
    laid = judge.laid(found[1])
    if laid is None:
        outcome.undecided = True
        return
    outcome.beaten = accepts(judge.network, on, outcome.budget, laid)
    if outcome.beaten is None:
        outcome.notes["refused"] = words
    else:
        outcome.refuted = f"{words}: {found[0]}"
