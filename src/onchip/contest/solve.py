"""The search: the dynamic program over trees, with every choice of which shared tensors are written.

Its space is schedules of subgraphs with one output, at tiles of whole numbers, line by line: there and back,
or always the same way. Where that proves nothing and all subgraphs are few, covers are searched, too, which
have subgraphs of several outputs and several residents. What is returned is priced by the verifier, whose
figure is the claim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import inf
from typing import Literal

from onchip.base.errors import NegativeAnswer
from onchip.contest.bound import MOST_SHARED, least_traffic, least_work, option_bound, shared_tensors
from onchip.contest.cost import Costs
from onchip.contest.covers import Candidate, best_cover, candidates, least_cover
from onchip.contest.groups import sinks
from onchip.contest.law import Law, law_named
from onchip.contest.options import SolveOptions
from onchip.contest.problem import Problem
from onchip.contest.solution import Step
from onchip.contest.statement import Group
from onchip.contest.tree import Choice, Tree, choices
from onchip.contest.verify import Priced, verify
from onchip.contest.walks import reordered
from onchip.planners.limits import Limits, Progress

__all__ = ["SPACE", "Solved", "solve"]

SPACE, WIDE = (
    f"{groups}, tiles of whole numbers, line by line"
    for groups in ("subgraphs of one output", "all subgraphs")
)
"""The space of the search over trees, and that of the search over covers."""

FIRST, ALL = 200, 4000
"""The most subgraphs that end in one operator: of a first search, and of one that has all of them."""

STEPS = 20_000
"""The most steps of which covers are made."""

DEFAULTS = SolveOptions()

Proof = Literal["work", "traffic", "search"]

SAME = 1e-9
"""The relative difference below which a latency is its bound."""


@dataclass(frozen=True, slots=True)
class Solved:
    """A schedule, what the verifier says of it, and what no schedule is below.

    `proof` names what the bound is: `work`, `traffic`, or `search` for the dynamic program at costs that no
    tile is below.
    """

    law: Law
    steps: tuple[Step, ...]
    priced: Priced
    bound: float
    proof: Proof
    seconds: float
    space: str = SPACE

    @property
    def latency(self) -> float:
        """The schedule's latency, as the verifier has it."""
        return self.priced.latency

    @property
    def gap(self) -> float:
        """The part of the bound by which the latency is above it."""
        return max(0.0, self.latency / self.bound - 1) if self.bound else inf

    @property
    def optimal(self) -> bool:
        """True if no schedule under the law is faster."""
        return self.latency <= self.bound * (1 + SAME)

    @property
    def claim(self) -> str:
        """The claim, in a line."""
        if self.optimal:
            return f"optimal under the law {self.law.name}, among all schedules (bound: {self.proof})"
        within = f"at most {100 * self.gap:.3g} % above the least" if self.bound else "without a bound"
        return (
            f"feasible under the law {self.law.name}, {within} (bound: {self.proof}); searched: {self.space}"
        )


def solve(problem: Problem, options: SolveOptions = DEFAULTS, progress: Progress | None = None) -> Solved:
    """Return the best schedule found under the options' law, with its bound.

    Raises `NegativeAnswer` if some operator fits at no tile.
    """
    with Limits.of(options, progress).interruptible() as limits:
        return _Search(problem, law_named(options.law), limits).run()


class _Search:
    def __init__(self, problem: Problem, law: Law, limits: Limits) -> None:
        self.problem, self.law, self.limits = problem, law, limits
        self.costs = Costs(problem, law, limits.left)
        self.best: Solved | None = None
        self.space = SPACE
        work, traffic = least_work(problem, law), least_traffic(problem)
        self.bound = max(work, traffic)
        self.proof: Proof = "work" if work >= traffic else "traffic"

    def run(self) -> Solved:
        self.offer(self.alone())
        for most in (FIRST, ALL):
            known = sinks(self.problem, self.law, most)
            if most == ALL and not known.complete:
                break
            for tree in self.searched(choices(self.problem, known, self.costs.latency, self.limits.over)):
                self.offer(tree.groups())
            if self.done() or self.limits.over():
                break
            if known.complete:
                self.prove(choices(self.problem, known, self.costs.least, self.limits.over))
                break
        if not self.done() and self.law.read_elsewhere == "lost":
            self.cover()
        assert self.best is not None
        return replace(
            self.best, bound=self.bound, proof=self.proof, seconds=self.limits.spent(), space=self.space
        )

    def alone(self) -> list[Group]:
        groups = [Group((op,)) for op in self.problem.order]
        for group in groups:
            if self.costs.latency(group) == inf:
                raise NegativeAnswer(f"infeasible: operator {group.operators[0]} fits at no tile")
        return groups

    def offer(self, groups: list[Group]) -> None:
        """Keep a schedule if the verifier finds it faster."""
        steps = [self.stepped(group) for group in groups]
        priced = verify(self.problem, steps, self.law, stated=False)
        if self.best is None or priced.latency < self.best.latency:
            stated = [replace(s, latency=t) for s, t in zip(steps, priced.latencies, strict=True)]
            self.best = Solved(self.law, tuple(stated), priced, self.bound, "work", 0.0)

    def stepped(self, group: Group) -> Step:
        """Return the group as a step; where slices may be parts of others, in the best order of its tiles."""
        step = self.costs.step(group)
        if self.limits.over() or self.costs.latency(group) <= self.costs.least(group):
            return step
        return reordered(self.problem, self.law, step, group.residents)

    def done(self) -> bool:
        return self.best is not None and self.best.latency <= self.bound * (1 + SAME)

    def searched(self, known: tuple[tuple[Choice, ...], ...]) -> list[Tree]:
        """Return the best tree over which shared tensors are written: of all, or one change at a time."""
        shared = shared_tensors(self.problem)

        def tree(written: frozenset[int]) -> Tree:
            return Tree(self.problem, self.law, known, written)

        best = tree(frozenset(shared))
        if len(shared) <= MOST_SHARED:
            for count in range(len(shared)):
                for written in combinations(shared, count):
                    if self.limits.over():
                        return [best]
                    best = min(best, tree(frozenset(written)), key=lambda t: t.total)
            return [best]
        better = True
        while better:
            better = False
            for tensor in shared:
                if self.limits.over():
                    return [best]
                other = tree(best.written ^ {tensor})
                if other.total < best.total * (1 - SAME):
                    best, better = other, True
        return [best]

    def cover(self) -> None:
        """Search covers and raise the bound by them, if all steps are few and there is time to price them."""
        steps = candidates(self.problem, self.law, STEPS)
        if steps is None:
            return
        useful = [step for step in steps if not step.group.retained.intersection(self.problem.results)]
        assert self.best is not None
        costs = self.priced(useful, partial(self.costs.close, limit=self.best.latency))
        if costs is None:
            return
        found = best_cover(self.problem, useful, costs, self.limits.left)
        if found is None:
            return
        self.space = WIDE
        self.offer(found)
        if self.done():
            return
        least = self.priced(steps, self.costs.least)
        bound = None if least is None else least_cover(self.problem, steps, least, self.limits.left())
        if bound is not None and bound > self.bound:
            self.bound, self.proof = bound, "search"

    def priced(self, steps: list[Candidate], price: Callable[[Group], float]) -> list[float] | None:
        """Return what each step costs; None once time is over."""
        costs = []
        for step in steps:
            if self.limits.over():
                return None
            costs.append(price(step.group))
        return costs

    def prove(self, known: tuple[tuple[Choice, ...], ...]) -> None:
        """Raise the bound by the dynamic program, where it holds and there was time for all of it."""
        if self.limits.over():
            return
        bound = option_bound(self.problem, self.law, known, self.limits.over)
        if bound is not None and bound > self.bound:
            self.bound, self.proof = bound, "search"
