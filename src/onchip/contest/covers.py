"""Schedules of graphs in which tensors have several readers: steps such that each finds what it reads.

Every connected subgraph is listed, with every set of residents that it may find and every set of tensors that
it may retain. A solver of integer programs chooses: each result is written by some step, each tensor that a
step loads is written by another one, and what a step finds resident is what the one before it retains. The
program knows no order: a choice that has none is forbidden, and the solver chooses again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from onchip.base.or_tools import needs_or_tools
from onchip.contest.groups import connected
from onchip.contest.law import Law
from onchip.contest.problem import Problem
from onchip.contest.statement import Group

__all__ = ["Candidate", "best_cover", "candidates", "least_cover"]

UNIT = 1 << 46
"""The largest latency in a program of whole numbers; all are rounded down."""

Tensors = frozenset[int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A step that a schedule may have: its group; what others make and it `loads`; what it `stores`."""

    group: Group
    loads: Tensors
    stores: Tensors


def candidates(problem: Problem, law: Law, most: int) -> list[Candidate] | None:
    """Return every step that a schedule may have; None if there are more than `most`.

    Residents that it does not read are left out: they would only take room.
    """
    groups = connected(problem, law, most)
    if groups is None:
        return None
    found: list[Candidate] = []
    for operators in groups:
        for candidate in _of(problem, operators):
            if len(found) == most:
                return None
            found.append(candidate)
    return found


def _of(problem: Problem, operators: tuple[int, ...]) -> Iterator[Candidate]:
    made = frozenset(problem.outputs[op] for op in operators)
    read = frozenset(tensor for op in operators for tensor in problem.inputs[op])
    outside = frozenset(tensor for tensor in read - made if tensor in problem.maker)
    ends = made - read
    if len({(problem.heights[tensor], problem.widths[tensor]) for tensor in ends}) > 1:
        return  # L8
    for residents, room in _fitting(problem, sorted(outside), problem.capacity - 1):
        for retained, _ in _fitting(problem, sorted(made), room):
            stores = ends - retained
            if stores or not retained.issubset(problem.results):
                yield Candidate(Group(operators, residents, retained), outside - residents, stores)


def _fitting(problem: Problem, tensors: Sequence[int], room: int) -> Iterator[tuple[Tensors, int]]:
    """Yield the sets of tensors that fit whole, with the room that is left."""
    yield frozenset(), room
    for at, tensor in enumerate(tensors):
        left = room - problem.size(tensor)
        if left >= 0:
            for others, rest in _fitting(problem, tensors[at + 1 :], left):
                yield others | {tensor}, rest


def least_cover(
    problem: Problem, known: Sequence[Candidate], costs: Sequence[float], seconds: float | None
) -> float | None:
    """Return what no schedule costs less than, if no step costs less than its cost here; None without one.

    A step may leave unread what the one before it retains, so that it need not be stored.
    """
    program = _Program(problem, known, costs, exact=False)
    return program.bound if program.solved(seconds) else None


def best_cover(
    problem: Problem,
    known: Sequence[Candidate],
    costs: Sequence[float],
    left: Callable[[], float | None],
) -> list[Group] | None:
    """Return the steps of the schedule that costs least, in order; None if there was no time to find it."""
    program = _Program(problem, known, costs, exact=True)
    while program.solved(left()):
        chosen = program.chosen()
        order = _ordered(problem, [known[at] for at in chosen])
        if order is not None:
            return [step.group for step in order]
        program.forbid(chosen)
    return None


class _Program:
    """The program of whole numbers. A step that retains something may run several times, others once."""

    def __init__(
        self, problem: Problem, known: Sequence[Candidate], costs: Sequence[float], *, exact: bool
    ) -> None:
        needs_or_tools()
        from ortools.sat.python import cp_model

        self.cp_model, self.model = cp_model, cp_model.CpModel()
        self.solver: Any = None
        largest = max((cost for cost in costs if cost < inf), default=0.0)
        self.unit = UNIT / largest if largest else 1.0
        self.used: dict[int, Any] = {}
        self.times: dict[int, Any] = {}
        for at, cost in enumerate(costs):
            if cost < inf:
                self._add(at, known[at], len(problem.outputs))
        self._provide(problem, known)
        self._hand_on(known, exact)
        self.model.minimize(sum(int(costs[at] * self.unit) * times for at, times in self.times.items()))

    def _add(self, at: int, step: Candidate, most: int) -> None:
        used = self.model.new_bool_var("")
        self.used[at] = self.times[at] = used
        if step.group.retained:
            self.times[at] = self.model.new_int_var(0, most, "")
            self.model.add(self.times[at] >= 1).only_enforce_if(used)
            self.model.add(self.times[at] == 0).only_enforce_if(used.negated())

    def _provide(self, problem: Problem, known: Sequence[Candidate]) -> None:
        providers: dict[int, list[Any]] = {tensor: [] for tensor in problem.outputs}
        for at, used in self.used.items():
            for tensor in known[at].stores:
                providers[tensor].append(used)
        for tensor in problem.results:
            self.model.add_bool_or(providers[tensor])
        for at, used in self.used.items():
            for tensor in known[at].loads:
                self.model.add_bool_or([*providers[tensor], used.negated()])

    def _hand_on(self, known: Sequence[Candidate], exact: bool) -> None:
        """State that what steps find resident has been retained: just that, or that and more."""
        retained: dict[Tensors, list[Any]] = {}
        found: dict[Tensors, list[Any]] = {}
        for at, times in self.times.items():
            group = known[at].group
            if group.retained:
                retained.setdefault(group.retained, []).append(times)
            if group.residents:
                found.setdefault(group.residents, []).append(times)
        if exact:
            for tensors in retained.keys() | found.keys():
                self.model.add(sum(retained.get(tensors, [])) == sum(found.get(tensors, [])))
            return
        given: dict[Tensors, list[Any]] = {tensors: [] for tensors in retained}
        for wanted, readers in found.items():
            taken = []
            for tensors, parts in given.items():
                if wanted <= tensors:
                    flow = self.model.new_int_var(0, 1 << 20, "")
                    taken.append(flow)
                    parts.append(flow)
            self.model.add(sum(taken) == sum(readers))
        for tensors, parts in given.items():
            self.model.add(sum(parts) <= sum(retained[tensors]))

    def solved(self, seconds: float | None) -> bool:
        """Solve; return whether that was possible in time."""
        self.solver = self.cp_model.CpSolver()
        self.solver.parameters.num_workers = 1
        if seconds is not None:
            self.solver.parameters.max_time_in_seconds = max(seconds, 0.01)
        return bool(self.solver.solve(self.model) == self.cp_model.OPTIMAL)

    @property
    def bound(self) -> float:
        """The least cost."""
        return float(self.solver.best_objective_bound) / self.unit

    def chosen(self) -> list[int]:
        """Return the places of the chosen steps, each as often as it runs."""
        return [at for at, times in self.times.items() for _ in range(self.solver.value(times))]

    def forbid(self, chosen: Sequence[int]) -> None:
        """Forbid a choice that has no order."""
        self.model.add_bool_or([self.used[at].negated() for at in set(chosen)])


def _ordered(problem: Problem, steps: Sequence[Candidate]) -> list[Candidate] | None:
    """Return an order in which each step finds what it reads; None if there is none."""
    everything = frozenset(range(len(steps)))
    dead: set[tuple[frozenset[int], Tensors]] = set()

    def rest(left: frozenset[int], slow: Tensors, resident: Tensors) -> list[Candidate] | None:
        if not left:
            return []
        if (left, resident) in dead:
            return None
        for at in sorted(left):
            step = steps[at]
            if step.group.residents != resident or not step.loads <= slow:
                continue
            behind = rest(left - {at}, slow | step.stores, step.group.retained)
            if behind is not None:
                return [step, *behind]
            if not resident and not step.group.retained:
                break  # it stood in nobody's way
        dead.add((left, resident))
        return None

    return rest(everything, frozenset(), frozenset())
