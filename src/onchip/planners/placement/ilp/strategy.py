"""Strategy `ilp`: build the model, solve it, decode the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onchip.base.errors import UsageError
from onchip.planners.limits import NO_LIMITS, Limits
from onchip.planners.placement.addressed import one_at_a_time, place_schedule
from onchip.planners.placement.ilp.decode import legal, order_of, placed_schedule
from onchip.planners.placement.ilp.encode import values_of
from onchip.planners.placement.ilp.formulation import Formulation, least_peak, least_traffic
from onchip.planners.placement.ilp.lifetimes import Lifetimes
from onchip.planners.placement.ilp.reading import SENSIBLE, Reading
from onchip.planners.placement.ilp.rows import Model
from onchip.planners.placement.ilp.size import pairs_in_time, unpruned
from onchip.planners.placement.ilp.solvers import Outcome, Solver, minimise
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.schedule import Residency, Schedule
from onchip.planners.placement.sources import first_spills, literal_figures
from onchip.planners.placement.strategy import Answer, Task

__all__ = ["MOST_PAIRS", "Peak", "Solved", "minimum_peak", "minimum_traffic", "solve"]

MOST_PAIRS = 100_000
"""The most (pair of tensors, step) combinations that are built, two variables and four constraints each."""


@dataclass(frozen=True)
class Solved:
    """The result of the ILP of eq. 1-12.

    `value` is its objective for `answer`, `bound` a proved bound of any; bytes, in the requested reading.
    `answer` is None, and so is `value`, if the limits ended it without a solution, or if there is none
    (`infeasible`).
    """

    answer: Answer | None
    value: int | None
    bound: int
    infeasible: bool
    model: Model
    lifetimes: Lifetimes

    @property
    def status(self) -> str:
        """`proved`, `best so far`, or `none in time`."""
        if self.answer is None:
            return "none in time"
        return "proved" if self.value == self.bound else "best so far"


@dataclass(frozen=True, slots=True)
class Peak:
    """An order (None: no solution in time), its peak in bytes, and the proved bound on any order's."""

    order: tuple[int, ...] | None
    value: int | None
    bound: int


def solve(task: Task) -> Answer:
    """Return the optimum of the paper's ILP, or the best so far with the solver's bound.

    Raises `UsageError` for a network whose model would not fit in a sensible amount of memory.
    """
    options, problem = task.options, task.problem
    reading = Reading(inputs=options.inputs)
    found = minimum_traffic(problem, task.budget, reading, solver=options.solver, limits=task.limits)
    answer = found.answer
    order = problem.order if problem.order is not None else task.network.order
    if answer is None:
        answer = one_at_a_time(Schedule.nothing_kept(problem, order))
    elif not legal(problem, answer, task.budget):
        answer = _placed_again(task, answer, task.limits)
    whole = unpruned(found.lifetimes)
    figures: dict[str, str | int | float | bool | None] = {
        "solver": options.solver,
        "ilp_solution": found.status,
        "ilp_variables": found.model.variables,
        "ilp_constraints": found.model.constraints,
        "ilp_variables_unpruned": whole.variables,
        "ilp_constraints_unpruned": whole.constraints,
    }
    bound = found.bound
    if options.inputs == "literal":
        figures |= literal_figures(problem, answer, bound)
        bound = max(0, bound - first_spills(problem))
    return replace(answer, bound=min(bound, answer.traffic), figures=figures)


def minimum_traffic(
    problem: Problem,
    budget: int,
    reading: Reading = SENSIBLE,
    *,
    solver: Solver = "cp-sat",
    limits: Limits = NO_LIMITS,
    first: Answer | None = None,
) -> Solved:
    """Solve eq. 1-12 (16-17 when `problem.order` is given) for `budget` bytes, addresses included.

    `first` is a placed schedule for CP-SAT to begin with; what is proved does not hang on it. Raises
    `ValueError` for a budget below `problem.minimum_budget`, `UsageError` for a model too large.
    """
    if budget < problem.minimum_budget:
        raise ValueError(f"budget {budget} is below the minimum {problem.minimum_budget}")
    _refuse_if_too_large(Lifetimes.of(problem))
    formulation = least_traffic(problem, budget, reading)
    begun = None if first is None else values_of(formulation, first)
    outcome = minimise(formulation.model, solver, limits, begun)
    answer = value = None
    if outcome.values is not None:
        answer = placed_schedule(formulation, outcome.values)
        value = _objective(formulation, outcome.values)
    bound = outcome.bound * formulation.bytes_per_unit
    return Solved(answer, value, bound, outcome.infeasible, formulation.model, formulation.lifetimes)


def minimum_peak(problem: Problem, *, solver: Solver = "cp-sat", limits: Limits = NO_LIMITS) -> Peak:
    """Return the order with the least peak if nothing is ever evicted, by eq. 13-15."""
    formulation = least_peak(problem)
    outcome: Outcome = minimise(formulation.model, solver, limits)
    bound = outcome.bound * formulation.bytes_per_unit
    if outcome.values is None:
        return Peak(None, None, bound)
    return Peak(order_of(formulation, outcome.values), _objective(formulation, outcome.values), bound)


def _objective(formulation: Formulation, values: Sequence[int]) -> int:
    return sum(k * values[x] for x, k in formulation.model.objective) * formulation.bytes_per_unit


def _refuse_if_too_large(lifetimes: Lifetimes) -> None:
    pairs = pairs_in_time(lifetimes, MOST_PAIRS)
    if pairs > MOST_PAIRS:
        raise UsageError(
            f"the ILP of {lifetimes.steps:,} operators has more than {2 * MOST_PAIRS:,} variables "
            f"after pruning; `exact` plans networks of this size",
            item="strategy ilp",
        )


def _placed_again(task: Task, answer: Answer, limits: Limits) -> Answer:
    """Return addresses from the packer for a solution whose own addresses are not legal."""
    problem = task.problem
    step = {v: i for i, v in enumerate(answer.order)}
    uses: dict[int, list[int]] = {}
    for v, i in step.items():
        for t in (*problem.inputs[v], *problem.outputs[v]):
            uses.setdefault(t, []).append(i)
    stays = tuple(
        Residency(p.tensor, p.start, p.end, tuple(i for i in sorted(uses[p.tensor]) if p.start <= i < p.end))
        for p in sorted(answer.placed, key=lambda p: p.start)
    )
    schedule = Schedule(problem, answer.order, stays)
    for relocate in (False, True):
        placed = place_schedule(schedule, task.budget, task.alignment, limits, relocate=relocate)
        if placed is not None:
            return placed
    return one_at_a_time(Schedule.nothing_kept(problem, answer.order))
