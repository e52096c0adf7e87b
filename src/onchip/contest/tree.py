"""The dynamic program over the trees that a graph falls into once it is known which tensors are written.

f(v, r) is the least cost of having tensor v in slow memory (r = 0), or resident for the next step (r = 1):
the least, over subgraphs G that end in v and over a resident input x of G or none, of
c(G, x, r) + f(x, 1) + the sum of f(y, 0) over the other inputs y.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from onchip.contest.groups import Sinks
from onchip.contest.law import Law
from onchip.contest.problem import Problem
from onchip.contest.statement import Group

__all__ = ["Choice", "Tree", "choices"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A subgraph, and what it costs with its output written and with it resident (infinity: it does not fit).

    `made` are the tensors that it reads and others make, of which it may find one `resident`.
    """

    operators: tuple[int, ...]
    resident: int | None
    made: tuple[int, ...]
    costs: tuple[float, float]


def choices(
    problem: Problem, known: Sinks, price: Callable[[Group], float], over: Callable[[], bool]
) -> tuple[tuple[Choice, ...], ...]:
    """Return for every operator the priced subgraphs that end in it; once time is `over`, it alone."""
    return tuple(tuple(_priced(problem, groups, price, over)) for groups in known.groups)


def _priced(
    problem: Problem,
    groups: Sequence[tuple[int, ...]],
    price: Callable[[Group], float],
    over: Callable[[], bool],
) -> Iterator[Choice]:
    for at, operators in enumerate(groups):
        if at and over():
            return
        output = problem.outputs[operators[-1]]
        inside = {problem.outputs[op] for op in operators}
        read = dict.fromkeys(t for op in operators for t in problem.inputs[op])
        made = tuple(t for t in read if t in problem.maker and t not in inside)
        for resident in (None, *made):
            residents = frozenset[int]() if resident is None else frozenset({resident})
            costs = []
            for retained in (frozenset[int](), frozenset({output})):
                useless = retained and not problem.readers[output]
                fits = sum(map(problem.size, residents | retained)) < problem.capacity and not useless
                costs.append(price(Group(operators, residents, retained)) if fits else inf)
            if min(costs) < inf:
                yield Choice(operators, resident, made, (costs[0], costs[1]))


class Tree:
    """The dynamic program, exactly or as a bound.

    `written` are tensors of several readers that reach slow memory. Everybody reads them for nothing; each of
    the others is made anew by all who want it. In a `bound` a subgraph that makes a written tensor again has
    what that reads for nothing too, and so has a reader behind a barrier what it finds resident:
    docs/contest.md says why no schedule costs less.
    """

    def __init__(
        self,
        problem: Problem,
        law: Law,
        known: Sequence[Sequence[Choice]],
        written: frozenset[int],
        behind: Callable[[int, int], bool] | None = None,
    ) -> None:
        self.problem, self.law, self.written, self.behind = problem, law, written, behind
        self.costs: dict[tuple[int, int], float] = {}
        self.chosen: dict[tuple[int, int], Choice] = {}
        for op in problem.order:
            for retained in (0, 1):
                self._settle(known[op], problem.outputs[op], retained)

    @property
    def total(self) -> float:
        """The cost of all written tensors and all results."""
        problem = self.problem
        total = sum(self.costs[tensor, 0] for tensor in (*self.written, *problem.results))
        if self.behind is not None:
            total += sum(self.costs[tensor, 1] for tensor in self._resident_once())
        return total

    def _resident_once(self) -> Iterator[int]:
        """Yield what must be resident once, at least: all of its readers stand behind barriers."""
        for tensor in self.problem.outputs:
            readers = self.problem.readers[tensor]
            if tensor in self.written or len(readers) < 2 or self.behind is None:
                continue
            if all(self.behind(tensor, op) for op in readers):
                yield tensor

    def _settle(self, known: Sequence[Choice], tensor: int, retained: int) -> None:
        best, chosen = inf, None
        for choice in known:
            cost = choice.costs[retained]
            if cost >= best:
                continue
            made = choice.made if self.behind is None else self._charged(choice)
            for other in made:
                if other != choice.resident:
                    cost += self._loaded(other)
            if choice.resident is not None:
                cost += self._resident(choice)
            if cost < best:
                best, chosen = cost, choice
        self.costs[tensor, retained] = best
        if chosen is not None:
            self.chosen[tensor, retained] = chosen

    def _loaded(self, tensor: int) -> float:
        if tensor in self.written:
            return 0.0
        return self.costs[tensor, 0] if len(self.problem.readers[tensor]) == 1 else inf

    def _resident(self, choice: Choice) -> float:
        tensor = choice.resident
        assert tensor is not None
        readers = self.problem.readers[tensor]
        if self.behind is not None and len(readers) > 1:
            if tensor in self.written:
                return 0.0
            if any(op in choice.operators and self.behind(tensor, op) for op in readers):
                return 0.0
        if self.behind is not None and tensor not in self._charged(choice):
            return 0.0
        return self.costs[tensor, 1]

    def _charged(self, choice: Choice) -> tuple[int, ...]:
        """Return what a subgraph reads otherwise than to make a written tensor again."""
        problem, operators = self.problem, choice.operators
        if not any(problem.outputs[op] in self.written for op in operators[:-1]):
            return choice.made
        ahead, reached = [operators[-1]], {operators[-1]}
        while ahead:
            for tensor in problem.inputs[ahead.pop()]:
                op = problem.maker.get(tensor)
                if op in operators and op not in reached and tensor not in self.written:
                    reached.add(op)
                    ahead.append(op)
        read = {tensor for op in reached for tensor in problem.inputs[op]}
        return tuple(tensor for tensor in choice.made if tensor in read)

    def groups(self) -> list[Group]:
        """Return the chosen subgraphs in an order in which each finds what it reads."""
        problem = self.problem
        wanted = {*self.written, *problem.results}
        chains: dict[int, list[Group]] = {}
        for op in reversed(problem.order):
            tensor = problem.outputs[op]
            if tensor in wanted:
                chains[tensor], others = self._chain(tensor)
                wanted |= others
        return [group for op in problem.order for group in chains.get(problem.outputs[op], ())]

    def _chain(self, tensor: int) -> tuple[list[Group], set[int]]:
        """Return the subgraphs of which each hands a resident tensor to the next, and all else they read."""
        found: list[Group] = []
        others: set[int] = set()
        at: int | None = tensor
        while at is not None:
            retained = frozenset() if at == tensor else frozenset({at})
            choice = self.chosen[at, len(retained)]
            residents = frozenset() if choice.resident is None else frozenset({choice.resident})
            found.append(Group(choice.operators, residents, retained))
            at = choice.resident
            others |= {made for made in choice.made if made != at}
        return found[::-1], others
