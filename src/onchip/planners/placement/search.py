"""The capacity-only searches: exact minimum traffic and minimum peak, without addresses.

Their result is a lower bound for every plan, and a schedule that the address stage then has to pack.
docs/placement-proofs.md proves every rule that the searches prune by.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from onchip import _core
from onchip.network import bits
from onchip.planners.limits import NO_LIMITS, End, Limits
from onchip.planners.placement.problem import Problem

__all__ = [
    "Arrival",
    "Boundary",
    "Found",
    "Rules",
    "Step",
    "line_of",
    "minimum_of_stage",
    "minimum_peak",
    "minimum_traffic",
]


@dataclass(frozen=True, slots=True)
class Rules:
    """The pruning rules, by their names in docs/placement-proofs.md.

    All are exact: any subset gives the same value, only more slowly.
    """

    dominance: bool = True
    """R1: drop a state that another with the same executed operators can imitate at no more cost."""
    safe_moves: bool = True
    """R2: run an operator at once if that provably costs nothing."""
    safe_loads: bool = True
    """R2+: the same for operators whose inputs must be loaded first. Needs `safe_moves`."""
    safe_chains: bool = True
    """R2*: the same for several operators in a row. Needs `safe_loads`."""
    minimal_evictions: bool = True
    """R3: evict only if the next operator does not fit, and then no tensor too many."""
    incumbent: bool = True
    """R6: drop states that cannot be cheaper than the best schedule known."""


ALL_RULES = Rules()


@dataclass(frozen=True, slots=True)
class Step:
    """One operator, and the tensors evicted just before it. Its absent inputs are loaded for it."""

    operator: int
    evict: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Boundary:
    """A state between two stages of a larger problem: `paid` bytes of traffic so far (reloads of absent
    tensors included), and of the live tensors those `resident` and those with a `copied` in DRAM."""

    paid: int
    resident: frozenset[int]
    copied: frozenset[int]


@dataclass(frozen=True, slots=True)
class Arrival:
    """One way through a stage: from its start number `start` by `steps` to `at`."""

    at: Boundary
    start: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search.

    `value` (traffic or peak, bytes) is that of `steps`, `bound` a lower bound of every schedule; both agree
    if `complete`. `states` were expanded, `stored` kept, in `memory` bytes.
    """

    steps: tuple[Step, ...]
    value: int
    bound: int
    end: End
    states: int
    stored: int
    memory: int
    seconds: float
    arrivals: tuple[Arrival, ...] = ()

    @property
    def complete(self) -> bool:
        """True if `value` is proved to be the optimum."""
        return self.value == self.bound

    @property
    def order(self) -> tuple[int, ...]:
        """The operators in the order of the steps."""
        return tuple(step.operator for step in self.steps)


def line_of(states: int, best: int | None, bound: int, seconds: float) -> str:
    """Return the progress of a search: states expanded, best value so far (None: none), proved bound."""
    found = "none yet" if best is None else f"{best:,} B"
    return f"searching: {states:,} states, best {found}, at least {bound:,} B, {seconds:.0f} s"


def minimum_traffic(
    problem: Problem,
    budget: int,
    rules: Rules = ALL_RULES,
    limits: Limits = NO_LIMITS,
    *,
    beam_width: int = 0,
) -> Found:
    """Return the schedule with the least non-compulsory traffic within `budget` bytes, addresses aside.

    Always returns a whole schedule: if a limit is hit it is the best so far, with its bound. With a
    `beam_width` other than 0 the search is not complete, but a beam of that width. Raises `ValueError` for a
    budget below `problem.minimum_budget`.
    """
    if budget < problem.minimum_budget:
        raise ValueError(f"budget {budget} is below the minimum {problem.minimum_budget}")
    return _run(_core.minimum_traffic, problem, budget, rules, limits, beam_width=beam_width)


def minimum_of_stage(
    stage: Problem,
    budget: int,
    lives_on: Sequence[int],
    starts: Sequence[Boundary],
    rules: Rules = ALL_RULES,
    limits: Limits = NO_LIMITS,
    *,
    beam_width: int = 0,
) -> Found:
    """Run the same search through one stage of a larger problem, from any of `starts`.

    The stage's graph inputs are the tensors that are live when it begins, `lives_on` those read after it.
    `arrivals` are, if the search was complete, all the ends that are worth continuing from: any other is no
    cheaper than one of these, brought to the same residents and copies (R1). `bound` is a lower bound of
    every arrival.
    """
    return _run(_core.minimum_traffic, stage, budget, rules, limits, lives_on, starts, beam_width)


def minimum_peak(problem: Problem, rules: Rules = ALL_RULES, limits: Limits = NO_LIMITS) -> Found:
    """Return the order with the lowest peak if nothing is evicted (COSMA eq. 13-15); `value` is that peak.

    Always returns a whole order: if a limit is hit it is the best so far, with its bound.
    """
    return _run(_core.minimum_peak, problem, problem.minimum_budget, rules, limits)


def _run(
    search: Callable[..., _core.PlacementFound],
    problem: Problem,
    budget: int,
    rules: Rules,
    limits: Limits,
    lives_on: Sequence[int] = (),
    starts: Sequence[Boundary] = (),
    beam_width: int = 0,
) -> Found:
    began = time.perf_counter()
    already = limits.stopped()
    if already:
        limits = limits.at_most(0.0)

    def stop(states: int, best: int, bound: int) -> bool:
        limits.say(line_of(states, None if best < 0 else best, bound, time.perf_counter() - began))
        return limits.stopped()

    result = search(
        problem=_core.PlacementProblem(
            size=problem.size,
            cost=problem.cost,
            workspace=problem.workspace,
            inputs=problem.inputs,
            outputs=problem.outputs,
            graph_inputs=tuple(bits(problem.graph_inputs)),
            graph_outputs=tuple(bits(problem.graph_outputs)),
            overwrites=problem.overwrites,
            order=problem.order or (),
            read_later=lives_on,
            starts=[
                _core.PlacementBoundary(paid=at.paid, resident=sorted(at.resident), copied=sorted(at.copied))
                for at in starts
            ],
            budget=budget,
        ),
        rules=_core.PlacementRules(**asdict(rules)),
        options=_core.PlacementOptions(seed=limits.seed, beam_width=beam_width),
        limits=limits.core(stop),
    )
    return Found(
        steps=_steps(result.steps),
        value=result.value,
        bound=result.bound,
        end="stopped" if already and result.end == "time" else result.end,
        states=result.expanded,
        stored=result.stored,
        memory=result.memory,
        seconds=time.perf_counter() - began,
        arrivals=tuple(
            Arrival(
                Boundary(found.at.paid, frozenset(found.at.resident), frozenset(found.at.copied)),
                found.start,
                _steps(found.steps),
            )
            for found in result.arrivals
        ),
    )


def _steps(found: Sequence[_core.PlacementStep]) -> tuple[Step, ...]:
    return tuple(Step(step.operator, tuple(step.evict)) for step in found)
