"""Partitions of networks with too many sets of finished operators: set partitioning over groups.

`choose` is the integer program: groups that cover every operator once, with a cut for every cycle of groups
that wait for each other, added when one appears. `solve_large` finds the groups by column generation
(`pricing`), chooses among them, and compares the result with the bound over all groups.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from onchip import _core
from onchip.network import bits, mask
from onchip.planners.fusion.copies import Copies
from onchip.planners.fusion.cost import GroupCost
from onchip.planners.fusion.pricing import Relaxation, Round, relax
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.search import Alone, Figures, Fuser, Partition, line_of
from onchip.planners.limits import NO_LIMITS, Limits

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["choose", "circle", "solve_large"]

Group = tuple[int, ...]
"""Operators by their places in the network's order, ascending."""

HALO_PERCENT = 25
"""The bound charges the halo of an operand up to this percentage of it."""

MOST_COLUMNS = 20_000
GUESSING, PRICING, CHOOSING = 0.2, 0.85, 0.1
"""Shares of the time: until good groups are found, until they are bounded, and at most for the choice."""

GUESS_DEPTHS, BOUND_DEPTHS = slice(0, 3), slice(2, None)
"""Depths of pricing at which good groups are searched, and bounded."""


def solve_large(
    problem: FusionProblem,
    incumbent: Partition | None = None,
    limits: Limits = NO_LIMITS,
    *,
    fuser: Fuser | None = None,
    alone: Alone | None = None,
) -> Partition:
    """Return the cheapest partition that column generation and an integer program find, and a bound.

    The bound holds for all groups. Never dearer than `incumbent`, never with a weaker bound. `complete` if
    the bound is reached. Ctrl-C and limits give the best so far. Every operator alone must have a cost: by
    itself, or by `alone`.
    """
    return _Large(problem, incumbent, limits, fuser or Fuser(problem, alone=alone), alone).run()


class _Large:
    """One run, with its state so far, so that it can end at any time."""

    def __init__(
        self,
        problem: FusionProblem,
        incumbent: Partition | None,
        limits: Limits,
        fuser: Fuser,
        alone: Alone | None,
    ) -> None:
        self.problem, self.limits, self.fuser = problem, limits.share(1.0), fuser
        self.began = time.perf_counter()
        self.order = problem.network.order
        place = {v: i for i, v in enumerate(self.order)}
        self.before = [{place[p] for p in bits(problem.network.predecessors[v])} for v in self.order]
        self.single: dict[int, GroupCost] = {}
        for v in self.order:
            self.single[1 << v] = _single(problem, v, fuser, alone)
        self.cost: dict[Group, int] = {(i,): self.single[1 << v].dram_bytes for i, v in enumerate(self.order)}
        self.best: list[Group] = [(i,) for i in range(len(self.order))]
        if incumbent is not None and incumbent.groups:
            self.best = [tuple(sorted(place[v] for v in bits(g.members))) for g in incumbent.groups]
            self.cost.update(zip(self.best, (g.dram_bytes for g in incumbent.groups), strict=True))
            self.single.update((g.members, g) for g in incumbent.groups)
        self.copies = Copies(problem)
        self.bound = incumbent.lower_bound_bytes if incumbent is not None else 0
        self.columns = self.rounds = self.nodes = 0
        self.end: Literal["complete", "time", "memory", "stopped"] = "complete"

    def run(self) -> Partition:
        try:
            self.search()
        except KeyboardInterrupt:
            self.end = "stopped"
        return self.partition()

    def search(self) -> None:
        alone = [self.cost[(i,)] for i in range(len(self.order))]
        pricer = _core.Pricer(self.fuser.core, self.problem.budget, alone, HALO_PERCENT)
        if not pricer.sound():
            return
        known = [g for g in self.best if len(g) > 1]
        guess = _core.Pricer(self.fuser.core, self.problem.budget, alone, HALO_PERCENT, True)
        groups = list(self.relax(guess, known, GUESSING, depths=GUESS_DEPTHS).columns)
        found = self.relax(pricer, [*known, *groups], PRICING, keep=self.keep)
        self.choose_from(found, groups)
        if found.complete and self.bound < self.dram_bytes:
            # Pricing was cheap so far: with the true costs it may be, too.
            pricer = _core.Pricer(self.fuser.core, self.problem.budget, alone, -1)
            found = self.relax(pricer, [*groups, *found.columns], 1 - CHOOSING, keep=self.keep)
            self.choose_from(found, [])

    def relax(
        self,
        pricer: _core.Pricer,
        known: list[Group],
        part: float,
        *,
        depths: slice = BOUND_DEPTHS,
        keep: Callable[[int], None] | None = None,
    ) -> Relaxation:
        """Generate columns until this share of the time is spent."""
        return relax(
            pricer,
            len(self.order),
            known,
            copies=self.copies.of,
            depths=depths,
            enough=self.dram_bytes if keep is not None else None,
            limits=self.limits.until(part),
            stop=self.stop,
            keep=keep,
        )

    def keep(self, bound: int) -> None:
        self.bound = max(self.bound, bound)

    def stop(self, now: Round) -> bool:
        """Report the progress of pricing; return whether to end it."""
        self.columns, self.rounds = now.columns, self.rounds + 1
        self.limits.say(line_of(now.columns, self.rounds))
        return self.limits.stopped()

    def choose_from(self, found: Relaxation, more: list[Group]) -> None:
        """Choose the best partition into columns that could be part of one better than the incumbent."""
        self.nodes += found.nodes
        ranked = sorted(
            (cost - sum(found.worth[v] for v in members), members) for members, cost in found.columns.items()
        )
        groups = list(dict.fromkeys([*more, *(members for _, members in ranked)]))[:MOST_COLUMNS]
        asked = [members for members in groups if members not in self.cost]
        costs = self.fuser.dram_bytes(mask(self.order[v] for v in members) for members in asked)
        self.cost.update((m, c) for m, c in zip(asked, costs, strict=True) if c is not None)
        chosen = choose(
            self.before,
            {members: self.cost[members] for members in {*groups, *self.best} if members in self.cost},
            self.best,
            self.limits,
        )
        if sum(self.cost[g] for g in chosen) < self.dram_bytes:
            self.best = chosen

    @property
    def dram_bytes(self) -> int:
        return sum(self.cost[g] for g in self.best)

    def partition(self) -> Partition:
        groups = []
        for members in _in_order(self.before, self.best):
            named = mask(self.order[v] for v in members)
            found = self.single.get(named) or self.fuser.cost(named)
            assert found is not None
            groups.append(found)
        total = sum(g.dram_bytes for g in groups)
        bound = min(self.bound, total)
        seconds = time.perf_counter() - self.began
        figures = Figures(self.columns, self.columns, self.columns, 0, self.nodes, 0, seconds)
        complete = bound == total
        if not complete and self.end == "complete":
            self.end = "time"
        return Partition(tuple(groups), bound, complete, "complete" if complete else self.end, figures)


def choose(
    before: Sequence[Iterable[int]],
    cost: Mapping[Group, int],
    incumbent: Sequence[Group],
    limits: Limits = NO_LIMITS,
) -> list[Group]:
    """Return the cheapest partition into groups of `cost` that can run one by one, or the best so far.

    `before` are the operators that an operator reads from; `incumbent` is such a partition. Cycles of groups
    that wait for each other are cut off one at a time, as they appear.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    taken = {members: model.new_bool_var("") for members in cost}
    holding: list[list[cp_model.IntVar]] = [[] for _ in before]
    for members, var in taken.items():
        for v in members:
            holding[v].append(var)
    for vars_ in holding:
        model.add_exactly_one(vars_)
    model.minimize(sum(cost[members] * var for members, var in taken.items()))
    best = list(incumbent)
    least = sum(cost[g] for g in best)
    chosen = set(best)
    for members, var in taken.items():
        model.add_hint(var, members in chosen)
    while (left := limits.left()) != 0.0:
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        if left is not None:
            solver.parameters.max_time_in_seconds = max(0.1, left)
        if limits.cancelled is not None:
            _stop_when(solver, limits.cancelled)
        status = solver.solve(model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            break
        groups = [members for members, var in taken.items() if solver.boolean_value(var)]
        waiting = circle(before, groups)
        repaired = groups
        while waiting:
            model.add(sum(taken[g] for g in waiting) <= len(waiting) - 1)
            repaired = [g for g in repaired if g not in waiting] + [(v,) for g in waiting for v in g]
            waiting = circle(before, repaired)
        if all(g in cost for g in repaired) and (total := sum(cost[g] for g in repaired)) < least:
            best, least = repaired, total
        if repaired is groups or status != cp_model.OPTIMAL or limits.stopped():
            break
    return best


def _stop_when(solver: cp_model.CpSolver, cancelled: Callable[[], bool]) -> None:
    """Make CP-SAT poll `cancelled` at every bound: it offers no other callback for that."""
    solver.best_bound_callback = lambda _: solver.stop_search() if cancelled() else None


def circle(before: Sequence[Iterable[int]], groups: Sequence[Group]) -> list[Group]:
    """Return a cycle of groups that wait for each other, a shortest one from some group; empty if none do."""
    owner = {v: i for i, members in enumerate(groups) for v in members}
    needs = [sorted({owner[p] for v in members for p in before[v]} - {i}) for i, members in enumerate(groups)]
    left = set(range(len(groups)))
    waits = {i: len(needs[i]) for i in left}
    serves: list[list[int]] = [[] for _ in groups]
    for i, them in enumerate(needs):
        for j in them:
            serves[j].append(i)
    ready = [i for i in left if not waits[i]]
    while ready:
        i = ready.pop()
        left.discard(i)
        for j in serves[i]:
            waits[j] -= 1
            if not waits[j]:
                ready.append(j)
    for start in sorted(left):
        came: dict[int, int] = {}
        line = [start]
        for i in line:
            for j in needs[i]:
                if j == start:
                    path = [i]
                    while path[-1] != start:
                        path.append(came[path[-1]])
                    return [groups[k] for k in path]
                if j in left and j not in came:
                    came[j] = i
                    line.append(j)
    return []


def _single(problem: FusionProblem, v: int, fuser: Fuser, alone: Alone | None) -> GroupCost:
    """Return the cheapest cost of an operator by itself."""
    ways = (fuser.cost(1 << v), alone(problem, 1 << v) if alone is not None else None)
    return min((g for g in ways if g is not None), key=lambda g: g.dram_bytes)


def _in_order(before: Sequence[Iterable[int]], groups: Sequence[Group]) -> list[Group]:
    """Return the groups in an order in which they can run."""
    owner = {v: i for i, members in enumerate(groups) for v in members}
    needs = [{owner[p] for v in members for p in before[v]} - {i} for i, members in enumerate(groups)]
    done: set[int] = set()
    result: list[Group] = []
    while len(result) < len(groups):
        ready = [i for i in range(len(groups)) if i not in done and needs[i] <= done]
        assert ready, "the groups wait for each other"
        for i in ready:
            done.add(i)
            result.append(groups[i])
    return result
