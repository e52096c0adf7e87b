"""Claims of `plan --fuse` and of `fuse` on random small networks of maps, held against moves and tilings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from onchip.base.errors import Infeasible, NegativeAnswer
from onchip.machines.chip import Chip, PEArray
from onchip.planners import joint
from onchip.planners.fusion import FusionOptions
from onchip.planners.fusion.fuse import fuse
from onchip.planners.placement import PlacementOptions
from onchip.plans import Plan
from oracles.claims_joint import Joint, Undecided
from oracles.claims_networks import random_maps
from oracles.claims_outcome import Outcome, accepts
from oracles.claims_placement import Question, least_budget
from oracles.claims_ways import Space, Ways

__all__ = ["fuse_case", "joint_case"]


def joint_case(seed: int, *, judge: bool = True, nests: bool = True) -> Outcome:
    """One network and budget; the answer of `joint.plan`, and whether it holds.

    The oracle tries no nests: what it finds may refute a plan with nests, but need not reach one.
    """
    return _case("joint", seed, judge, nests)


def fuse_case(seed: int, *, judge: bool = True) -> Outcome:
    """The same of `fuse`, where every tensor between groups passes through DRAM."""
    return _case("fuse", seed, judge, False)


def _case(kind: str, seed: int, judge: bool, nests: bool) -> Outcome:
    rng = Random(f"joint {seed}")
    outcome = Outcome(kind, seed)
    network = random_maps(rng, rng.choice((3, 3, 3, 4)), plain=rng.random() < 0.4)
    chip = Chip("odd", alignment_bytes=rng.choice((1, 1, 1, 1, 2, 4)))
    if rng.random() < 0.1:
        array = rng.choice((1, 2, 3)), rng.choice((1, 2, 4))
        flow = rng.choice(("oh-ow", "ow-cout", "cin-cout"))
        chip = replace(chip, array=PEArray(*array), dataflow=flow)
    tile = rng.choice((None, 1, 2, 3))
    together = rng.choice(("per-image", "per-image", "held"))
    overlap = rng.random() < 0.8
    asked = Question(network, chip.alignment_bytes, overlap)
    least = least_budget(asked)
    budget = max(1, int(least * rng.choice((0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.2, 1.5))) + rng.randint(-2, 2))
    limits: dict[str, float | int] = {}
    if rng.random() < 0.05:
        outcome.limited = True
        limits = rng.choice(({"time_limit": 0.0}, {"time_limit": 0.01}, {"memory_limit": 2000}))  # type: ignore[assignment]
    outcome.network, outcome.budget, outcome.seconds = network, budget, limits.get("time_limit")

    def solve(within: int) -> Plan | None:
        if kind == "joint":
            options = joint.JointOptions(fuse=True, overlap=overlap, channel_tile=tile, nests=nests)
            return joint.plan(network, chip, within, options, PlacementOptions(**limits))  # type: ignore[arg-type]
        made = fuse(
            network,
            chip,
            within,
            FusionOptions(channel_tile=tile, batch_weights=together, **limits),
            beside=False,
        )  # type: ignore[arg-type]
        return made.plan

    def oracle() -> Joint:
        stated = None if outcome.claimed is None else outcome.claimed.options.get("channel_tile")
        channels = stated if isinstance(stated, int) else tile or chip.tile[2]
        ways = Ways(
            network,
            chip.alignment_bytes,
            Space(channels, kind == "fuse" and together == "held", chip.tile[0]),
        )
        return Joint(ways, overlap=overlap and kind == "joint", alone=kind == "fuse")

    try:
        with outcome.planning():
            made = solve(budget)
    except Infeasible as no:
        outcome.status = "infeasible" if _proved(no) else "feasible"
        if judge:
            with outcome.judging():
                _infeasible(outcome, oracle(), no, solve)
        return outcome
    except NegativeAnswer:
        return outcome
    if made is None:
        return outcome
    outcome.status, outcome.claimed = made.result.status, made
    if judge:
        with outcome.judging():
            _hold(outcome, oracle, made)
    return outcome


def _hold(outcome: Outcome, oracle: Callable[[], Joint], made: Plan) -> None:
    bound = made.result.dram_lower_bound_bytes
    if bound is None:
        return
    network = made.network
    once = sum(network.tensors[t].bytes for t in network.outputs if network.producer[t] is not None)
    if bound <= once:
        return
    judge = oracle()
    try:
        found = judge.cheapest(made.budget, bound)
    except Undecided:
        outcome.undecided = True
        return
    if found is None:
        return
    _beat(outcome, judge, found[1], made.budget, f"{found[0]} bytes where {bound} were the bound")


def _beat(outcome: Outcome, judge: Joint, moves: list, budget: int, words: str) -> None:  # type: ignore[type-arg]
    laid = judge.program(moves, budget)
    if laid is None:
        outcome.undecided = True
        return
    chip = Chip("odd", alignment_bytes=judge.ways.alignment)
    outcome.beaten = accepts(judge.network, chip, budget, *laid, options={"objective": "dram"})
    if outcome.beaten is None:
        outcome.notes["refused"] = words
    else:
        outcome.refuted = words


def _infeasible(outcome: Outcome, judge: Joint, no: Infeasible, solve: Callable[[int], Plan | None]) -> None:
    try:
        found = judge.cheapest(outcome.budget, None)
        if found is not None:
            words = f"called infeasible within {outcome.budget} bytes, and {found[0]} bytes cross"
            _beat(outcome, judge, found[1], outcome.budget, words)
        elif judge.cheapest(no.needs - 1, None) is not None:
            outcome.needs_wrong = f"said to need {no.needs}, needs less"
    except Undecided:
        outcome.undecided = True
        return
    if outcome.refuted or outcome.needs_wrong or not _proved(no):
        return
    try:
        solve(no.needs)
    except NegativeAnswer:
        outcome.needs_wrong = f"no plan within the {no.needs} bytes that are enough"


def _proved(no: Infeasible) -> bool:
    """Whether the answer says of itself that it is proved."""
    return bool(getattr(no, "proved", "not every size" not in str(no)))
